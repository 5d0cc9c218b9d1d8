"""Close now, delete when drained: only what was shown, by whoever may, until somebody changes his
mind.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model

from scheduler import tasks
from scheduler.admission.violations import Rejected
from scheduler.domain.access import Forbidden
from scheduler.domain.lifecycle import QueueCommand
from scheduler.models import AuditEntry, Event, Grant, PlannedDeletion, Queue
from scheduler.services.accounts.actors import Actor, Door
from scheduler.services.demo.setup import ensure_builtin_objects
from scheduler.services.queues.commands import command_queue
from scheduler.services.queues.planned_deletion import (
    carry_out_deletions,
    close_then_delete,
    keep_queue,
)
from tests.services.queues.builders import complete, podgroup, queue, states

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def tree(db: None) -> None:
    ensure_builtin_objects()
    queue("team")
    queue("train", "team")


@pytest.fixture
def admin() -> Actor:
    user = get_user_model().objects.create(username="admin", is_superuser=True)
    return Actor("admin", Door.UI, user)


def there() -> set[str]:
    return set(Queue.objects.values_list("name", flat=True)) - {"root", "default"}


def test_an_empty_queue_is_gone_at_once(admin: Actor):
    closing = close_then_delete("train", shown=["train"], by=admin)

    assert (closing.is_gone, there()) == (True, {"team"})
    assert not PlannedDeletion.objects.exists()


def test_a_busy_one_is_closed_and_deleted_when_it_has_drained(admin: Actor):
    podgroup("gang", "train", "Running")

    closing = close_then_delete("train", shown=["train"], by=admin, reason="moved")
    assert (closing.is_gone, states("train")) == (False, {"train": "Closing"})
    assert carry_out_deletions() == 0

    complete("gang")
    assert states("train") == {"train": "Closed"}
    assert carry_out_deletions() == 1
    assert there() == {"team"}
    assert list(
        AuditEntry.objects.filter(name="train")
        .order_by("id")
        .values_list("action", "actor", "door")
    )[-3:] == [
        ("CloseQueue", "admin", "UI"),
        ("PlanDeletion", "admin", "UI"),
        ("DeleteQueue", "admin", "UI"),
    ]


def test_a_look_changes_nothing(admin: Actor):
    podgroup("gang", "train", "Running")

    closing = close_then_delete("team", by=admin, dry_run=True)

    assert closing.queues == ("train", "team")
    assert (closing.closing.podgroups["running"], closing.is_gone) == (1, False)
    assert states("team", "train") == {"team": "Open", "train": "Open"}
    assert not PlannedDeletion.objects.exists()


def test_what_is_below_goes_with_it_and_only_what_was_shown(admin: Actor):
    podgroup("gang", "train", "Running")
    with pytest.raises(Rejected, match="has changed since it was shown"):
        close_then_delete("team", shown=["team"], by=admin)
    assert states("team") == {"team": "Open"}

    close_then_delete("team", shown=["train", "team"], by=admin)
    complete("gang")
    carry_out_deletions()

    assert there() == set()


def test_a_tree_that_changed_meanwhile_drops_the_plan(admin: Actor):
    podgroup("gang", "train", "Running")
    close_then_delete("team", shown=["train", "team"], by=admin)
    Queue.objects.create(
        name="late",
        parent=Queue.objects.get(name="team"),
        state="Closed",
        wish="Closed",
    )
    complete("gang")

    assert carry_out_deletions() == 1
    assert there() == {"team", "train", "late"}
    assert "no longer train, team" in Event.objects.get(reason="DropDeletion").message


def test_it_can_be_kept_and_stays_closed(admin: Actor):
    podgroup("gang", "train", "Running")
    close_then_delete("train", shown=["train"], by=admin)

    assert keep_queue("train", by=admin)
    complete("gang")
    carry_out_deletions()

    assert states("train") == {"train": "Closed"}
    assert not keep_queue("train", by=admin)


@pytest.mark.parametrize("command", [QueueCommand.OPEN, QueueCommand.SUSPEND])
def test_a_queue_that_takes_jobs_again_is_not_deleted_any_more(admin: Actor, command: QueueCommand):
    podgroup("gang", "train", "Running")
    close_then_delete("train", shown=["train"], by=admin)
    command_queue("train", command, by=admin)
    command_queue("train", QueueCommand.CLOSE, by=admin)
    complete("gang")

    assert carry_out_deletions() == 0
    assert states("train") == {"train": "Closed"}


def test_who_may_not_delete_may_not_plan_it_nor_keep_it(admin: Actor):
    podgroup("gang", "train", "Running")
    user = get_user_model().objects.create(username="lead")
    Grant.objects.create(user=user, queue=Queue.objects.get(name="train"), role="viewer")
    lead = Actor("lead", Door.UI, user)
    with pytest.raises(Forbidden):
        close_then_delete("train", shown=["train"], by=lead)
    close_then_delete("train", shown=["train"], by=admin)

    with pytest.raises(Forbidden):
        keep_queue("train", by=lead)


@pytest.mark.parametrize("loses", ["rights", "account"])
def test_the_rights_of_who_asked_count_when_the_time_comes(admin: Actor, loses: str):
    podgroup("gang", "train", "Running")
    close_then_delete("train", shown=["train"], by=admin)
    user: Any = admin.user
    if loses == "account":
        user.delete()
    else:
        get_user_model().objects.update(is_superuser=False)
    complete("gang")

    assert carry_out_deletions() == 1
    assert "train" in there()
    assert not PlannedDeletion.objects.exists()


def test_what_draining_does_not_cure_is_refused_and_nothing_is_closed(admin: Actor):
    with pytest.raises(Rejected, match="cannot be deleted"):
        close_then_delete("default", shown=["default"], by=admin)

    assert Queue.objects.get(name="default").state == "Open"


def test_the_worker_that_watches_the_cluster_carries_it_out(admin: Actor):
    podgroup("gang", "train", "Running")
    close_then_delete("train", shown=["train"], by=admin)
    complete("gang")

    tasks.watch_cluster()

    assert there() == {"team"}
