"""`vcctl session` and `vcctl policy`."""
