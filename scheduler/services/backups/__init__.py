"""A backup: the whole database in one file, for either database."""
