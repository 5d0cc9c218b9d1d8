"""What a session did and took, in the words of the command line and of the page.

Here, because vcctl is installed alone too.
"""

from __future__ import annotations

from typing import Final

COUNTS: Final = {
    "binds": "pods placed",
    "evictions": "pods evicted",
    "preemptionAttempts": "preemptions tried",
    "lost": "lost to others",
    "podgroups": "gangs written",
    "queues": "queues written",
    "changedRows": "changes read",
}
_ONE: Final = {
    "pods": "pod",
    "preemptions": "preemption",
    "gangs": "gang",
    "queues": "queue",
    "changes": "change",
}


def count_in_words(name: str, count: int) -> str:
    """ "1 pod placed", "3 pods placed"; of a count that nobody has words for, its name."""
    first, _, rest = COUNTS.get(name, name).partition(" ")
    if count == 1:
        first = _ONE.get(first, first)
    return f"{count} {first} {rest}".rstrip()


REST_OF_THINKING: Final = "reasons and figures"
"""What the actions leave of it: the reasons of whoever waits, and the figures of queues."""
