"""Questions about change sets."""
