"""How long a job waits from its submission to its place, with a hundred of them a second: a real
installation (`manage.py up`) on PostgreSQL, submitted to over HTTP, scheduled and carried out by
its own workers.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.bench.clusters import Size, roomy
from tests.bench.database import Row, a_database, fill
from tests.running import Running

A_SECOND = 100
THREADS = 8
PERIOD_MS = 1000
_LONGEST_WAIT = (
    60.0  # after the last submission: whoever has no place by then is told as not placed
)


def submits(scale: float, _: int) -> list[Row]:
    """A minute of submissions; `waitedMs` is from sending the request to the pod's place in the
    database.
    """
    seconds = max(5, round(60 * scale))
    with a_database(), tempfile.TemporaryDirectory(prefix="fumarole-submits-") as folder:
        fill(roomy(Size(nodes=1_000, pending=1, running=10_000)))
        environment = {"DATABASE_URL": os.environ["DATABASE_URL"], "API_RATE_PER_MINUTE": "0"}
        with Running(Path(folder) / "var", **environment) as site:
            site.wait_until_sessions_run()
            crowd = Crowd(site.address, (site.var / "cli-token").read_text().strip())
            crowd.submit_for(seconds)
            _wait_for_places(len(crowd.sent))
            return [_waits(seconds, crowd)]


@dataclass
class Crowd:
    """Submits evenly from several threads."""

    address: str
    token: str
    sent: dict[str, float] = field(default_factory=dict)  # job -> when
    answered: list[float] = field(default_factory=list)  # seconds a request took
    late: int = 0  # sent more than a second after their time: then the machine could not keep up
    refused: list[str] = field(default_factory=list)

    def submit_for(self, seconds: int) -> None:
        begun = time.monotonic() + 0.5
        numbers = [range(first, seconds * A_SECOND, THREADS) for first in range(THREADS)]
        threads = [threading.Thread(target=self._submit_each, args=(own, begun)) for own in numbers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _submit_each(self, numbers: range, begun: float) -> None:
        from tests.worlds import manifest

        with httpx.Client(
            base_url=self.address,
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=60,
            trust_env=False,
        ) as client:
            for number in numbers:
                due = begun + number / A_SECOND
                time.sleep(max(0.0, due - time.monotonic()))
                self.late += time.monotonic() - due > 1
                self._submit(
                    client, manifest(f"job-{number}", f"team-{number % 90:05}", seconds=10)
                )

    def _submit(self, client: httpx.Client, job: dict[str, Any]) -> None:
        sent = time.time()
        begin = time.monotonic()
        answer = client.post("/api/v1/jobs/", json=job)
        self.answered.append(time.monotonic() - begin)
        if answer.status_code == 201:
            self.sent[job["metadata"]["name"]] = sent
        else:
            self.refused.append(f"{answer.status_code} {answer.text[:300]}")


def _wait_for_places(jobs: int) -> None:
    from scheduler.models import Pod

    until = time.monotonic() + _LONGEST_WAIT
    while (
        Pod.objects.exclude(podgroup__job=None).exclude(bound_at=None).count() < jobs
        and time.monotonic() < until
    ):
        time.sleep(0.5)


def _waits(seconds: int, crowd: Crowd) -> Row:
    from scheduler.models import Pod, SchedulingSession

    bound = dict(
        Pod.objects.exclude(podgroup__job=None)
        .exclude(bound_at=None)
        .values_list("podgroup__name", "bound_at")
    )
    waited = sorted(
        (bound[name].timestamp() - sent) * 1000
        for name, sent in crowd.sent.items()
        if name in bound
    ) or [0.0]
    answered = sorted(crowd.answered)
    sessions = SchedulingSession.objects.filter(state="Done").count()
    return {
        "what": f"{A_SECOND} submits a second for {seconds} s, by HTTP",
        "jobs": len(crowd.sent),
        "waitedMsMedian": round(waited[len(waited) // 2]),
        "waitedMsP99": round(waited[int(len(waited) * 0.99)]),
        "aimMs": 2 * PERIOD_MS + 100,
        "answeredMsMedian": round(answered[len(answered) // 2] * 1000, 1),
        "answeredMsP99": round(answered[int(len(answered) * 0.99)] * 1000, 1),
        "notPlaced": len(crowd.sent) - len(bound),
        "refused": len(crowd.refused),
        **({"firstRefusal": crowd.refused[0]} if crowd.refused else {}),
        "submittedLate": crowd.late,
        "sessions": sessions,
    }
