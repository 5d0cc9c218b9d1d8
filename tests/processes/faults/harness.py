"""One run: a whole Fumarole with two schedulers binds gangs, faults come at random, and what the
API server has is looked at all the time.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import yaml

from tests.control_plane.fumarole import Fumarole
from tests.control_plane.plane import ControlPlane
from tests.processes.faults.kinds import KINDS, USER, Scene, allow_everything, client_of
from tests.processes.faults.load import Load
from tests.processes.faults.proxy import Proxy

_LOOK_SECONDS = 0.5
_PATIENCE_SECONDS = 420.0
_LEASE_SECONDS = "6"  # or each kill of a scheduler would stop everything for half a minute

_PLACES = """
SELECT replace(p.uid::text, '-', ''), coalesce(n.name, ''), p.phase
FROM scheduler_pod p LEFT JOIN scheduler_node n ON n.id = p.node_id
"""
_OPEN = "SELECT count(*) FROM scheduler_decision WHERE done_at IS NULL"
_ASKED_AGAIN = "SELECT count(*) FROM scheduler_decision WHERE attempts > 1"


@dataclass(slots=True)
class Tally:
    """Of one kind of fault."""

    times: int = 0
    binds: int = 0  # while it lasted
    longest_stand: float = 0.0  # seconds from its end until the next bind
    problems: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    binds: int = 0
    looks: int = 0
    made_again: int = 0
    made_again_unseen: int = 0
    asked_again: int = 0
    seconds: float = 0.0
    tallies: dict[str, Tally] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        yield f"{'fault':36} {'times':>5} {'binds':>6} {'problems':>8} {'next bind, at most':>20}"
        for name, tally in self.tallies.items():
            stand = f"{tally.longest_stand:.1f} s"
            found = len(tally.problems)
            yield f"{name:36} {tally.times:>5} {tally.binds:>6} {found:>8} {stand:>20}"
        times = sum(tally.times for tally in self.tallies.values())
        yield f"{'all':36} {times:>5} {self.binds:>6} {len(self.problems):>8}"
        yield (
            f"{self.binds} binds and {self.looks} looks in {self.seconds:.0f} s; "
            f"{self.asked_again} decisions were carried out in more than one attempt; "
            f"{self.made_again} pods went with their nodes and were made again, "
            f"{self.made_again_unseen} of them before they were seen on a node"
        )
        yield from (f"  {problem}" for problem in self.problems[:40])


class Harness:
    def __init__(
        self, scene: Scene, database: str, binds: int, kinds: Sequence[str], rounds: int
    ) -> None:
        self._scene = scene
        self._database = database
        self._binds = binds
        self._kinds = kinds
        self._rounds = rounds
        self._is_over = threading.Event()  # no more faults
        self._is_quiet = threading.Event()  # the last one has ended
        self._is_done = threading.Event()  # nothing needs its processes any more
        self._report = Report(tallies={name: Tally() for name in kinds})

    def run(self) -> Report:
        with self._faults():
            self._run()
        return self._report

    def _run(self) -> None:
        began = time.monotonic()
        load = self._scene.load
        self._look_until(self._is_enough, "the binds")
        self._is_over.set()
        self._look_until(self._has_no_fault, "the last fault to end")
        self._look_until(load.is_settled, "all gangs to be whole", goes_on=False)
        load.check_at_the_end()
        self._compare_with_database()
        self._report.binds = load.binds
        self._report.looks = load.looks
        self._report.made_again = load.made_again
        self._report.made_again_unseen = load.made_again_unseen
        self._report.asked_again = self._number(_ASKED_AGAIN)
        self._report.seconds = time.monotonic() - began
        self._report.problems = load.problems

    def _is_enough(self) -> bool:
        """So many binds, and each kind of fault so often."""
        fewest = min(tally.times for tally in self._report.tallies.values())
        return self._scene.load.binds >= self._binds and fewest >= self._rounds

    def _look_until(self, is_so: Callable[[], bool], what: str, *, goes_on: bool = True) -> None:
        load = self._scene.load
        last = (time.monotonic(), load.binds)
        while not is_so():
            load.look(goes_on=goes_on)
            for name in self._scene.fumarole.start_what_has_ended():
                load.problems.append(f"{name} ended by itself")
            if load.binds > last[1]:
                last = (time.monotonic(), load.binds)
            if time.monotonic() - last[0] > _PATIENCE_SECONDS:
                load.problems.append(f"waited in vain for {what}: {load.waiting()[:10]}")
                return
            time.sleep(_LOOK_SECONDS)

    # Faults

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """What a thread has started is killed when the thread ends, so it stays to the end."""
        threads = [
            threading.Thread(target=self._make_faults, name="faults"),
            threading.Thread(target=self._keep_comparing, name="compare"),
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            self._is_done.set()
            for thread in threads:
                thread.join()

    def _keep_comparing(self) -> None:
        while not self._is_done.wait(_LOOK_SECONDS):
            self._scene.load.compare()

    def _has_no_fault(self) -> bool:
        return self._is_quiet.is_set()

    def _make_faults(self) -> None:
        chance = self._scene.chance
        while not self._is_over.is_set():
            for name in chance.sample(list(self._kinds), len(self._kinds)):
                if self._is_over.wait(chance.uniform(0.5, 4.0)):
                    break
                self._make_fault(name)
        self._is_quiet.set()
        self._is_done.wait()

    def _make_fault(self, name: str) -> None:
        load = self._scene.load
        tally = self._report.tallies[name]
        before = len(load.problems)
        binds = load.binds
        print(f"{time.strftime('%H:%M:%S')} {load.binds:5} binds; {name}", flush=True)
        try:
            KINDS[name](self._scene)
        except Exception as problem:  # the rest of the run is still worth something
            load.problems.append(f"{name} could not be made: {problem!r}")
        tally.binds += load.binds - binds
        tally.longest_stand = max(tally.longest_stand, self._seconds_to_next_bind())
        tally.times += 1
        tally.problems += load.problems[before:]
        for problem in load.problems[before:]:
            print(f"  {problem}", flush=True)

    def _seconds_to_next_bind(self) -> float:
        load = self._scene.load
        began = time.monotonic()
        binds = load.binds
        while load.binds == binds and not self._is_over.is_set():
            if time.monotonic() - began > _PATIENCE_SECONDS:
                load.problems.append("no bind came any more")
                break
            time.sleep(0.1)
        return time.monotonic() - began

    # The end

    def _compare_with_database(self) -> None:
        """Sooner or later both know the same."""
        deadline = time.monotonic() + 120
        while problems := self._differences():
            if time.monotonic() > deadline:
                self._scene.load.problems += problems
                return
            time.sleep(1)

    def _differences(self) -> list[str]:
        there = {uid.replace("-", ""): node for uid, node in self._scene.load.places().items()}
        with psycopg.connect(self._database) as connection:
            rows = connection.execute(_PLACES).fetchall()
        found = []
        for uid, node, phase in rows:
            if there.pop(uid, None) != node or phase not in ("Bound", "Running"):
                found.append(f"the database has pod {uid} on “{node}” as {phase}")
        found += [f"the database does not have pod {uid}" for uid in there]
        opened = self._number(_OPEN)
        if opened:
            found.append(f"{opened} decisions are still open")
        return found

    def _number(self, question: str) -> int:
        with psycopg.connect(self._database) as connection:
            row = connection.execute(question).fetchone()
        assert row is not None
        return int(row[0])


def run(
    plane: ControlPlane,
    database: str,
    folder: Path,
    *,
    binds: int,
    nodes: int,
    seed: int,
    kinds: Sequence[str],
    rounds: int = 1,
) -> Report:
    """On a clean control plane and an empty database. Each kind comes at least `rounds` times."""
    chance = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    allow_everything(plane)
    load = Load(client_of(plane.kubeconfig), nodes, chance)
    with ExitStack() as stack:
        stack.callback(load.close)
        stack.enter_context(plane.kwok())
        proxy = stack.enter_context(Proxy(int(plane.address.rpartition(":")[2])))
        fumarole = stack.enter_context(
            Fumarole(
                folder,
                kubeconfig=_through(proxy, plane.user(USER), folder / "kubeconfig"),
                database=database,
                schedulers=2,
                SCHEDULER_LEASE_SECONDS=_LEASE_SECONDS,
            )
        )
        scene = Scene(plane, proxy, fumarole, load, chance)
        load.make_nodes()
        return Harness(scene, database, binds, kinds, rounds).run()


def _through(proxy: Proxy, kubeconfig: Path, path: Path) -> Path:
    """The same, with the proxy in front of the server."""
    config = yaml.safe_load(kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{proxy.port}"
    path.write_text(yaml.safe_dump(config))
    return path
