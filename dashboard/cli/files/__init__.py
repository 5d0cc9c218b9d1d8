"""`vcctl apply`, `diff` and `export`."""
