"""`manage.py workload MIX`: submit made-up or recorded jobs, at any rate and speed."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from scheduler.domain.mixes import MIXES, Target
from scheduler.domain.plans import counted
from scheduler.management.database import check_may_be_changed
from scheduler.management.trace_files import read_trace_file
from scheduler.services.cluster.simulation import set_speed
from scheduler.services.demo.workload import (
    Stream,
    UnknownMix,
    current_stream,
    leaf_targets,
    start_stream,
    stop_stream,
    submit_numbers,
    submit_trace,
)
from scheduler.supervisor.problems import StartError

UNUSABLE = 2
LIST = "\n".join(
    f"  {mix.name:<16} {mix.about} ({mix.rate:g} jobs a second)" for mix in MIXES.values()
)


class Command(BaseCommand):
    help = (
        "Submit sample jobs: a named mix of made-up jobs, or the jobs of a recorded load. "
        "Without a mix: show what is being submitted now."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("mix", nargs="?", metavar="MIX", help="one of " + ", ".join(MIXES))
        parser.add_argument(
            "--rate", type=float, help="jobs per simulated second, instead of the mix's own rate"
        )
        parser.add_argument(
            "--seed", type=int, default=7, help="the same seed makes the same jobs (default 7)"
        )
        parser.add_argument(
            "--queues",
            metavar="A,B",
            help="only these queues; the first is the greedy one (default: every leaf)",
        )
        parser.add_argument("--count", type=int, help="end after this many jobs")
        parser.add_argument(
            "--duration",
            type=float,
            metavar="SECONDS",
            help="end after this many simulated seconds",
        )
        parser.add_argument(
            "--at-once",
            action="store_true",
            help="submit all --count jobs now, not one after the other",
        )
        parser.add_argument(
            "--most-waiting",
            type=int,
            default=60,
            help="skip jobs while this many gangs wait, divided among the queues (default 60)",
        )
        parser.add_argument("--stop", action="store_true", help="submit no more jobs")
        parser.add_argument("--speed", type=float, help="simulated seconds per real second")
        parser.add_argument(
            "--csv",
            metavar="FILE",
            help=(
                "a recorded load: CSV with submit, cpu, duration; tasks, memory, gpu, user, queue, "
                "or SWF; also compressed with gzip"
            ),
        )
        parser.add_argument(
            "--faster",
            type=float,
            default=1.0,
            help="with --csv: this many times as fast as recorded (default 1)",
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002 - Django's signature
        try:
            if _would_change(options):
                check_may_be_changed()
            if options["speed"] is not None:
                self._set_speed(options["speed"])
            self._run(options)
        except (ValueError, UnknownMix, StartError) as error:
            self.stderr.write(str(error))
            sys.exit(UNUSABLE)

    def _run(self, options: dict[str, Any]) -> None:
        if options["stop"]:
            self._stop()
        elif options["csv"]:
            self._submit_recorded(options["csv"], options["faster"])
        elif options["mix"] is None:
            if options["speed"] is None:
                self._show_current()
        elif options["at_once"]:
            self._submit_at_once(options)
        else:
            self._start(options)

    def _set_speed(self, speed: float) -> None:
        set_speed(speed)
        self.stdout.write(f"One real second is now {speed:g} simulated seconds.")

    def _stop(self) -> None:
        if stop_stream():
            self.stdout.write("No more jobs are submitted.")
        else:
            self.stdout.write("No jobs were being submitted.")

    def _show_current(self) -> None:
        stream = current_stream()
        if stream:
            rate = f"{stream['rate']:g} jobs a second"
            now = f"{stream['mix']}, {rate}, {stream['number']} so far"
        else:
            now = "nothing"
        self.stdout.write(f"Submitting now: {now}.\nMixes:\n{LIST}")

    def _start(self, options: dict[str, Any]) -> None:
        stream = Stream(
            mix=options["mix"],
            rate=_positive("rate", options["rate"]),
            seed=options["seed"],
            targets=_targets(options["queues"]),
            most_waiting=options["most_waiting"],
            count=_positive("count", options["count"]),
            duration=_positive("duration", options["duration"]),
        )
        start_stream(stream)
        self.stdout.write(
            f"From now on {options['mix']} jobs are submitted. "
            "End it with “.venv/bin/python manage.py workload --stop”."
        )

    def _submit_at_once(self, options: dict[str, Any]) -> None:
        if options["mix"] not in MIXES:
            raise UnknownMix(options["mix"])
        count = _positive("count", options["count"]) or 1
        targets = _targets(options["queues"]) or leaf_targets()
        submitted = submit_numbers(
            options["mix"],
            range(count),
            seed=options["seed"],
            targets=targets,
        )
        self.stdout.write(f"{submitted} of {counted(count, 'job was', 'jobs were')} submitted.")

    def _submit_recorded(self, path: str, faster: float) -> None:
        _positive("faster", faster)
        jobs = read_trace_file(path)
        seconds = jobs[-1].at / faster
        self.stdout.write(f"{counted(len(jobs), 'job')} over {seconds:.0f} s; Ctrl-C stops.")
        submitted = 0
        refused = 0
        try:
            for submitted, refused in submit_trace(jobs, faster=faster, name=_job_name(path)):
                if (submitted + refused) % 100 == 0:
                    self.stdout.write(f"{submitted} submitted, {refused} refused")
        except KeyboardInterrupt:
            self.stdout.write("Stopped.")
        jobs_were = counted(submitted, "job was", "jobs were")
        self.stdout.write(f"{jobs_were} submitted, {refused} refused.")


def _would_change(options: dict[str, Any]) -> bool:
    """Without any of these it only shows what is being submitted."""
    given = (options["mix"], options["speed"], options["csv"])
    return options["stop"] or any(value is not None for value in given)


def _positive(name: str, number: Any) -> Any:
    if number is not None and number <= 0:
        raise ValueError(f"--{name} is {number:g}; it must be more than 0.")
    return number


def _targets(names: str | None) -> list[Target]:
    if names is None:
        return []
    known = {target.queue: target for target in leaf_targets()}
    wanted = []
    for name in names.split(","):
        if name.strip():
            wanted.append(name.strip())
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        wrong = ", ".join(unknown) or names
        raise ValueError(f"{wrong} is no leaf queue; there are {', '.join(known)}.")
    return [known[name] for name in wanted]


def _job_name(path: str) -> str:
    """The file's name as a part of job names: letters, digits and "-" only."""
    stem = Path(path).stem.lower()
    kept = re.sub(r"[^a-z0-9]", "-", stem).strip("-")
    return kept[:40] or "trace"
