"""`vcctl node`, `pause` and `unpause`."""
