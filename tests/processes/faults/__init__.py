"""Faults of every kind while a whole Fumarole binds gangs on a real API server."""
