"""manage.py workload MIX: let made-up or recorded jobs come, at any rate and speed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from scheduler.domain.mixes import MIXES, Target
from scheduler.domain.plans import counted
from scheduler.domain.traces import TraceError, TraceJob, read_trace
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

UNUSABLE = 2
LIST = "\n".join(
    f"  {mix.name:<16} {mix.about} ({mix.rate:g} jobs a second)" for mix in MIXES.values()
)


class Command(BaseCommand):
    help = "Let jobs come by themselves: a named mix of made-up ones, or those of a recorded load. Without anything: what is coming now."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("mix", nargs="?", metavar="MIX", help="one of " + ", ".join(MIXES))
        parser.add_argument(
            "--rate", type=float, help="jobs a simulated second, instead of the mix's own"
        )
        parser.add_argument(
            "--seed", type=int, default=7, help="the same seed makes the same jobs (default 7)"
        )
        parser.add_argument(
            "--queues",
            metavar="A,B",
            help="only these queues; the first is the greedy one (default: every leaf)",
        )
        parser.add_argument("--count", type=int, help="so many jobs, then no more")
        parser.add_argument(
            "--duration", type=float, metavar="SECONDS", help="for so many simulated seconds"
        )
        parser.add_argument(
            "--at-once",
            action="store_true",
            help="submit --count jobs now instead of letting them come",
        )
        parser.add_argument(
            "--most-waiting",
            type=int,
            default=60,
            help="so many gangs wait at most, each queue having its share; further jobs are passed over (default 60)",
        )
        parser.add_argument("--stop", action="store_true", help="no more jobs")
        parser.add_argument("--speed", type=float, help="simulated seconds in a real one")
        parser.add_argument(
            "--csv",
            metavar="FILE",
            help="jobs of a recorded load: submit, cpu, duration; tasks, memory, gpu, user, queue",
        )
        parser.add_argument(
            "--faster",
            type=float,
            default=1.0,
            help="with --csv: so many times as fast as they came (default 1)",
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002 - Django's signature
        try:
            if options["speed"] is not None:
                self._set_speed(options["speed"])
            self._do(options)
        except (ValueError, UnknownMix) as error:
            self.stderr.write(str(error))
            sys.exit(UNUSABLE)

    def _do(self, options: dict[str, Any]) -> None:
        if options["stop"]:
            self.stdout.write("No more jobs come." if stop_stream() else "No jobs were coming.")
        elif options["csv"]:
            self._replay(options["csv"], options["faster"])
        elif options["mix"] is None:
            self._tell(silent=options["speed"] is not None)
        elif options["at_once"]:
            self._submit(options)
        else:
            self._start(options)

    def _set_speed(self, speed: float) -> None:
        set_speed(speed)
        self.stdout.write(f"{speed:g} simulated seconds pass in a real one.")

    def _tell(self, *, silent: bool) -> None:
        if silent:
            return
        stream = current_stream()
        coming = (
            f"{stream['mix']}, {stream['rate']:g} jobs a second, {stream['number']} so far"
            if stream
            else "nothing"
        )
        self.stdout.write(f"Coming now: {coming}.\nMixes:\n{LIST}")

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
            f"{options['mix']} jobs come from now on; “.venv/bin/python manage.py workload --stop” ends it."
        )

    def _submit(self, options: dict[str, Any]) -> None:
        if options["mix"] not in MIXES:
            raise UnknownMix(options["mix"])
        count = _positive("count", options["count"]) or 1
        targets = _targets(options["queues"]) or leaf_targets()
        submitted = submit_numbers(
            options["mix"], range(count), seed=options["seed"], targets=targets
        )
        self.stdout.write(f"{submitted} of {counted(count, 'job was', 'jobs were')} submitted.")

    def _replay(self, path: str, faster: float) -> None:
        jobs, submitted, refused = _read(path), 0, 0
        if faster <= 0:
            raise ValueError(f"--faster is {faster:g}; it must be more than 0.")
        self.stdout.write(
            f"{counted(len(jobs), 'job')} over {jobs[-1].at / faster:.0f} s; Ctrl-C stops."
        )
        try:
            for submitted, refused in submit_trace(jobs, faster=faster, name=_name(path)):
                if (submitted + refused) % 100 == 0:
                    self.stdout.write(f"{submitted} submitted, {refused} refused")
        except KeyboardInterrupt:
            self.stdout.write("Stopped.")
        self.stdout.write(
            f"{counted(submitted, 'job was', 'jobs were')} submitted, {refused} refused."
        )


def _positive(name: str, number: Any) -> Any:
    if number is not None and number <= 0:
        raise ValueError(f"--{name} is {number:g}; it must be more than 0.")
    return number


def _targets(names: str | None) -> list[Target]:
    if names is None:
        return []
    known = {target.queue: target for target in leaf_targets()}
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        raise ValueError(
            f"{', '.join(unknown) or names} is no leaf queue; there are {', '.join(known)}."
        )
    return [known[name] for name in wanted]


def _read(path: str) -> list[TraceJob]:
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            return read_trace(file, path)
    except TraceError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text in UTF-8"
        raise TraceError(f"{path} can not be read: {reason}.") from None


def _name(path: str) -> str:
    """Part of the jobs' names: what a name may have of the file's own."""
    kept = "".join(
        letter if letter.isascii() and letter.isalnum() else "-"
        for letter in Path(path).stem.lower()
    ).strip("-")
    return kept[:40] or "trace"
