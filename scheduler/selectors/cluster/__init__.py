"""Questions about nodes and about the cluster as a whole."""
