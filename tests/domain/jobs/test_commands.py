"""What the commands of a job begin."""

from __future__ import annotations

import pytest

from scheduler.domain.jobs.commands import NotPossible, command
from scheduler.domain.jobs.policies import (
    JobAction,
)
from tests.domain.jobs.builders import job


@pytest.mark.parametrize(
    ("phase", "action", "result"),
    [
        ("Running", JobAction.ABORT, "Aborting"),
        ("Pending", JobAction.ABORT, "Aborting"),
        ("Aborted", JobAction.ABORT, None),
        ("Aborting", JobAction.ABORT, None),
        ("Aborted", JobAction.RESUME, "Restarting"),
        ("Running", JobAction.RESUME, None),
        ("Running", JobAction.TERMINATE, "Terminating"),
        ("Completed", JobAction.RESTART, "Restarting"),
        ("Failed", JobAction.RESTART, "Restarting"),
    ],
)
def test_what_a_command_begins(phase: str, action: JobAction, result: str | None):
    step = command(job(phase), action)

    assert (step.phase.value if step else None) == result


@pytest.mark.parametrize(
    ("phase", "action"),
    [("Completed", JobAction.ABORT), ("Failed", JobAction.RESUME), ("Aborted", JobAction.RESTART)],
)
def test_a_command_that_the_phase_forbids_says_why(phase: str, action: JobAction):
    with pytest.raises(NotPossible, match="it is"):
        command(job(phase), action)
