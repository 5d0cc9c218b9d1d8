"""How long a job waits from its submission to its place, with many of them a second: a real
installation (`manage.py up`) on PostgreSQL, submitted to over HTTP, scheduled and carried out by
its own workers.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from tests.bench.clusters import Size, roomy
from tests.bench.database import Row, a_database, fill
from tests.running import Running

RATES = {100: 15, 500: 20}
"""Submits a second, and for how many seconds."""
THREADS = 8
_LONGEST_WAIT = 30.0
"""Seconds after the last submission: who has no place by then is told as not placed."""


def submits(scale: float, _: int) -> list[Row]:
    """`waitedMs` is from sending a request to the pod's place in the database."""
    with a_database(), tempfile.TemporaryDirectory(prefix="fumarole-submits-") as folder:
        fill(roomy(Size(nodes=1_000, pending=1, running=10_000)))
        environment = {
            "DATABASE_URL": os.environ["DATABASE_URL"],
            "API_RATE_PER_MINUTE": "0",
            "MAX_WAITING_JOBS_PER_USER": "0",
        }
        rows = []
        with Running(Path(folder) / "var", **environment) as site:
            site.wait_until_sessions_run()
            token = (site.var / "cli-token").read_text().strip()
            for rate, most in RATES.items():
                crowd = Crowd(site.address, token, rate, max(3, round(most * scale)))
                crowd.submit()
                rows.append(_row(crowd, _places_of(crowd)))
        return rows


@dataclass
class Crowd:
    """Submits evenly from several threads, until its time is over: a site that does not keep up
    gets fewer.
    """

    address: str
    token: str
    rate: int
    seconds: int
    sent: dict[str, float] = field(default_factory=dict)  # job -> when
    answered: list[float] = field(default_factory=list)  # seconds a request took
    refused: list[str] = field(default_factory=list)

    def submit(self) -> None:
        self._begun = time.monotonic() + 0.5
        threads = [
            threading.Thread(target=self._submit_each, args=(first,)) for first in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _submit_each(self, first: int) -> None:
        connection = HTTPConnection(urlsplit(self.address).netloc, timeout=60)
        for number in range(first, self.seconds * self.rate, THREADS):
            due = self._begun + number / self.rate
            if time.monotonic() > self._begun + self.seconds:
                break
            time.sleep(max(0.0, due - time.monotonic()))
            self._submit(connection, f"job-{self.rate}-{number}", f"team-{number % 90:05}")
        connection.close()

    def _submit(self, connection: HTTPConnection, name: str, queue: str) -> None:
        """Without a client's library: it would take a good part of the two cores."""
        from tests.worlds import manifest

        body = json.dumps(manifest(name, queue, seconds=10))
        sent = time.time()
        begin = time.monotonic()
        connection.request("POST", "/api/v1/jobs/", body, self._headers())
        answer = connection.getresponse()
        text = answer.read()
        self.answered.append(time.monotonic() - begin)
        if answer.status == 201:
            self.sent[name] = sent
        else:
            self.refused.append(f"{answer.status} {text[:300].decode()}")

    def _headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}


def _places_of(crowd: Crowd) -> dict[str, datetime]:
    """When each of its jobs got a place."""
    until = time.monotonic() + _LONGEST_WAIT
    found = _bound(crowd.rate)
    while len(found) < len(crowd.sent) and time.monotonic() < until:
        time.sleep(0.5)
        found = _bound(crowd.rate)
    return found


def _bound(rate: int) -> dict[str, datetime]:
    from scheduler.models import Pod

    pods = Pod.objects.filter(podgroup__name__startswith=f"job-{rate}-").exclude(bound_at=None)
    return dict(pods.values_list("podgroup__name", "bound_at"))


def _row(crowd: Crowd, places: Mapping[str, datetime]) -> Row:
    waited = sorted(
        (places[name].timestamp() - sent) * 1000
        for name, sent in crowd.sent.items()
        if name in places
    ) or [0.0]
    answered = sorted(crowd.answered)
    return {
        "what": f"{crowd.rate} submits a second for {crowd.seconds} s, by HTTP",
        "jobs": len(crowd.sent),
        "perSecond": round(len(crowd.sent) / crowd.seconds, 1),
        "waitedMsMedian": round(waited[len(waited) // 2]),
        "waitedMsP99": round(waited[int(len(waited) * 0.99)]),
        "answeredMsMedian": round(answered[len(answered) // 2] * 1000, 1),
        "answeredMsP99": round(answered[int(len(answered) * 0.99)] * 1000, 1),
        "notPlaced": len(crowd.sent) - len(places),
        "refused": len(crowd.refused),
        **({"firstRefusal": crowd.refused[0]} if crowd.refused else {}),
    }
