"""The cluster: its nodes, what it reports, and the decisions carried out on it."""
