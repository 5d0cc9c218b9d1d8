"""The history of a queue: samples of what it had, as objects and as rows for a spreadsheet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dashboard.api.objects import iso_time
from dashboard.present.charts import LINES
from scheduler.domain.resources import Resources
from scheduler.models import QueueSample

STEPS = {"raw": QueueSample.RAW, "minute": QueueSample.MINUTE, "hour": QueueSample.HOUR}
"""How fine the samples are -> their seconds."""
MOST_SAMPLES = 5000


def last_samples(queue: str, seconds: int, limit: int) -> list[dict[str, Any]]:
    """The newest ones, oldest first."""
    samples = QueueSample.objects.filter(queue_name=queue, seconds=seconds)
    newest = samples.order_by("-at")[:limit]
    return [_sample_object(sample) for sample in reversed(newest)]


def _sample_object(sample: QueueSample) -> dict[str, Any]:
    amounts = {}
    for name in LINES:
        amounts[name] = Resources(sample.data.get(name) or {}).to_quantities()
    return {"at": iso_time(sample.at), "state": sample.data.get("state") or "", **amounts}


def sample_rows(samples: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """One row a resource, as the page's own export has them."""
    for sample in samples:
        resources: set[str] = set()
        for name in LINES:
            resources.update(sample[name])
        for resource in sorted(resources):
            row = {"at": sample["at"], "state": sample["state"], "resource": resource}
            for name in LINES:
                row[name] = sample[name].get(resource, "")
            yield row
