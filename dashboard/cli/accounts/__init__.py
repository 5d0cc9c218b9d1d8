"""`vcctl login`, `contexts` and `whoami`."""
