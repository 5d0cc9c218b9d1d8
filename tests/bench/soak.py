"""python -m tests.bench.soak [--minutes 60] [--speed 20] [--postgres] [--json]: the demo, left
alone at a fast clock, and watched.

Starts the real installation (`manage.py up`) in a folder of its own, lets the simulated clock run
fast, and looks at it from outside now and then: memory of each process, session time, rows of each
table against their retention, errors in any log. Ends with a verdict on each, and with exit code 1
when one does not hold. The tables are kept for minutes instead of hours and days, so that pruning
is seen to work.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.bench.steadiness import Sample, Verdict, verdicts
from tests.running import BASE, Running, clean_environment, descendants_of

KEEP_HOURS = {"decisions": 0.1, "sessions": 0.15, "evictions": 0.2, "events": 0.2, "commands": 0.2}
_MOST_SAMPLES = 120


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(143)
    )  # told to stop, it takes the installation down with it
    samples: list[Sample] = []
    with tempfile.TemporaryDirectory(prefix="fumarole-soak-") as folder:
        environment = _environment(postgres=options.postgres)
        with Running(Path(folder) / "var", demo=True, **environment) as site:
            site.wait_until_sessions_run()
            _connect(site, environment)
            _speed_up(site, environment, options.speed)
            for sample in _watch(site, options.minutes, options.every):
                samples.append(sample)
                if not options.json:
                    _show(sample)
            found = verdicts(samples, site.lines, _most_rows())
        stopped = Verdict(
            "it stops in good order",
            site.process.returncode == 0,
            f"exit code {site.process.returncode}",
        )
    _report(samples, [*found, stopped], as_json=options.json)
    return 0 if all(verdict.holds for verdict in (*found, stopped)) else 1


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long (default 60)")
    parser.add_argument(
        "--speed", type=float, default=20.0, help="simulated seconds in a real one (default 20)"
    )
    parser.add_argument(
        "--every",
        type=float,
        metavar="SECONDS",
        help="between two looks (default: as often as makes 120, at least 5)",
    )
    parser.add_argument("--postgres", action="store_true", help="on PostgreSQL instead of SQLite")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    options = parser.parse_args(arguments)
    options.every = options.every or max(5.0, options.minutes * 60 / _MOST_SAMPLES)
    return options


def _environment(*, postgres: bool) -> dict[str, str]:
    kept = {"KEEP_HOURS": ";".join(f"{table}={hours}" for table, hours in KEEP_HOURS.items())}
    if not postgres:
        return kept
    from tests.postgres import new_database

    return {**kept, "DATABASE_URL": new_database("fumarole_soak")}


def _connect(site: Running, environment: Mapping[str, str]) -> None:
    """This process looks into the installation's database, as `manage.py` beside it would."""
    import django

    os.environ.update(
        environment,
        FUMAROLE_VAR=str(site.var),
        FUMAROLE_EMBEDDED="1",
        DJANGO_SETTINGS_MODULE="dashboard.settings",
    )
    os.environ["LOG_LEVEL"] = "ERROR"
    django.setup()


def _speed_up(site: Running, environment: Mapping[str, str], speed: float) -> None:
    command = [sys.executable, "manage.py", "workload", "--speed", str(speed)]
    beside = clean_environment(site.var, site.port, FUMAROLE_EMBEDDED="1", **environment)
    subprocess.run(command, cwd=BASE, env=beside, check=True, capture_output=True)


def _watch(site: Running, minutes: float, every: float) -> Iterator[Sample]:
    from django.utils import timezone

    begun = time.monotonic()
    since = timezone.now()
    while time.monotonic() < begun + minutes * 60:
        time.sleep(max(0.0, min(every, begun + minutes * 60 - time.monotonic())))
        now = timezone.now()
        yield _look(site, (time.monotonic() - begun) / 60, since, now)
        since = now


def _look(site: Running, minute: float, since: datetime, now: datetime) -> Sample:
    from scheduler.models import SchedulingSession

    ended = SchedulingSession.objects.filter(finished_at__gt=since, finished_at__lte=now)
    done = ended.filter(state="Done")
    parts = done.values_list("durations", flat=True)
    counts = done.values_list("counts", flat=True)
    times = sorted(
        sum(lasted for part, lasted in durations.items() if part != "actions")
        for durations in parts
    ) or [0.0]
    return Sample(
        minute=round(minute, 2),
        megabytes=_megabytes(site),
        session_ms=round(times[len(times) // 2], 1),
        session_ms_p99=round(times[int(len(times) * 0.99)], 1),
        binds=sum(counted.get("binds", 0) for counted in counts),
        sessions=ended.count(),
        failed_sessions=ended.exclude(state="Done").count(),
        rows=_rows(),
        overdue_minutes=_overdue(now),
    )


def _megabytes(site: Running) -> dict[str, float]:
    """Resident memory by program, its pool processes included."""
    return {
        name: round(sum(map(_resident, (pid, *descendants_of(pid)))) / 1e6, 1)
        for name, pid in sorted(site.children().items())
    }


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # a pool process that ended just now
        return 0


def _rows() -> dict[str, int]:
    from django.apps import apps

    counted = {
        model.__name__: model._default_manager.count()
        for model in apps.get_app_config("scheduler").get_models()
    }
    return {name: count for name, count in counted.items() if count > 1}


def _overdue(now: datetime) -> dict[str, float]:
    """Minutes by which the oldest row of each table is past its time.

    Below zero: how long it still has.
    """
    from scheduler.models import Job, QueueSample
    from scheduler.services.records.retention import ENDED, KEPT, SAMPLES, kept_for

    found = {
        model.__name__: _lateness(model.objects.all(), column, kept_for(table), now)
        for table, (model, column, _) in KEPT.items()
    }
    for seconds, kept in SAMPLES:
        found[f"QueueSample of {seconds} s"] = _lateness(
            QueueSample.objects.filter(seconds=seconds), "at", kept, now
        )
    for ttl in (
        Job.objects.order_by()
        .exclude(ttl_seconds_after_finished=None)
        .values_list("ttl_seconds_after_finished", flat=True)
        .distinct()
    ):
        ended = Job.objects.filter(phase__in=ENDED, ttl_seconds_after_finished=ttl)
        found[f"Job to live {ttl} s"] = _lateness(ended, "finished_at", timedelta(seconds=ttl), now)
    return {table: late for table, late in found.items() if late is not None}


def _lateness(rows: Any, column: str, kept: timedelta, now: datetime) -> float | None:
    oldest = rows.order_by(column).values_list(column, flat=True).first()
    return None if oldest is None else round((now - kept - oldest).total_seconds() / 60, 1)


def _most_rows() -> dict[str, int]:
    """The change log is kept by number; half as much again may come between two prunings."""
    from scheduler.services.records.retention import CHANGES_KEPT

    return {"Change": CHANGES_KEPT * 3 // 2}


def _show(sample: Sample) -> None:
    memory = " ".join(f"{name} {megabytes:.0f}" for name, megabytes in sample.megabytes.items())
    largest = sorted(sample.rows.items(), key=lambda item: -item[1])[:7]
    tables = " ".join(f"{name} {count}" for name, count in largest)
    print(
        f"{sample.minute:6.1f} min | MB {memory} | {sample.sessions} sessions, "
        f"{sample.binds} binds, {sample.session_ms} ms, p99 {sample.session_ms_p99} | "
        f"{tables}"
    )
    sys.stdout.flush()


def _report(samples: list[Sample], found: list[Verdict], *, as_json: bool) -> None:
    if as_json:
        print(
            json.dumps(
                {
                    "verdicts": [asdict(verdict) for verdict in found],
                    "samples": [asdict(sample) for sample in samples],
                },
                indent=2,
            )
        )
        return
    print()
    for verdict in found:
        print(f"{'holds ' if verdict.holds else 'BROKEN'}  {verdict.what}: {verdict.figures}")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
