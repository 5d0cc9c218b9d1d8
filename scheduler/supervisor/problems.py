"""What keeps an installation from running, in words for its user."""

from __future__ import annotations


class StartError(Exception):
    """One clear sentence or two: what is the matter, with what, and what to do. Shown as it is, without a traceback."""
