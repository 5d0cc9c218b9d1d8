"""What a session did and took, in the words of the page and of the command line. Knows no Django."""

from __future__ import annotations

from typing import Final

COUNTS: Final = {
    "binds": "pods placed",
    "evictions": "pods evicted",
    "lost": "lost to others",
    "podgroups": "gangs written",
    "queues": "queues written",
    "changedRows": "changes read",
}
REST_OF_THINKING: Final = "reasons and figures"
"""What the actions leave of it: the reasons of whoever waits, and the figures of queues."""
