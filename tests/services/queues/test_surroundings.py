"""A change of one queue reads the tree around it alone: held against the same with all queues read.

Random trees, with work in them; each change is made in both ways, and undone in between.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from scheduler.admission.reading.queue import read_queue
from scheduler.admission.violations import Rejected
from scheduler.domain.access import Access, Forbidden, OutOfSight, Permission
from scheduler.domain.lifecycle import NotAllowed, QueueCommand
from scheduler.domain.resources import Resources
from scheduler.models import AuditEntry, Command, Event, Node, PodGroup, Queue
from scheduler.selectors.queues.surroundings import Around
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.queues.commands import CommandOutcome, command_queue
from scheduler.services.queues.create_update import Saved, create_queue, update_queue
from scheduler.services.queues.states import refresh_states
from scheduler.services.queues.transaction import TreeEdit, tree_transaction
from scheduler.services.queues.warnings import refresh_warnings
from tests.services.queues.builders import queue

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

NAMES = [f"q{number}" for number in range(8)]
THERE = NAMES[:5]  # in every tree
EVERYBODY = [*THERE, *THERE, *NAMES, "root", "root", "default", "missing"]
_amounts = st.dictionaries(st.sampled_from(["cpu", "gpu"]), st.integers(0, 3), max_size=2)
_large_amounts = st.dictionaries(st.sampled_from(["cpu", "gpu"]), st.integers(3, 9), max_size=2)


@dataclass(frozen=True)
class Planted:
    """A queue that is there before; its parent is one of those in front of it, or root."""

    parent: int
    wish: str
    is_unknown: bool
    amounts: dict[str, dict[str, int]]
    podgroups: int


_planted = st.builds(
    Planted,
    parent=st.integers(-1, 6),
    wish=st.sampled_from(["Open", "Open", "Open", "Closed", "Suspended"]),
    is_unknown=st.sampled_from([False, False, False, True]),
    amounts=st.fixed_dictionaries(
        {}, optional={"deserved": _large_amounts, "guarantee": _amounts, "capability": _amounts}
    ),
    podgroups=st.sampled_from([0, 0, 1, 2]),
)
_specs = st.fixed_dictionaries(
    {},
    optional={
        "parent": st.sampled_from(EVERYBODY),
        "state": st.sampled_from(["Open", "Closed", "Suspended"]),
        "deserved": _amounts,
        "guarantee": st.builds(lambda amounts: {"resource": amounts}, _amounts),
        "capability": _large_amounts,
        "weight": st.integers(1, 9),
        "maxRunSeconds": st.integers(1, 99),
    },
)
_annotations = st.sampled_from(
    [
        {},
        {},
        {},
        {},
        {},
        {},
        {"volcano.sh/hierarchy": "root/q0", "volcano.sh/hierarchy-weights": "1/2"},
    ]
)


def _manifests(names: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(
        lambda name, spec, annotations: {
            "metadata": {"name": name, **({"annotations": annotations} if annotations else {})},
            "spec": spec,
        },
        st.sampled_from(names),
        _specs,
        _annotations,
    )


_callers = st.sampled_from(["", "", "", "", "root", "q0", "q1", "q2"])
_changes = st.one_of(
    st.tuples(st.just("create"), _manifests(["new", "new", "new", "q1"])),
    st.tuples(st.just("update"), _manifests([*THERE, *THERE, "q7", "root", "default"])),
    st.tuples(
        st.just("command"), st.tuples(st.sampled_from(EVERYBODY), st.sampled_from(QueueCommand))
    ),
)


def _stored_amounts(values: dict[str, int]) -> Resources:
    return Resources.parse({name: str(value) for name, value in values.items()})


def _plant(planted: list[Planted]) -> None:
    Node.objects.create(name="n1", allocatable=Resources.parse({"cpu": "8", "gpu": "4"}))
    rows = {-1: Queue.objects.get(name="root")}
    for number, one in enumerate(planted):
        above = rows.get(min(one.parent, number - 1))
        amounts = {what: _stored_amounts(values) for what, values in one.amounts.items()}
        rows[number] = Queue.objects.create(
            name=NAMES[number], parent=above, wish=one.wish, is_unknown=one.is_unknown, **amounts
        )
        for podgroup in range(one.podgroups):
            PodGroup.objects.create(
                namespace="ns", name=f"{NAMES[number]}-{podgroup}", queue=rows[number]
            )
    refresh_states()
    refresh_warnings()


def _caller(of: str) -> Actor:
    """Whoever is admin of this queue; "" is the system."""
    if not of:
        return SYSTEM
    parents = {}
    for name, parent in Queue.objects.values_list("name", "parent__name"):
        parents[name] = parent or ""
    granted = {of: frozenset(Permission)}
    return Actor("ann", access=Access(granted=granted, parents=parents))


def _change(kind: str, given: Any, by: Actor) -> Any:
    if kind == "create":
        return create_queue(given, by=by)
    if kind == "update":
        return update_queue(given["metadata"]["name"], given, by=by, merge=True)
    return command_queue(*given, by=by)


def _answer(change: Callable[[], Any]) -> Any:
    try:
        found = change()
    except Rejected as refusal:
        return (type(refusal), refusal.violations, refusal.notices)
    except (NotAllowed, Forbidden, OutOfSight, Queue.DoesNotExist) as refusal:
        return (type(refusal), str(refusal))
    if isinstance(found, Saved):
        return (found.notices, found.changed, found.message, found.before, found.kept)
    assert isinstance(found, CommandOutcome)
    return (found.message, found.changed, found.queues, found.podgroups, found.warnings)


_TIMES = re.compile(r"\d{4}-\d\d-\d\dT[\d:.+]+")
_ALSO_LEFT_OUT = ("id", "uid", "target_uid", "follows_id", "parent_id", "figures_id")


def _rows() -> list[list[dict[str, Any]]]:
    """All that a change writes, without keys and times."""
    tables = []
    for model in (Queue, AuditEntry, Command, Event):
        rows = []
        for row in model.objects.order_by("pk").values():
            kept = {}
            for name, value in row.items():
                if not name.endswith("_at") and name not in ("at", "state_since", *_ALSO_LEFT_OUT):
                    kept[name] = _TIMES.sub("…", repr(value))
            rows.append(kept)
        tables.append(rows)
    tables.append(list(Queue.objects.order_by("name").values("name", "parent__name")))
    return tables


@contextmanager
def _written() -> Iterator[list[str]]:
    statements: list[str] = []

    def keep(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.lstrip().startswith(("INSERT", "UPDATE", "DELETE")):
            statements.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(keep):
        yield statements


def _done(kind: str, given: Any, caller: str) -> tuple[Any, ...]:
    with transaction.atomic():
        with _written() as statements:
            answer = _answer(lambda: _change(kind, given, _caller(caller)))
        rows = _rows()
        transaction.set_rollback(True)
    return answer, statements, rows


def _there(
    parent: int = -1, wish: str = "Open", podgroups: int = 0, **amounts: dict[str, int]
) -> Planted:
    return Planted(parent, wish, False, amounts, podgroups)


LAST_CHILD_LEAVES_A_CLOSING_QUEUE = (
    [_there(wish="Closed"), _there(0, podgroups=1)],
    ("update", {"metadata": {"name": "q1"}, "spec": {"parent": "root"}}),
)
COUSIN_OF_A_GANG_LEAVES_A_CLOSING_QUEUE = (
    [_there(wish="Closed"), _there(0), _there(1, podgroups=1), _there(0)],
    ("update", {"metadata": {"name": "q3"}, "spec": {"parent": "root"}}),
)
OTHERS_SHARE_THE_CLUSTER = (
    [_there(deserved={"cpu": 5}), _there(deserved={"cpu": 5}), _there(0)],
    ("update", {"metadata": {"name": "q2"}, "spec": {"weight": 3}}),
)
BESIDE_A_QUEUE_THAT_BREAKS_A_RULE = (
    [_there(deserved={"cpu": 1}), _there(0, deserved={"cpu": 5}), _there()],
    ("update", {"metadata": {"name": "q2"}, "spec": {"weight": 3}}),
)


@example(*LAST_CHILD_LEAVES_A_CLOSING_QUEUE, "")
@example(*COUSIN_OF_A_GANG_LEAVES_A_CLOSING_QUEUE, "")
@example(*OTHERS_SHARE_THE_CLUSTER, "")
@example(*BESIDE_A_QUEUE_THAT_BREAKS_A_RULE, "")
@given(st.lists(_planted, min_size=len(THERE), max_size=len(NAMES)), _changes, _callers)
@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
    phases=[Phase.explicit, Phase.generate],  # making an example smaller takes minutes
)
def test_the_tree_around_a_queue_is_enough_to_change_it(
    planted: list[Planted], change: tuple[str, Any], caller: str
):
    with transaction.atomic():
        _plant(planted)
        narrow = _done(*change, caller)
        with patch.object(TreeEdit, "expect_one", lambda *_: None):
            wide = _done(*change, caller)
        transaction.set_rollback(True)

    assert narrow == wide


def _read_by(change: Callable[[], Any]) -> int:
    """How many queues a change has read to judge it."""
    seen: list[int] = []
    read = TreeEdit._image.func

    def counted(edit: TreeEdit) -> Any:
        image = read(edit)
        seen.append(len(image.queues))
        return image

    with patch.object(TreeEdit._image, "func", counted):
        change()
    return sum(seen)


def _teams() -> None:
    for team in range(20):
        queue(f"team-{team}")
        for number in range(3):
            queue(f"team-{team}-{number}", f"team-{team}")


@pytest.mark.parametrize(
    ("change", "most"),
    [
        pytest.param(lambda: queue("new", "team-0"), 5, id="create"),
        pytest.param(
            lambda: update_queue("team-0-1", {"spec": {"weight": 2}}, merge=True), 5, id="update"
        ),
        pytest.param(
            lambda: update_queue("team-0-1", {"spec": {"parent": "team-1"}}, merge=True),
            9,
            id="move",
        ),
        pytest.param(lambda: command_queue("team-0-1", QueueCommand.CLOSE), 3, id="close a leaf"),
        pytest.param(lambda: command_queue("team-0", QueueCommand.CLOSE), 5, id="close a team"),
    ],
)
def test_other_teams_are_not_read(change: Callable[[], Any], most: int):
    _teams()

    assert _read_by(change) == most


def test_a_queue_whose_surroundings_were_not_read_cannot_be_changed():
    queue("a")
    queue("b")
    reading = read_queue({"metadata": {"name": "b"}, "spec": {"weight": 2}})
    assert reading.value is not None

    with tree_transaction():
        edit = TreeEdit()
        edit.expect_one(Around(frozenset({"a"})))

        with pytest.raises(LookupError, match="not read around b"):
            edit.respecify(reading.value.spec, SYSTEM)
