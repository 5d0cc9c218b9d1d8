"""Orders to queues: rows with a result, carried out exactly once and in order, and what they do to
the states.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import OperationalError

from scheduler.admission.violations import Rejected
from scheduler.domain.lifecycle import NotAllowed, QueueCommand
from scheduler.models import Command, Event, Grant, Queue
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import Actor, Door
from scheduler.services.queues import commands, transaction
from scheduler.services.queues.commands import (
    CommandFailed,
    QueueOrder,
    command_queue,
    command_queues,
)
from scheduler.services.queues.states import settle_states
from tests.services.queues.builders import (
    assert_states_are_derived,
    complete,
    podgroup,
    queue,
    states,
)

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

ANN = Actor("ann", Door.CLI, request_id="r-1")
OPEN, CLOSE, SUSPEND, RESUME = QueueCommand


def test_an_order_is_on_record_with_who_where_why_and_what_came_of_it():
    queue("a")

    outcome = command_queue("a", SUSPEND, by=ANN, reason="quota change")

    row = Command.objects.get()
    assert outcome.command == row
    assert (row.action, row.actor, row.door, row.reason, row.request_id, row.result) == (
        "SuspendQueue",
        "ann",
        "CLI",
        "quota change",
        "r-1",
        "Done",
    )
    assert (
        row.message
        == outcome.message
        == (
            "a is now Suspended: it takes jobs but starts none until it is resumed; what runs "
            "goes on running."
        )
    )
    assert row.executed_at


def test_the_answer_tells_the_blast_radius():
    for name, parent in (("p", "root"), ("c", "p"), ("d", "p")):
        queue(name, parent)
    podgroup("g1", "c", "Running", "ann")
    podgroup("g2", "c", "Pending", "bob")

    planned = command_queue("p", CLOSE, dry_run=True)
    outcome = command_queue("p", CLOSE)

    assert (
        planned.queues
        == outcome.queues
        == [
            {"name": "p", "from": "Open", "to": "Closing"},
            {"name": "c", "from": "Open", "to": "Closing"},
            {"name": "d", "from": "Open", "to": "Closed"},
        ]
    )
    assert (outcome.podgroups, outcome.users) == ({"running": 1, "waiting": 1}, ["ann", "bob"])
    assert planned.command is None
    assert states("p", "c", "d") == {"p": "Closing", "c": "Closing", "d": "Closed"}


def test_a_plan_writes_nothing():
    queue("a")

    command_queue("a", CLOSE, dry_run=True)

    assert states("a") == {"a": "Open"}
    assert not Command.objects.exists()


def test_a_closing_queue_becomes_closed_when_its_last_podgroup_leaves():
    queue("p")
    queue("c", "p")
    podgroup("g", "c", "Running")
    command_queue("p", CLOSE)

    complete("g")

    assert states("p", "c") == {"p": "Closed", "c": "Closed"}
    assert (
        Event.objects.get(
            name="c", reason="CloseQueue", message__contains="nothing is left in it"
        ).count
        == 1
    )
    assert_states_are_derived()


def test_an_order_that_changes_nothing_is_a_no_op_with_a_sentence():
    queue("a")

    outcome = command_queue("a", RESUME)

    assert (outcome.changed, outcome.message) == (
        False,
        "a is Open, not Suspended, so there is nothing to resume.",
    )
    assert Command.objects.get().result == "NoOp"


def test_a_refusal_stays_on_record():
    queue("p", state="Closed")
    queue("c", "p")

    with pytest.raises(NotAllowed) as refusal:
        command_queue("c", OPEN)

    assert (refusal.value.rule_id, refusal.value.first) == ("parent_not_open", "p")
    row = Command.objects.get()
    assert (row.result, row.message) == (
        "Refused",
        "c cannot be opened while p above it is closed: open p first.",
    )
    assert Event.objects.get(name="c", reason="OpenQueue").type == "Warning"


def test_an_order_for_an_earlier_queue_of_the_same_name_is_refused():
    queue("a")

    with pytest.raises(Rejected, match="deleted and created again"):
        command_queue("a", CLOSE, target_uid="00000000-0000-0000-0000-000000000000")

    assert not Command.objects.exists()


def test_a_queue_that_is_not_there_can_not_be_ordered():
    with pytest.raises(Queue.DoesNotExist):
        command_queue("ghost", CLOSE)


def test_an_order_during_which_the_process_dies_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
):
    queue("a")
    podgroup("g", "a")

    def dies(*args: Any, **more: Any) -> None:
        settle_states(*args, **more)
        raise KeyboardInterrupt  # as hard an end as a test can have: nothing catches it

    with monkeypatch.context() as patched:
        patched.setattr(transaction, "settle_states", dies)
        with pytest.raises(KeyboardInterrupt):
            command_queue("a", CLOSE, by=ANN)

    assert (Command.objects.count(), states("a")) == (0, {"a": "Open"})


def test_an_order_that_was_answered_with_a_lost_database_is_not_carried_out_later(
    monkeypatch: pytest.MonkeyPatch,
):
    queue("a")

    def lost(*_args: Any, **_more: Any) -> None:
        raise OperationalError("the connection is closed")

    with monkeypatch.context() as patched:
        patched.setattr(commands, "TreeEdit", lost)
        with pytest.raises(OperationalError):
            command_queue("a", CLOSE, by=ANN)

    assert not Command.objects.exists()
    assert states("a") == {"a": "Open"}


def test_an_unexpected_error_leaves_the_states_alone_and_is_on_record(
    monkeypatch: pytest.MonkeyPatch,
):
    queue("a")

    def broken(*args: Any, **more: Any) -> None:
        settle_states(*args, **more)
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(transaction, "settle_states", broken)
    with pytest.raises(CommandFailed, match="could not be changed") as failure:
        command_queue("a", CLOSE)

    assert "secret" not in str(failure.value)
    assert (Command.objects.get().result, states("a")) == ("Failed", {"a": "Open"})
    assert Queue.objects.get(name="a").wish == "Open"


def test_an_unexpected_error_among_many_orders_changes_none_and_all_are_on_record(
    monkeypatch: pytest.MonkeyPatch,
):
    queue("a")
    queue("b")
    orders = [QueueOrder("a", CLOSE), QueueOrder("ghost", CLOSE), QueueOrder("b", SUSPEND)]

    def broken(*_args: Any, **_more: Any) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(transaction, "settle_states", broken)
    closed, missing, suspended = command_queues(orders, by=ANN)

    assert isinstance(closed, CommandFailed)
    assert isinstance(suspended, CommandFailed)
    assert isinstance(missing, Queue.DoesNotExist)
    assert sorted(Command.objects.values_list("target_name", "result")) == [
        ("a", "Failed"),
        ("b", "Failed"),
    ]
    assert states("a", "b") == {"a": "Open", "b": "Open"}


def test_a_command_locks_the_tree_once_and_asks_for_the_rights_once(
    monkeypatch: pytest.MonkeyPatch,
):
    queue("a")
    user = get_user_model().objects.create(username="bob")
    Grant.objects.create(user=user, queue=Queue.objects.get(name="a"), role="admin")
    calls: Counter[str] = Counter()
    for module, name in ((transaction, "lock_tree"), (access, "access_of")):
        real = getattr(module, name)

        def counted(*args: Any, real: Any = real, name: str = name) -> Any:
            calls[name] += 1
            return real(*args)

        monkeypatch.setattr(module, name, counted)

    command_queue("a", CLOSE, by=Actor("bob", user=user))

    assert calls == {"lock_tree": 1, "access_of": 1}


def test_a_dry_run_locks_nothing(monkeypatch: pytest.MonkeyPatch):
    queue("a")
    monkeypatch.setattr(transaction, "lock_tree", lambda: pytest.fail("the tree was locked"))

    assert command_queue("a", CLOSE, dry_run=True).changed


def test_an_order_by_somebody_who_may_not_see_the_queue_does_not_tell_its_uid():
    queue("a")
    stranger = Actor("eve", user=get_user_model().objects.create(username="eve"))

    with pytest.raises(access.OutOfSight):
        command_queue("a", CLOSE, by=stranger, target_uid="not-it")


def test_opening_gives_back_what_was():
    for name, parent in (("p", "root"), ("c", "p"), ("d", "p"), ("e", "p")):
        queue(name, parent)
    command_queue("c", CLOSE)
    command_queue("d", SUSPEND)
    before = states("p", "c", "d", "e")

    command_queue("p", CLOSE)
    command_queue("p", OPEN)

    assert states("p", "c", "d", "e") == before


def test_repeated_events_are_folded():
    queue("a")
    for _ in range(3):
        command_queue("a", CLOSE)
        command_queue("a", OPEN)

    event = Event.objects.get(name="a", reason="CloseQueue")

    assert event.count == 3
    assert event.first_at < event.last_at


def test_the_drain_remembers_how_much_there_was():
    queue("a")
    podgroup("g1", "a")
    podgroup("g2", "a")
    command_queue("a", CLOSE)

    complete("g1")

    (condition,) = Queue.objects.get(name="a").conditions
    assert (condition["type"], condition["total"]) == ("Draining", 2)
    complete("g2")
    assert Queue.objects.get(name="a").conditions == []
