"""`vcctl job` and `vcctl pod`."""
