"""Many queues in one request: the same as one after the other, at the cost of one look at the tree;
and what odd lists come to.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from scheduler.models import AuditEntry, Command, Event, Queue
from tests.dashboard.api.conftest import Caller, node, queue

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

Manifest = dict[str, Any]


def numbered(count: int, start: int = 0, parent: str = "root") -> list[Manifest]:
    return [queue(f"q{number}", parent) for number in range(start, start + count)]


def document(manifest: Manifest) -> Manifest:
    return {"kind": "Queue", **manifest}


def order(action: str, name: str) -> Manifest:
    return {"action": action, "target": {"kind": "Queue", "name": name}}


def rows() -> dict[str, Any]:
    """All that writing queues leaves behind, but for keys, moments and where the
    request came from.
    """
    fields = [field.attname for field in Queue._meta.concrete_fields]
    left_out = {"id", "uid", "parent_id", "created_at", "updated_at", "state_since"}
    parents = dict(Queue.objects.values_list("name", "parent__name"))
    queues = [
        {name: row[name] for name in fields if name not in left_out}
        for row in Queue.objects.order_by("name").values()
    ]
    for row in queues:
        row["parent"] = parents[row["name"]]
        row["conditions"] = [{**condition, "since": ""} for condition in row["conditions"]]
    return {
        "queues": queues,
        "audit": list(
            AuditEntry.objects.order_by("id").values_list(
                "action", "name", "actor", "before", "after", "reason", "message"
            )
        ),
        "events": sorted(
            Event.objects.values_list("kind", "name", "reason", "message", "count", "type")
        ),
        "commands": list(
            Command.objects.order_by("id").values_list(
                "action", "target_name", "result", "message", "effect", "reason"
            )
        ),
    }


class _Undo(Exception):
    pass


@contextmanager
def tried() -> Iterator[None]:
    try:
        with transaction.atomic():
            yield
            raise _Undo
    except _Undo:
        pass


def outcome_of(result: Manifest) -> Any:
    """Of an object what was said of it, not what it is meanwhile."""
    if result["problem"]:
        return result["status"], result["problem"]
    said = result["object"]
    return result["status"], {
        name: said[name] for name in ("changed", "warnings", "message") if name in said
    }


def alone(caller: Caller, path: str, body: Manifest) -> Any:
    answer = caller.ask("POST", path, body)
    status = caller.last.status_code
    good = status < 300
    return outcome_of(
        {"status": status, "object": answer if good else None, "problem": None if good else answer}
    )


def random_queues(seed: int, count: int = 40) -> list[Manifest]:
    """Names that come twice, parents that are missing or come later, quotas that do not fit, states
    of all kinds, nonsense.
    """
    dice = random.Random(seed)
    names = [f"q{number}" for number in range(count // 2)]
    found: list[Manifest] = []
    for _ in range(count):
        spec: Manifest = {"parent": dice.choice(["root", "root", *names])}
        if dice.random() < 0.4:
            spec["deserved"] = {"cpu": str(dice.randrange(6))}
        if dice.random() < 0.3:
            spec["guarantee"] = {"resource": {"cpu": str(dice.randrange(3))}}
        if dice.random() < 0.3:
            spec["capability"] = {"cpu": str(dice.randrange(8)), "nvidia.com/gpu": "1"}
        if dice.random() < 0.3:
            spec["state"] = dice.choice(["Open", "Closed", "Suspended", "Open?"])
        if dice.random() < 0.1:
            spec["weight"] = dice.choice([0, 7, -1, "heavy"])
        found.append({"metadata": {"name": dice.choice(names)}, "spec": spec})
    return found


@pytest.mark.parametrize("seed", range(4))
def test_a_list_comes_to_the_same_as_its_items_one_by_one(admin: Caller, seed: int):
    admin.post("nodes/", node("n1", cpu="12"), expect=201)
    manifests = random_queues(seed)
    with tried():
        one_by_one = [alone(admin, "queues/", manifest) for manifest in manifests], rows()

    with tried():
        at_once = (
            [outcome_of(result) for result in admin.post("queues/", manifests)["results"]],
            rows(),
        )

    assert at_once[0] == one_by_one[0]
    assert at_once[1] == one_by_one[1]
    assert {status for status, _ in at_once[0]} >= {201, 400}


@pytest.mark.parametrize("seed", range(4))
def test_orders_in_a_list_come_to_the_same_as_one_by_one(admin: Caller, seed: int):
    admin.post(
        "queues/", [item for item in random_queues(seed) if item["spec"].get("state") != "Open?"]
    )
    names = [*Queue.objects.values_list("name", flat=True), "nobody"]
    dice = random.Random(seed)
    orders = [
        order(dice.choice(["Open", "Close", "Suspend", "Resume", "Burn"]), dice.choice(names))
        for _ in range(60)
    ]
    with tried():
        one_by_one = [alone(admin, "commands/", item) for item in orders], rows()

    with tried():
        at_once = (
            [outcome_of(result) for result in admin.post("commands/", orders)["results"]],
            rows(),
        )

    assert at_once[0] == one_by_one[0]
    assert at_once[1] == one_by_one[1]


@pytest.mark.parametrize("seed", range(4))
def test_a_file_comes_to_the_same_as_its_documents_one_by_one(admin: Caller, seed: int):
    """Made first, then changed: quotas, places and states."""
    admin.post("nodes/", node("n1", cpu="12"), expect=201)
    manifests = [item for item in random_queues(seed) if item["spec"].get("state") != "Open?"]
    admin.post("queues/", manifests)
    there = set(Queue.objects.values_list("name", flat=True))
    dice = random.Random(seed)
    changes: dict[str, Manifest] = {}
    for name in sorted(there - {"root", "default"}):
        spec = {
            "weight": dice.randrange(1, 9),
            "state": dice.choice(["Open", "Closed", "Suspended"]),
        }
        changes[name] = document(
            {"metadata": {"name": name, "labels": {"round": str(seed)}}, "spec": spec}
        )
    with tried():
        accepted = [change for change in changes.values() if not _problem(admin, change)]
        one_by_one = rows()

    with tried():
        results = admin.post("apply/", accepted)["results"]
        at_once = rows()

    assert {name: at_once[name] for name in ("queues", "events")} == {
        name: one_by_one[name] for name in ("queues", "events")
    }
    assert at_once["audit"] == one_by_one["audit"]
    assert at_once["commands"] == one_by_one["commands"]
    assert any(result["changed"] for result in results)


def _problem(caller: Caller, change: Manifest) -> bool:
    caller.ask("POST", "apply/", change)
    return bool(caller.last.status_code >= 400)


# What it costs


def questions(ask: Callable[[], Any]) -> list[str]:
    with CaptureQueriesContext(connection) as queries:
        ask()
    return [query["sql"] for query in queries.captured_queries]


def looks_at_the_tree(asked: list[str]) -> int:
    """A question for every queue there is: with no condition but that it was not deleted."""
    everything = re.compile(
        (
            r'SELECT .*"wish".* FROM "scheduler_queue" WHERE "scheduler_queue"."deleted_at" IS '
            r"NULL ORDER BY"
        ),
        re.DOTALL,
    )
    return sum(bool(everything.match(sql)) for sql in asked)


def looks_around_a_queue(asked: list[str]) -> int:
    """A question for the way up from a queue and what is beside and below it."""
    return sum("WITH RECURSIVE named AS" in sql for sql in asked)


@pytest.mark.parametrize(
    ("path", "made"),
    [
        pytest.param("queues/", lambda items: items, id="a list"),
        pytest.param("apply/", lambda items: [document(item) for item in items], id="a file"),
        pytest.param(
            "apply/",
            lambda items: [document(item) for item in items[::-1]],
            id="a file, the last first",
        ),
    ],
)
def test_many_queues_are_made_with_one_look_at_the_tree(
    admin: Caller,
    path: str,
    made: Callable[[list[Manifest]], list[Manifest]],
):
    admin.get("queues/")  # the first use of a token is noted
    few = questions(lambda: admin.post(path, made([queue("p"), *numbered(2, parent="p")])))
    many = questions(lambda: admin.post(path, made([queue("o"), *numbered(12, 10, parent="o")])))

    assert (len(few), looks_at_the_tree(few)) == (len(many), looks_at_the_tree(many))
    assert looks_at_the_tree(many) == 1


def test_many_changes_and_many_orders_take_one_look_at_the_tree(admin: Caller):
    admin.post("queues/", numbered(20))

    def changed(count: int, weight: int) -> list[str]:
        items = [
            document(queue(f"q{number}", weight=weight, state="Suspended"))
            for number in range(count)
        ]
        return questions(lambda: admin.post("apply/", items))

    def ordered(count: int, action: str) -> list[str]:
        return questions(
            lambda: admin.post(
                "commands/", [order(action, f"q{number}") for number in range(count)]
            )
        )

    for few, many in ((changed(2, 2), changed(12, 3)), (ordered(2, "Close"), ordered(12, "Close"))):
        assert len(few) == len(many)
        assert looks_at_the_tree(many) == 1


def test_one_write_takes_one_look_at_the_tree(admin: Caller):
    admin.post("queues/", numbered(3))

    for ask in (
        lambda: admin.post("queues/", queue("new"), expect=201),
        lambda: admin.patch("queues/q1/", {"spec": {"weight": 5}}),
        lambda: admin.patch("queues/q1/", {"spec": {"weight": 6, "state": "Suspended"}}),
        lambda: admin.post("queues/q2/close/"),
    ):
        asked = questions(ask)
        assert (looks_at_the_tree(asked), looks_around_a_queue(asked)) == (0, 1)
    assert looks_at_the_tree(questions(lambda: admin.delete("queues/q2/"))) == 1


# Odd lists


def test_a_name_that_comes_twice_is_taken_by_the_first(admin: Caller):
    first, second = admin.post("queues/", [queue("a", weight=2), queue("a", weight=3)])["results"]

    assert (first["status"], second["status"]) == (201, 409)
    assert second["problem"]["violations"][0]["ruleId"] == "already_exists"
    assert Queue.objects.get(name="a").weight == 2


def test_a_list_is_read_in_its_order_and_a_file_as_a_whole(admin: Caller):
    family = [queue("c", "b"), queue("b", "a"), queue("a")]

    statuses = [result["status"] for result in admin.post("queues/", family)["results"]]

    assert statuses == [400, 400, 201]
    admin.post("apply/", [document(item) for item in family])
    assert list(
        Queue.objects.filter(name__in="abc").order_by("name").values_list("name", "parent__name")
    ) == [("a", "root"), ("b", "a"), ("c", "b")]


def test_a_ring_of_parents_in_a_file_is_refused_and_nothing_is_kept(admin: Caller):
    ring = [
        document(queue("a", "c")),
        document(queue("b", "a")),
        document(queue("c", "b")),
        document(queue("fine")),
    ]

    refused = admin.post("apply/", ring, expect=400)

    assert {violation["field"] for violation in refused["violations"]} == {
        "[0].spec.parent",
        "[1].spec.parent",
        "[2].spec.parent",
    }
    assert not Queue.objects.filter(name__in=["a", "b", "c", "fine"]).exists()
    assert not AuditEntry.objects.filter(action="CreateQueue").exists()


@pytest.mark.parametrize(
    "bad",
    [
        None,
        7,
        "x",
        [],
        {"metadata": {"name": "../x"}},
        {"metadata": {"name": "b"}, "spec": {"weight": "1\x00"}},
    ],
)
def test_one_bad_item_leaves_the_others_alone(admin: Caller, bad: Any):
    results = admin.post("queues/", [queue("a"), bad, queue("c")])["results"]

    assert [result["status"] for result in results] == [201, 400, 201]
    assert results[1]["problem"]["violations"]


def test_more_than_a_list_may_hold_is_refused_as_a_whole(admin: Caller):
    for path, items in (
        ("queues/", numbered(10_000)),
        ("commands/", [order("Close", "default")] * 10_000),
    ):
        assert "at most 1000 are allowed at once" in admin.post(path, items, expect=400)["detail"]
    assert (
        "5000 at once"
        in admin.post("apply/", [document(item) for item in numbered(10_000)], expect=400)["detail"]
    )
    assert not Queue.objects.filter(name="q1").exists()


def test_a_dry_run_of_a_list_says_what_would_come_of_it_and_keeps_nothing(admin: Caller):
    """A child may count on a parent in front of it there too."""
    before = rows()

    results = admin.post(
        "queues/?dry_run=true", [queue("a"), queue("b", "a"), queue("c", "nobody")]
    )["results"]

    assert [result["status"] for result in results] == [200, 200, 400]
    assert rows() == before


@pytest.mark.parametrize(("path", "form"), [("queues/", lambda item: item), ("apply/", document)])
def test_what_somebody_creates_below_his_own_queue_is_his_at_once(
    admin: Caller,
    caller: Callable[..., Caller],
    path: str,
    form: Callable[[Manifest], Manifest],
):
    admin.post("queues/", [queue("team"), queue("other")])
    ann = caller("ann", admin="team")

    results = ann.post(
        path, [form(queue("a", "team")), form(queue("b", "a")), form(queue("c", "b"))]
    )["results"]

    assert {result.get("status", 201) for result in results} == {201}
    assert (
        ann.post("queues/", [queue("d", "other")])["results"][0]["status"] == 400
    )  # as if it were not there


def test_an_order_that_is_refused_stays_on_record_in_a_list_and_not_after_a_file(admin: Caller):
    admin.post("queues/", [queue("a", state="Closed"), queue("b", "a")])

    assert admin.post("commands/", [order("Open", "b")])["results"][0]["status"] == 409
    assert Command.objects.get().result == "Refused"

    admin.post(
        "apply/",
        [{"kind": "Command", **order("Open", "b")}, document(queue("c"))],
        expect=409,
    )
    assert Command.objects.count() == 1


def test_an_order_in_a_file_finds_the_queue_that_the_file_makes(admin: Caller):
    admin.post(
        "apply/",
        [
            {"kind": "Command", **order("Close", "a")},
            document(queue("a")),
            document(queue("b", "a")),
        ],
    )

    assert dict(Queue.objects.filter(name__in="ab").values_list("name", "state")) == {
        "a": "Closed",
        "b": "Closed",
    }
    assert Command.objects.get().target_uid == str(Queue.objects.get(name="a").uid)
