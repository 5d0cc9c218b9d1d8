"""A process that watches pods and notes when each was there, bound and running.

It does nothing else, so it hears each event a moment after the API server has sent it, whichever
scheduler is measured.
"""

from __future__ import annotations

import multiprocessing
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.credentials import from_kubeconfig
from scheduler.clusters.kubernetes.resources import PODS
from scheduler.clusters.kubernetes.watch import Watch
from scheduler.clusters.kubernetes.watch_events import Changed, Listed

_Seen = tuple[str, bool, bool]  # name, has a node, runs


@dataclass
class Timeline:
    """By the name of the pod, in seconds of the machine's own clock."""

    created: dict[str, float] = field(default_factory=dict)
    bound: dict[str, float] = field(default_factory=dict)
    running: dict[str, float] = field(default_factory=dict)

    def see(self, name: str, *, is_bound: bool, runs: bool, at: float) -> None:
        self.created.setdefault(name, at)
        if is_bound:
            self.bound.setdefault(name, at)
        if runs:
            self.running.setdefault(name, at)


class TimelineProcess:
    """Started before the first pod; ends when so many pods run."""

    def __init__(self, kubeconfig: Path, pods: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_watch, args=(kubeconfig, pods, theirs), daemon=True)
        self._process.start()

    def wait_until_it_listens(self) -> None:
        assert self._pipe.recv() == "listening"

    def has_ended(self) -> bool:
        return self._pipe.poll()

    def result(self) -> Timeline:
        found = self._pipe.recv()
        self._process.join()
        assert isinstance(found, Timeline)
        return found

    def stop(self) -> None:
        if self._process.is_alive():
            self._process.terminate()


def _watch(kubeconfig: Path, pods: int, pipe: Connection) -> None:
    timeline = Timeline()
    watch = Watch(Client(from_kubeconfig(kubeconfig)), PODS, _read)
    for event in watch:
        if isinstance(event, Listed):
            pipe.send("listening")
        elif isinstance(event, Changed):
            name, is_bound, runs = event.value
            timeline.see(name, is_bound=is_bound, runs=runs, at=time.monotonic())
            if len(timeline.running) >= pods:
                break
    pipe.send(timeline)


def _read(raw: dict[str, Any]) -> _Seen:
    is_bound = bool(raw["spec"].get("nodeName"))
    return raw["metadata"]["name"], is_bound, raw["status"].get("phase") == "Running"
