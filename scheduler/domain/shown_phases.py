"""The one word for the state of a job: the same in lists, on its page and in the API."""

from __future__ import annotations

from typing import Final

STOPPING: Final = ("Aborting", "Terminating", "Completing")
JOB_SPEAKS: Final = frozenset(
    {"Restarting", *STOPPING, "Aborted", "Completed", "Terminated", "Failed"}
)


def shown_phase(gang: str, job: str | None) -> str:
    """The gang's phase while it waits or runs.

    The job's own, which says more, when it is stopping or has ended.
    """
    if job is not None and job in JOB_SPEAKS:
        return job
    return gang
