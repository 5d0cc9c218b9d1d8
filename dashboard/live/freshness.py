"""Whether a page is still as new as when it was read.

An open page hears of changes through its socket. What changed between the reading of the page and
the first word of the socket would be missed, so the page asks for itself once more. It carries a
mark, taken before anything of it was read: if nothing was written since, it is told so in a line
and is not made a second time.
"""

from __future__ import annotations

from scheduler.models import ClusterState
from scheduler.selectors.sessions.change_log import Position, log_state, untouched_since

_SEPARATOR = " "


def page_mark() -> str:
    """To be taken before the page reads. Empty where no mark can be trusted."""
    state = log_state()
    if not state.is_named:
        return ""
    return _SEPARATOR.join((_cluster_mark(), str(state.here), state.log))


def is_as_new_as(mark: str) -> bool:
    """Nothing that pages follow was written since the mark was taken."""
    parts = mark.split(_SEPARATOR)
    if len(parts) != 3 or not parts[1].isdecimal():
        return False
    cluster, number, log = parts
    position = Position(log, int(number))
    return untouched_since(position) is not None and cluster == _cluster_mark()


def _cluster_mark() -> str:
    """The log has queues, jobs, pods and nodes. Sessions and the pause are told apart here."""
    columns = ("last_session", "paused", "policy_id", "period_seconds")
    values = ClusterState.objects.values_list(*columns).first() or ()
    return "/".join(str(value) for value in values)
