"""Queues of a real cluster, changed here: what is sent, what is refused, and what is kept of it.

The API server is a fake one, for conflicts and outages that a real one does not give at will.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scheduler.admission.violations import Rejected
from scheduler.domain.lifecycle import QueueCommand
from scheduler.models import AuditEntry, Command, Mirror, Queue
from scheduler.services.accounts.actors import Actor
from scheduler.services.cluster.queue_writes import ClusterAway
from scheduler.services.files.apply import apply_documents, check_documents
from scheduler.services.queues.commands import QueueOrder, command_queue, command_queues
from scheduler.services.queues.create_update import create_queue, create_queues, update_queue
from scheduler.services.queues.deletion import delete_queue
from scheduler.services.queues.planned_deletion import carry_out_deletions, close_then_delete
from tests.control_plane import objects
from tests.control_plane.fake.faults import Answer, Late, Reset
from tests.fake_cluster import COMMANDS, QUEUES, FakeCluster, fake_cluster

pytestmark = pytest.mark.django_db

ALL = f"{objects.QUEUES}*"
ADMIN = Actor("ann")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[FakeCluster]:
    with fake_cluster(tmp_path) as running:
        yield running


def set_weight(weight: int) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda queue: {**queue, "spec": {**queue["spec"], "weight": weight}}


def patch(**spec: Any) -> dict[str, Any]:
    return {"spec": spec}


# What is sent


def test_a_new_queue_is_created_in_the_cluster_and_then_mirrored(cluster):
    made = create_queue(objects.queue("vision", weight=2, parent="research"), by=ADMIN)

    assert cluster.queue("vision")["spec"]["weight"] == 2
    assert cluster.queue("vision")["spec"]["parent"] == "research"
    assert made.queue.name == "vision"
    assert [notice.code for notice in made.notices] == ["sent_to_cluster"]
    assert not Queue.objects.filter(name="vision").exists()
    assert AuditEntry.objects.get().action == "CreateQueue"
    cluster.tells()
    assert Queue.objects.get(name="vision").parent_name == "research"


def test_only_the_changed_field_is_written_so_others_keep_theirs(cluster):
    cluster.changes("research", lambda queue: {**queue, "spec": {**queue["spec"], "priority": 9}})

    update_queue("research", patch(weight=5), by=ADMIN, merge=True)

    spec = cluster.queue("research")["spec"]
    assert (spec["weight"], spec["priority"]) == (5, 9)


def test_one_resource_of_an_amount_is_taken_out_and_the_others_stay(cluster):
    cluster.has("vision", parent="root", capability={"cpu": "4", "memory": "8Gi"})
    cluster.tells()

    update_queue("vision", patch(capability={"cpu": "4", "memory": None}), by=ADMIN, merge=True)

    assert cluster.queue("vision")["spec"]["capability"] == {"cpu": "4"}


def test_a_queue_that_moves_below_root_names_no_parent(cluster):
    """Volcano's controllers look for a queue of that name, and there may be none."""
    cluster.has("vision", parent="research")
    cluster.tells()

    update_queue("vision", patch(parent="root"), by=ADMIN, merge=True)

    assert "parent" not in cluster.queue("vision")["spec"]
    cluster.tells()
    assert Queue.objects.get(name="vision").parent_name == "root"


def test_a_dry_run_sends_nothing(cluster):
    create_queue(objects.queue("vision", parent="root"), by=ADMIN, dry_run=True)
    update_queue("research", patch(weight=5), by=ADMIN, merge=True, dry_run=True)
    command_queue("research", QueueCommand.CLOSE, by=ADMIN, dry_run=True)
    check_documents([objects.queue("vision", parent="root")], by=ADMIN)
    apply_documents([objects.queue("vision", parent="root")], by=ADMIN, dry_run=True)

    assert cluster.writes() == []
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize(
    ("command", "state"), [(QueueCommand.CLOSE, "Closed"), (QueueCommand.SUSPEND, "Suspended")]
)
def test_a_command_is_written_into_the_spec_of_the_extended_definition(cluster, command, state):
    outcome = command_queue("research", command, by=ADMIN, reason="repairs")

    assert cluster.queue("research")["spec"]["state"] == state
    assert "sent to the cluster" in outcome.message
    assert Command.objects.get().result == Command.DONE
    assert AuditEntry.objects.get().reason == "repairs"
    cluster.tells()
    assert Queue.objects.get(name="research").state == state


def test_a_command_is_an_annotation_where_the_definition_is_volcanos(cluster):
    cluster.defines()
    cluster.tells()

    command_queue("research", QueueCommand.SUSPEND, by=ADMIN)
    cluster.tells()
    command_queue("research", QueueCommand.RESUME, by=ADMIN)

    research = cluster.queue("research")
    assert research["metadata"]["annotations"] == {"fumarole.io/state": "Open"}
    assert "state" not in research["spec"]
    cluster.tells()
    assert Queue.objects.get(name="research").annotations == {}


def test_fields_that_only_we_have_come_back_from_their_annotations(cluster):
    changes = patch(owner="Ann", description="for models", minRunSeconds=60)
    update_queue("research", changes, by=ADMIN, merge=True)

    assert cluster.queue("research")["metadata"]["annotations"] == {
        "fumarole.io/owner": "Ann",
        "fumarole.io/description": "for models",
        "fumarole.io/min-run-seconds": "60",
    }
    cluster.tells()
    row = Queue.objects.get(name="research")
    assert (row.owner, row.description, row.min_run_seconds) == ("Ann", "for models", 60)

    update_queue("research", patch(owner=""), by=ADMIN, merge=True)

    assert "fumarole.io/owner" not in cluster.queue("research")["metadata"]["annotations"]


def test_where_volcano_decides_it_is_asked_to_close_and_open(cluster):
    cluster.defines(by=Mirror.VOLCANO)
    cluster.tells()

    command_queue("research", QueueCommand.CLOSE, by=ADMIN)

    (order,) = cluster.server.store.list(COMMANDS, "default")[0]
    assert order["action"] == "CloseQueue"
    assert order["target"]["name"] == "research"
    assert order["target"]["uid"] == cluster.queue("research")["metadata"]["uid"]
    assert "annotations" not in cluster.queue("research")["metadata"]
    cluster.changes("research", lambda queue: {**queue, "status": {"state": "Closed"}})
    cluster.tells()
    assert Queue.objects.get(name="research").state == "Closed"
    command_queue("research", QueueCommand.OPEN, by=ADMIN)
    actions = [each["action"] for each in cluster.server.store.list(COMMANDS, "default")[0]]
    assert sorted(actions) == ["CloseQueue", "OpenQueue"]


def test_where_volcano_decides_a_suspension_is_ours(cluster):
    cluster.defines(by=Mirror.VOLCANO)
    cluster.tells()

    command_queue("research", QueueCommand.SUSPEND, by=ADMIN)
    cluster.tells()

    assert Queue.objects.get(name="research").state == "Suspended"
    assert cluster.server.store.list(COMMANDS, "default")[0] == []
    command_queue("research", QueueCommand.RESUME, by=ADMIN)
    cluster.tells()
    assert Queue.objects.get(name="research").state == "Open"
    assert not cluster.queue("research")["metadata"].get("annotations")


def test_a_closed_queue_is_deleted_in_the_cluster(cluster):
    cluster.has("old", parent="root", state="Closed")
    cluster.tells()

    deleted = delete_queue("old", by=ADMIN)

    assert "sent to the cluster" in deleted.message
    assert "old" not in [each["metadata"]["name"] for each in _queues(cluster)]
    assert Queue.objects.filter(name="old").exists()  # until the mirror hears it
    cluster.tells()
    assert not Queue.objects.filter(name="old").exists()


def _queues(cluster: FakeCluster) -> list[dict[str, Any]]:
    return cluster.server.store.list(QUEUES, "")[0]


def test_close_first_deletes_when_the_mirror_says_closed(cluster):
    planned = close_then_delete("research", by=ADMIN)

    assert not planned.is_gone
    assert cluster.queue("research")["spec"]["state"] == "Closed"
    assert carry_out_deletions() == 0
    cluster.tells()
    # the account that asked for it is gone in this test, so the plan is dropped and told
    assert carry_out_deletions() == 1
    assert cluster.queue("research")


def test_a_file_is_sent_when_all_of_it_was_found_right(cluster):
    files = [objects.queue("vision", parent="research"), objects.queue("research", weight=0.5)]
    with pytest.raises(Rejected):
        apply_documents(files, by=ADMIN)
    assert cluster.writes() == []

    files = [objects.queue("vision", parent="research"), objects.queue("research", weight=4)]
    apply_documents(files, by=ADMIN)

    assert cluster.queue("research")["spec"]["weight"] == 4
    assert cluster.queue("vision")["spec"]["parent"] == "research"


def test_parents_are_created_before_their_children(cluster):
    given = [objects.queue("a", parent="root"), objects.queue("a1", parent="a")]
    results = create_queues(given, by=ADMIN)

    assert not any(isinstance(each, Exception) for each in results)
    assert cluster.queue("a1")["spec"]["parent"] == "a"


# Conflicts


def test_the_same_field_changed_by_somebody_else_is_a_conflict(cluster):
    cluster.changes("research", set_weight(7))

    with pytest.raises(Rejected) as refused:
        update_queue("research", patch(weight=5), by=ADMIN, merge=True)

    (violation,) = refused.value.violations
    assert violation.rule_id == "changed_in_cluster"
    assert (violation.queue, violation.field) == ("research", "spec.weight")
    assert "it is 7 by now, and was 3" in violation.message
    assert refused.value.by_state
    assert cluster.queue("research")["spec"]["weight"] == 7
    assert not AuditEntry.objects.exists()


def test_the_same_change_made_by_somebody_else_is_no_conflict(cluster):
    cluster.changes("research", set_weight(5))

    update_queue("research", patch(weight=5), by=ADMIN, merge=True)

    assert cluster.writes() == []


def test_a_409_means_read_again(cluster):
    cluster.server.plan("PATCH", ALL, Answer(409, "Conflict"), times=2)

    update_queue("research", patch(weight=5), by=ADMIN, merge=True)

    assert cluster.queue("research")["spec"]["weight"] == 5


def test_what_a_webhook_refuses_is_told_in_its_words_and_not_tried_again(cluster):
    cause = {"reason": "parent_busy", "field": "spec.parent", "message": "vision has podgroups."}
    message = 'admission webhook "x" denied the request: vision has podgroups.'
    cluster.server.plan("PATCH", ALL, Answer(409, "Conflict", message, causes=(cause,)))

    with pytest.raises(Rejected) as refused:
        update_queue("research", patch(weight=5), by=ADMIN, merge=True)

    (violation,) = refused.value.violations
    assert (violation.rule_id, violation.field) == ("parent_busy", "spec.parent")
    assert str(refused.value) == "vision has podgroups."
    assert refused.value.by_state
    assert cluster.writes() == ["PATCH"]


def test_another_webhook_that_names_no_cause_is_quoted(cluster):
    message = 'admission webhook "y" denied the request: not on Sundays'
    cluster.server.plan("PATCH", ALL, Answer(403, "Forbidden", message))

    with pytest.raises(Rejected, match=r"^not on Sundays$"):
        update_queue("research", patch(weight=5), by=ADMIN, merge=True)


def test_a_queue_that_was_made_again_is_not_changed(cluster):
    cluster.server.store.delete(QUEUES, "", "research")
    cluster.has("research", weight=3, parent="root")

    with pytest.raises(Rejected) as refused:
        update_queue("research", patch(weight=5), by=ADMIN, merge=True)

    assert "created again" in str(refused.value)
    assert cluster.queue("research")["spec"]["weight"] == 3


def test_a_queue_that_was_opened_again_is_not_deleted(cluster):
    cluster.has("old", parent="root", state="Closed")
    cluster.tells()
    cluster.changes("old", lambda queue: {**queue, "spec": {**queue["spec"], "state": "Open"}})

    with pytest.raises(Rejected) as refused:
        delete_queue("old", by=ADMIN)

    assert "spec.state of the queue old was changed" in str(refused.value)
    assert cluster.queue("old")


# Refusals and outages


@pytest.mark.parametrize(
    ("answer", "rule", "words"),
    [
        (Answer(403, "Forbidden", "no rights"), "forbidden_in_cluster", "no rights"),
        (Answer(422, "Invalid", "too heavy"), "refused_in_cluster", "too heavy"),
        (Answer(400, "BadRequest", "denied by a webhook"), "refused_in_cluster", "webhook"),
    ],
)
def test_what_the_api_server_refuses_names_the_queue(cluster, answer, rule, words):
    cluster.server.plan("PATCH", ALL, answer)

    with pytest.raises(Rejected) as refused:
        update_queue("research", patch(weight=5), by=ADMIN, merge=True)

    (violation,) = refused.value.violations
    assert violation.rule_id == rule
    assert "queue research" in violation.message
    assert words in violation.message
    assert not AuditEntry.objects.exists()


def test_a_name_that_is_taken_in_the_cluster(cluster):
    cluster.has("vision", parent="root")

    with pytest.raises(Rejected) as refused:
        create_queue(objects.queue("vision", parent="root"), by=ADMIN)

    assert refused.value.violations[0].rule_id == "already_exists"


def test_an_api_server_that_is_away_is_told_and_leaves_nothing(cluster):
    cluster.server.plan("GET", ALL, Answer(503, "ServiceUnavailable", "away"))

    with pytest.raises(ClusterAway) as refused:
        command_queue("research", QueueCommand.CLOSE, by=ADMIN)

    assert "The queue research was not changed" in str(refused.value)
    assert Command.objects.get().result == Command.FAILED
    assert not AuditEntry.objects.exists()


def test_a_lost_answer_is_looked_after(cluster):
    cluster.server.plan("PATCH", ALL, Reset(is_done=True))
    update_queue("research", patch(weight=5), by=ADMIN, merge=True)
    cluster.server.plan("POST", ALL, Reset(is_done=True))
    create_queue(objects.queue("vision", parent="root"), by=ADMIN)

    assert cluster.queue("research")["spec"]["weight"] == 5
    assert cluster.queue("vision")
    assert cluster.writes().count("POST") == 1


@pytest.mark.parametrize("is_done", [True, False])
def test_it_is_not_claimed_that_nothing_was_done_where_that_is_not_known(cluster, is_done):
    cluster.server.plan("PATCH", ALL, Reset(is_done=is_done))
    cluster.server.plan("GET", ALL, Late(0.0))
    cluster.server.plan("GET", ALL, Answer(503, "ServiceUnavailable", "away"))

    with pytest.raises(ClusterAway) as refused:
        update_queue("research", patch(weight=5), by=ADMIN, merge=True)

    assert "It is not known whether the queue research was changed" in str(refused.value)


def test_a_new_queue_whose_request_was_lost_was_not_created(cluster):
    cluster.server.plan("POST", ALL, Reset(is_done=False))

    with pytest.raises(ClusterAway) as refused:
        create_queue(objects.queue("vision", parent="root"), by=ADMIN)

    assert "The queue vision was not created" in str(refused.value)


def test_one_order_that_fails_stops_no_other(cluster):
    cluster.has("vision", parent="root")
    cluster.tells()
    cluster.server.plan("PATCH", f"{objects.QUEUES}/research", Answer(403, "Forbidden", "no"))

    orders = [QueueOrder(name, QueueCommand.CLOSE) for name in ("research", "vision")]
    refused, done = command_queues(orders, by=ADMIN)

    assert isinstance(refused, Rejected)
    assert not isinstance(done, Exception)
    assert cluster.queue("vision")["spec"]["state"] == "Closed"
    results = dict(Command.objects.values_list("target_name", "result"))
    assert results == {"research": Command.FAILED, "vision": Command.DONE}
    assert [entry.name for entry in AuditEntry.objects.all()] == ["vision"]


def test_a_field_that_the_server_drops_is_told(cluster, monkeypatch):
    """The definition was replaced a moment ago."""
    monkeypatch.setattr(cluster.server.store, "change", _dropping(cluster.server.store.change))

    with pytest.raises(Rejected) as refused:
        command_queue("research", QueueCommand.SUSPEND, by=ADMIN)

    assert refused.value.violations[0].field == "spec.state"
    assert "does not know spec.state" in str(refused.value)


def _dropping(change: Any) -> Any:
    def changed(resource: Any, namespace: str, name: str, how: Any, **more: Any) -> Any:
        def without_state(queue: dict[str, Any]) -> dict[str, Any]:
            after = how(queue)
            after["spec"].pop("state", None)
            return after

        return change(resource, namespace, name, without_state, **more)

    return changed
