"""Databases of the released versions, brought up to date."""
