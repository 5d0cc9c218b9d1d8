"""What prevents an installation from running, in words for its user."""

from __future__ import annotations


class StartError(Exception):
    """A sentence or two: what is wrong, with what, and what to do.

    It is shown as it is, without a traceback.
    """
