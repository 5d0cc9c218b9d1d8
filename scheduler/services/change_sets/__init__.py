"""Edits of several objects: collected, checked as a whole, applied together, reverted."""
