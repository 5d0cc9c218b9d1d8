"""`vcctl audit`."""
