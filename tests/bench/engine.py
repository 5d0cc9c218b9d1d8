"""The engine alone: whole sessions, the twin, growth, each action, crowds, alike pods, memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from scheduler.domain.snapshot import Snapshot
from scheduler.engine import open_session, run_session
from scheduler.engine.actions import ACTIONS
from scheduler.engine.actions.reclaim import Reclamation
from scheduler.engine.decisions import Outcome
from scheduler.engine.presets import PRESETS, VOLCANO
from scheduler.engine.session import Session
from scheduler.scenarios.clusters import Cluster
from scheduler.scenarios.world import advance
from tests.bench.clusters import Size, busy, contended, roomy, singles, takers
from tests.bench.measuring import Timing, after, interleaved, peak_memory, times
from tests.bench.twin import Twin

Row = dict[str, object]

THOUSAND = Size()
TEN_THOUSAND = Size(nodes=10_000, pending=500, running=100_000)
ONES = Size(largest_gang=1)
CLAIM = Size(nodes=10_000, running=100_000, largest_gang=16)


def scaled(size: Size, scale: float) -> Size:
    return size if scale == 1 else size.times(nodes=scale, pending=scale, running=scale)


def warm(cluster: Cluster) -> Snapshot:
    """A resident snapshot: its sums are in step, as the scheduler keeps them between sessions."""
    snapshot = cluster.snapshot()
    _ = snapshot.aggregates
    return snapshot


def session(snapshot: Snapshot, actions: tuple[str, ...] | None = None) -> Callable[[], object]:
    return partial(run_session, snapshot, VOLCANO, actions)


def _row(what: str, timing: Timing, **more: object) -> Row:
    return {"what": what, **timing.as_json(), **more}


def sessions(scale: float, repetitions: int) -> list[Row]:
    """Whole sessions with the full default policy, the snapshot resident."""
    scenarios = {
        "1,000 nodes, 1,000 pending in gangs, 10,000 running, 100 queues": roomy(
            scaled(THOUSAND, scale)
        ),
        "1,000 nodes, 1,000 pending one by one, 10,000 running, 100 queues": roomy(
            scaled(ONES, scale)
        ),
        "10,000 nodes, 500 pending in gangs, 100,000 running, 100 queues": roomy(
            scaled(TEN_THOUSAND, scale)
        ),
        "10,000 full nodes, a gang of 16 reclaims from 100,000 running": contended(
            scaled(CLAIM, scale)
        ),
    }
    snapshots = {name: warm(cluster) for name, cluster in scenarios.items()}
    timings = interleaved(
        {name: session(snapshot) for name, snapshot in snapshots.items()}, repetitions
    )
    rows = []
    for name, timing in timings.items():
        outcome = run_session(snapshots[name], VOLCANO)
        decided = {
            "binds": len(outcome.binds),
            "evictions": len(outcome.evictions),
            "reservations": len(outcome.reservations),
        }
        rows.append(
            _row(
                name,
                timing,
                **decided,
                perSecond=round((len(outcome.binds) + len(outcome.reservations)) / timing.cpu),
            )
        )
    return rows


def twin(scale: float, repetitions: int) -> list[Row]:
    """The engine and the naive twin in one run; ratios are of processor time, pair by pair."""
    rows: list[Row] = []
    for name, size in (("gangs", THOUSAND), ("one by one", ONES)):
        cluster = roomy(scaled(size, scale))
        snapshot = warm(cluster)
        outcome = run_session(snapshot, VOLCANO)
        placements: list[dict[str, str]] = []
        timings = interleaved(
            {"engine": session(snapshot), "twin": partial(_run_twin, cluster, placements)},
            min(repetitions, 5),
        )
        same = placements[0] == {bind.pod: bind.node for bind in outcome.binds}
        pods = len(outcome.binds)
        rows.append(
            _row(
                f"engine, {name}",
                timings["engine"],
                podsPerSecond=round(pods / timings["engine"].cpu),
            )
        )
        rows.append(
            _row(
                f"twin, {name}",
                timings["twin"],
                podsPerSecond=round(pods / timings["twin"].cpu),
                **times(timings["twin"].processor, timings["engine"].processor),
                samePlacements=same,
            )
        )
    return rows


def _run_twin(cluster: Cluster, placements: list[dict[str, str]]) -> None:
    placements.append(Twin(cluster).run())


def growth(scale: float, repetitions: int) -> list[Row]:
    """Ten times of one thing at a time; ratios are of processor time, within one run."""
    base = scaled(Size(nodes=1_000, pending=200, running=10_000, queues=50), scale)
    sizes = {
        "base": base,
        **{
            f"10 x {name}": base.times(**{name: 10})
            for name in ("nodes", "queues", "pending", "running")
        },
    }
    snapshots = {name: warm(roomy(size)) for name, size in sizes.items()}
    timings = interleaved(
        {name: session(snapshot) for name, snapshot in snapshots.items()}, repetitions
    )
    base_seconds = timings["base"].processor
    return [
        _row(name, timing, **times(timing.processor, base_seconds))
        for name, timing in timings.items()
    ]


def actions(scale: float, repetitions: int) -> list[Row]:
    """Each action alone, in a session just opened, on a cluster that gives it work."""
    rows: list[Row] = []
    work = {
        "enqueue": roomy(scaled(THOUSAND, scale)),
        "allocate": busy(scaled(THOUSAND, scale), "admitted"),
        "preempt": busy(scaled(THOUSAND, scale), "preempt"),
        "reclaim": contended(scaled(CLAIM, scale), admitted=True),
        "shed": busy(scaled(THOUSAND, scale), "starving"),
        "backfill": busy(scaled(THOUSAND, scale), "best-effort"),
    }
    for action, cluster in work.items():
        snapshot = warm(cluster)
        rows.append(_action_row(action, action, snapshot, repetitions))
        if action == "reclaim":
            rows.append(_after_the_sort(snapshot, repetitions))
    opening = after(lambda: None, lambda _: open_session(snapshot, VOLCANO), repetitions)
    return [*rows, _row("opening a session", opening)]


def _action_row(what: str, action: str, snapshot: Snapshot, repetitions: int) -> Row:
    timing = after(partial(open_session, snapshot, VOLCANO), ACTIONS[action], repetitions)
    outcome = run_session(snapshot, VOLCANO, (action,))
    counts = {
        "binds": len(outcome.binds),
        "evictions": len(outcome.evictions),
        "phaseChanges": len(outcome.phase_changes),
    }
    return _row(what, timing, reservations=len(outcome.reservations), **counts)


def _after_the_sort(snapshot: Snapshot, repetitions: int) -> Row:
    """Reclaim with the running pods found and the lines of the queues that lose sorted beforehand;
    `sortCpuMs` is what that takes.
    """
    losing = sorted(
        {eviction.queue for eviction in run_session(snapshot, VOLCANO, ("reclaim",)).evictions}
    )
    opened = partial(open_session, snapshot, VOLCANO)

    def sort(session: Session) -> Reclamation:
        reclamation = Reclamation(session, session.starving_gangs())
        for name in losing:
            reclamation.running.last_first(session.queue_tree.rows[name], sparing=True)
        return reclamation

    sorting = after(opened, sort, repetitions)
    timing = after(lambda: sort(opened()), Reclamation.run, repetitions)
    return _row("reclaim, after the sort", timing, sortCpuMs=round(sorting.cpu * 1000, 2))


def crowds(scale: float, repetitions: int) -> list[Row]:
    """Many at once: gangs that reclaim, gangs that preempt, and gangs that can never start beside
    others that can.
    """
    size = scaled(THOUSAND, scale)
    rows = [
        _action_row(
            f"reclaim, {size.nodes // 5} gangs at once",
            "reclaim",
            warm(busy(size, "everybody")),
            repetitions,
        ),
        _action_row(
            f"preempt, {size.nodes} gangs at once", "preempt", warm(busy(size, "rush")), repetitions
        ),
    ]
    first = warm(busy(size, "hopeless"))
    told = advance(first, run_session(first, VOLCANO))
    _ = told.aggregates
    timing = interleaved({"again": session(told)}, repetitions)["again"]
    gangs = size.nodes * 10
    return [
        *rows,
        _row(
            f"a session beside {gangs} gangs that can never start",
            timing,
            microsecondsPerGang=round(timing.cpu / gangs * 1e6),
        ),
    ]


def alike(scale: float, repetitions: int) -> list[Row]:
    """Whole sessions on clusters of alike pods: in Volcano's form and with our own preset."""
    clusters = {
        "50 gangs of 8 reclaim from 4,000 pods on 500 nodes": takers("reclaim", scale),
        "50 gangs of 8 preempt among 4,000 pods on 500 nodes": takers("preempt", scale),
        "10,000 single pods, 5,000 empty nodes, 1 queue": singles(scale),
        "10,000 single pods of 4 shapes, 10 queues": singles(scale, queues=10, shapes=4),
    }
    snapshots = {name: warm(cluster) for name, cluster in clusters.items()}
    work: dict[str, Callable[[], Outcome]] = {}
    for name, snapshot in snapshots.items():
        for preset in ("volcano", "fumarole"):
            work[f"{name}, {preset}"] = partial(run_session, snapshot, PRESETS[preset])
    timings = interleaved(work, repetitions)
    rows = []
    for name, timing in timings.items():
        outcome = work[name]()
        rows.append(_row(name, timing, binds=len(outcome.binds), evictions=len(outcome.evictions)))
    return rows


def memory(scale: float, _: int) -> list[Row]:
    """Peak bytes of building a snapshot, of a session on it, and of the twin."""
    rows: list[Row] = []
    for name, size in (
        ("1,000 nodes, 11,000 pods", THOUSAND),
        ("10,000 nodes, 100,500 pods", TEN_THOUSAND),
    ):
        cluster = roomy(scaled(size, scale))
        snapshot = warm(cluster)
        rows.append(
            {"what": f"snapshot, {name}", "peakMB": _megabytes(peak_memory(partial(warm, cluster)))}
        )
        rows.append(
            {"what": f"session, {name}", "peakMB": _megabytes(peak_memory(session(snapshot)))}
        )
    rows.append(
        {
            "what": "twin, 1,000 nodes, 11,000 pods",
            "peakMB": _megabytes(peak_memory(lambda: Twin(roomy(scaled(THOUSAND, scale))))),
        }
    )
    return rows


def _megabytes(count: int) -> float:
    return round(count / 1e6, 1)
