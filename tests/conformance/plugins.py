"""Plugins that exist only in Volcano's tests, written for our engine and named in a policy by their
dotted path.
"""

from __future__ import annotations

from scheduler.engine.plugin import Plugin, Vote
from scheduler.engine.state.gang import Gang


class Rejecter(Plugin):
    """Votes against the podgroup pgA and for every other one."""

    name = "test-rejecter"

    def job_enqueueable(self, job: Gang) -> Vote:
        return Vote.REJECT if job.key.endswith("/pgA") else Vote.PERMIT


PATHS = {"test-rejecter": "tests.conformance.plugins.Rejecter"}
