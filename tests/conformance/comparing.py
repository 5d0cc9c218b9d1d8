"""How our outcome is held against what Volcano's tests expect and against what the real Volcano was
seen to do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from scheduler.engine.decisions import Outcome
from tests.conformance.cases import Case, queue_of_pods, volcano_amounts

# --- expectations of Volcano's own tests -------------------------------------------------------


def unmet(expect: Case, relaxed: Case, outcome: Outcome) -> list[str]:
    """What does not come out as expected, in words; nothing when all is well."""
    found = {
        "bindMap": {bind.pod: bind.node for bind in outcome.binds},
        "evicted": sorted(eviction.pod for eviction in outcome.evictions),
        "phases": {group: phase.label for group, phase in outcome.phases.items()},
    }
    complaints = []
    for key, value in found.items():
        alternatives = [*([expect[key]] if key in expect else []), *relaxed.get(f"{key}AnyOf", [])]
        if alternatives and not any(
            _agrees(key, alternative, value) for alternative in alternatives
        ):
            complaints.append(f"{key}: expected {alternatives[0]}, got {value}")
    return complaints + [
        problem
        for group, want in expect.get("pipelined", {}).items()
        for problem in _pipelined(group, want, outcome)
    ]


def _agrees(key: str, expected: Any, found: Any) -> bool:
    if key == "evicted":
        return sorted(expected) == found
    if key == "phases":
        return all(found.get(group) == phase for group, phase in expected.items())
    return bool(expected == found)


def _pipelined(group: str, want: Case, outcome: Outcome) -> list[str]:
    nodes = {
        reservation.node for reservation in outcome.reservations if reservation.podgroup == group
    }
    allowed = set(want["nodeAnyOf"])
    return (
        []
        if nodes and nodes <= allowed
        else [
            f"pipelined: {group} should wait on one of {sorted(allowed)}, waits on {sorted(nodes)}"
        ]
    )


# --- what the real Volcano was seen to do ------------------------------------------------------


def differing(case: Case, outcome: Outcome) -> dict[str, str]:
    """Kind of difference -> both sides in words: deserved, binds, evictions, phases."""
    compare = _stable_differences if case["stable"] else _unstable_differences
    return {
        kind: text for kind, text in (*_deserved(case, outcome), *compare(case, outcome)) if text
    }


def _deserved(case: Case, outcome: Outcome) -> Iterable[tuple[str, str]]:
    """Root is left out: there it is the cluster's total by definition, in Volcano the sum of its
    children.
    """
    for queue, seen in case["outcome"]["queuesAtOpen"].items():
        ours = (
            volcano_amounts(outcome.queues_at_open[queue].deserved)
            if queue in outcome.queues_at_open
            else {}
        )
        off = {
            name
            for name in {*ours, *seen["deserved"]} - {"pods"}
            if not _close(name, ours.get(name, 0), seen["deserved"].get(name, 0))
        }
        if off and queue != "root":
            yield "deserved", f"{queue}: Volcano {seen['deserved']}, ours {ours}"


def _close(name: str, ours: float, theirs: float) -> bool:
    """Within rounding: ours are whole units, theirs are fractions that stop being shared out below
    a tenth of a unit.
    """
    unit = 1.0 if name in ("cpu", "memory") else 0.001
    return abs(ours - float(theirs)) <= max(2 * unit, 1e-6 * abs(ours))


def _stable_differences(case: Case, outcome: Outcome) -> Iterable[tuple[str, str]]:
    seen = case["outcome"]
    queues = queue_of_pods(case)
    binds = {bind.pod: bind.node for bind in outcome.binds}
    yield "binds", _unlike(seen["bindMap"], binds)
    yield (
        "evictions",
        _unlike(
            _per_queue(seen["evicted"], queues),
            _per_queue((eviction.pod for eviction in outcome.evictions), queues),
        ),
    )
    yield (
        "phases",
        _unlike(
            seen["phases"],
            {
                group: phase.label
                for group, phase in outcome.phases.items()
                if group in seen["phases"]
            },
        ),
    )


def _unlike(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    keys = sorted(key for key in {*theirs, *ours} if theirs.get(key) != ours.get(key))
    return (
        (
            f"Volcano { {key: theirs.get(key) for key in keys} }, ours "
            f"{ {key: ours.get(key) for key in keys} }"
        )
        if keys
        else ""
    )


def _per_queue(pods: Iterable[str], queues: Mapping[str, str]) -> dict[str, int]:
    return dict(Counter(queues[pod] for pod in pods))


def _unstable_differences(case: Case, outcome: Outcome) -> Iterable[tuple[str, str]]:
    """Where Volcano itself varies, ours must keep what never varied and stay within
    what was seen.
    """
    known = case["invariants"]
    queues = queue_of_pods(case)
    binds = {bind.pod: bind.node for bind in outcome.binds}
    always = {pod: binds.get(pod) for pod in known["bindMapAlways"]}
    yield (
        "binds",
        _unlike(known["bindMapAlways"], always)
        or _outside(known, "bound", _per_queue(binds, queues)),
    )
    evicted = [eviction.pod for eviction in outcome.evictions]
    yield "evictions", _outside(known, "evicted", _per_queue(evicted, queues))
    yield (
        "phases",
        _unlike(
            known["phasesAlways"],
            {group: outcome.phases[group].label for group in known["phasesAlways"]},
        ),
    )


def _outside(known: Case, kind: str, ours: Mapping[str, int]) -> str:
    exact = known.get(f"{kind}PerQueue")
    if exact is not None:
        return _unlike(exact, ours)
    ranges = known[f"{kind}PerQueueRange"]
    strays = {queue: count for queue, count in ours.items() if queue not in ranges}
    strays |= {
        queue: ours.get(queue, 0)
        for queue, (least, most) in ranges.items()
        if not least <= ours.get(queue, 0) <= most
    }
    return f"Volcano {ranges}, ours {strays}" if strays else ""
