"""Single entries of the audit log are undone by a change set of their own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scheduler.domain.change_sets import Crossed
from scheduler.domain.jobs.commands import NotPossible
from scheduler.domain.lifecycle import QueueCommand
from scheduler.models import AuditEntry, Queue
from scheduler.services.change_sets.apply import apply_change_set
from scheduler.services.change_sets.drafts import revert_entry
from scheduler.services.cluster.nodes import cordon_node, create_node, delete_node, update_node
from scheduler.services.queues.commands import command_queue
from scheduler.services.queues.create_update import update_queue
from scheduler.services.queues.deletion import delete_queue
from scheduler.services.sessions.policies import replace_policy
from tests.dashboard.work import person, small_cluster
from tests.services.change_sets.builders import exported, machine
from tests.services.queues.builders import queue

pytestmark = pytest.mark.django_db

OTHER_POLICY = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n'


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()
    queue("spare", state="Closed", weight=4)


def newest() -> AuditEntry:
    entry = AuditEntry.objects.filter(follows="").order_by("-pk").first()
    assert entry is not None
    return entry


@pytest.mark.parametrize(
    "do",
    [
        lambda: update_queue("vision", {"spec": {"weight": 9}}, merge=True),
        lambda: queue("new", weight=3),
        lambda: delete_queue("spare"),
        lambda: command_queue("research", QueueCommand.SUSPEND),
        lambda: command_queue("spare", QueueCommand.OPEN),
        lambda: create_node(machine("n9", "4")),
        lambda: update_node("n2", {"status": {"allocatable": {"cpu": "16"}}}, merge=True),
        lambda: cordon_node("n1"),
        lambda: replace_policy(OTHER_POLICY),
    ],
)
def test_applying_the_revert_gives_the_old_state_back(do: Callable[[], object]):
    before = exported()
    do()
    assert exported() != before

    made = revert_entry(newest(), by=person("admin"))
    assert made.is_draft
    apply_change_set(made.pk, by=person("admin"))

    assert exported() == before


def test_a_deleted_node_comes_back():
    create_node(machine("n9", "4"))
    before = exported()
    delete_node("n9")

    apply_change_set(revert_entry(newest(), by=person("admin")).pk, by=person("admin"))

    assert exported() == before


def test_later_changes_of_other_fields_stay():
    update_queue("vision", {"spec": {"weight": 9}}, merge=True)
    entry = newest()
    update_queue("vision", {"spec": {"priority": 5}}, merge=True)

    apply_change_set(revert_entry(entry, by=person("admin")).pk, by=person("admin"))

    vision = Queue.objects.get(name="vision")
    assert (vision.weight, vision.priority) == (1, 5)


def test_a_later_change_of_the_same_field_is_told():
    update_queue("vision", {"spec": {"weight": 9}}, merge=True)
    entry = newest()
    update_queue("vision", {"spec": {"weight": 12}}, merge=True)

    made = revert_entry(entry, by=person("admin"))

    with pytest.raises(Crossed, match=r"spec\.weight from 9 to 12"):
        apply_change_set(made.pk, by=person("admin"))


def test_what_has_no_way_back_says_why():
    command_queue("research", QueueCommand.SUSPEND)
    followed = AuditEntry.objects.filter(follows="research").order_by("-pk").first()
    assert followed is not None

    with pytest.raises(NotPossible, match="SuspendQueue of research"):
        revert_entry(followed, by=person("admin"))
