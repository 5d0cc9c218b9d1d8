"""The runs ahead of a preview: how long pods run in them, and when the jobs of it start."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np

from scheduler.admission.reading.workload import JobManifest
from scheduler.domain.previews import Prospect, TriedJob
from scheduler.domain.reasons import ReasonCode
from scheduler.domain.start_forecasts import HIGH, LOW, MEDIAN, Calibration, Range, Waits
from scheduler.domain.tables import Floats
from scheduler.services.change_sets.preview import Scene, part_of, prospect_of
from scheduler.services.change_sets.preview_jobs import key_of
from scheduler.services.jobs.run_times import KnownRunTimes, size_of_request, sources_of
from scheduler.services.jobs.start_times import past_forecasts
from scheduler.services.jobs.trial_jobs import gang_of

Told = Callable[[float, float], bool]
"""Hears how far it is and by when a run must be over, as parts of the whole. False stops it."""


class Runs:
    """All look `minutes` ahead. Run times are declared or learnt."""

    def __init__(self, minutes: int, told: Told, known: KnownRunTimes) -> None:
        self._minutes = minutes
        self._told = told
        self._known = known

    def prospect(self, scene: Scene, begin: float, end: float) -> Prospect:
        """With the usual run times, from one part of the whole to another."""
        return self._ahead(scene, self._known.seconds(scene.snapshot)[MEDIAN], begin, end)

    def _ahead(self, scene: Scene, seconds: Floats, begin: float, end: float) -> Prospect:
        keep_going = part_of(self._told, self._minutes, begin, end)
        return prospect_of(scene, self._minutes, seconds, keep_going)

    def sources(self, scene: Scene) -> dict[str, int]:
        return sources_of(scene.snapshot, self._known.seconds(scene.snapshot)[MEDIAN])

    def jobs(self, scene: Scene, usual: Prospect) -> list[TriedJob]:
        """What would become of the jobs of the scene, by runs with short and long run times too."""
        if not scene.jobs:
            return []
        runs = [usual]
        seconds = self._known.seconds(scene.snapshot)
        if not np.array_equal(seconds[LOW], seconds[HIGH], equal_nan=True):
            runs.append(self._ahead(scene, seconds[LOW], 0.8, 0.9))
            runs.append(self._ahead(scene, seconds[HIGH], 0.9, 1.0))
        moment = datetime.fromtimestamp(scene.snapshot.taken_at, UTC)
        calibration = Calibration(past_forecasts(moment))
        longest = self._minutes * 60.0
        return [_tried(job, scene, runs, calibration, longest) for job in scene.jobs]


def _tried(
    job: JobManifest,
    scene: Scene,
    runs: list[Prospect],
    calibration: Calibration,
    longest: float,
) -> TriedJob:
    key = key_of(job)
    usual = runs[0]
    reason, message = usual.reasons.get(key, ("", ""))
    if key in scene.strange:
        reason = ReasonCode.EXCEEDS_CLUSTER.value
        message = f"The cluster has no {scene.strange[key]} at all."
    start = usual.starts.get(key)
    given = None
    if start is not None:
        given = _range(job, runs, calibration, longest)
    return TriedJob(
        podgroup=key,
        queue=job.queue,
        pods=job.replicas,
        start=start,
        earliest=given.earliest if given else None,
        latest=given.latest if given else None,
        cases=given.cases if given else 0,
        reason=reason,
        message=message,
        evictions=len({loss.pod for loss in usual.losses if loss.beneficiary == key}),
    )


def _range(
    job: JobManifest, runs: list[Prospect], calibration: Calibration, longest: float
) -> Range:
    """What the past teaches of such waits. Where that is too little, what the runs say.

    A run in which it does not start says that it may take until the end of the look, `longest`. A
    gang that starts in the first session starts now: that is no forecast.
    """
    key = key_of(job)
    found = [run.starts.get(key, longest) for run in runs]
    waits = Waits(min(found), found[0], max(found))
    plain = Range(waits.low, waits.high, 0)
    if found[0] <= 0.0:
        return plain
    size = size_of_request(gang_of(job).min_resources)
    return calibration.range_of(job.queue, size, waits) or plain
