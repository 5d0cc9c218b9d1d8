"""A dry run writes nothing and waits for nobody, not even for the one writer of SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection

from scheduler.domain.lifecycle import QueueCommand
from scheduler.models import AuditEntry, Job, Node, Pod, Queue
from scheduler.services.cluster import nodes, simulation
from scheduler.services.files import catalog
from scheduler.services.files.apply import apply_documents, check_documents
from scheduler.services.jobs.changes import delete_job, update_job
from scheduler.services.jobs.submit import command_job, submit_job
from scheduler.services.queues.commands import command_queue
from tests.worlds import job, manifest, node, queue, run_session

pytestmark = pytest.mark.django_db(transaction=True)

NODE = {"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "2"}}}
NEW_NODE = {**NODE, "metadata": {"name": "n9"}}
NAMESPACE = {"kind": "Namespace", "metadata": {"name": "research"}}
CLASS = {"kind": "PriorityClass", "metadata": {"name": "high"}, "spec": {"value": 9}}


def queue_document(name: str, parent: str = "root") -> dict[str, Any]:
    return {"kind": "Queue", "metadata": {"name": name}, "spec": {"parent": parent}}


@pytest.fixture
def world() -> None:
    node("n1", cpu="8")
    queue("a")
    job("train", replicas=2)
    run_session()
    job("waits", replicas=2)
    job("done", replicas=1)
    Job.objects.filter(name="done").update(phase="Completed")
    Pod.objects.filter(podgroup__job__name="done").update(phase="Succeeded", node=None)


@pytest.fixture
def busy_writer(world: None) -> Iterator[None]:
    """Somebody else who writes all the time. Waiting for them fails after a moment."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout = 50")
    other = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    yield
    other.execute("ROLLBACK")
    other.close()
    connection.close()


def smaller() -> dict[str, Any]:
    return {**manifest("train", replicas=1), "kind": "Job"}


DRY_RUNS: dict[str, Callable[[], Any]] = {
    "submit": lambda: submit_job(manifest("new"), dry_run=True),
    "change a job": lambda: update_job("default", "train", smaller(), dry_run=True),
    "delete a job": lambda: delete_job("default", "done", dry_run=True),
    "cancel": lambda: command_job("default", "train", "Cancel", dry_run=True),
    "close a queue": lambda: command_queue("a", QueueCommand.CLOSE, dry_run=True),
    "add a node": lambda: nodes.create_node(NEW_NODE, dry_run=True),
    "change a node": lambda: nodes.update_node("n1", NODE, dry_run=True),
    "cordon": lambda: nodes.cordon_node("n1", dry_run=True),
    "uncordon": lambda: nodes.uncordon_node("n1", dry_run=True),
    "drain": lambda: nodes.drain_node("n1", dry_run=True),
    "lose a node": lambda: simulation.lose_node("n1", dry_run=True),
    "bring a node back": lambda: simulation.bring_back_node("n1", dry_run=True),
    "add a namespace": lambda: catalog.create_entry(catalog.NAMESPACES, NAMESPACE, dry_run=True),
    "add a class": lambda: catalog.create_entry(catalog.PRIORITY_CLASSES, CLASS, dry_run=True),
    "apply a job": lambda: apply_documents([smaller()], dry_run=True),
    "apply a node": lambda: apply_documents([NODE], dry_run=True),
    "apply a tree": lambda: apply_documents(
        [queue_document("below", "b"), queue_document("b")], dry_run=True
    ),
    "apply what is there, and a queue": lambda: apply_documents(
        [queue_document("a"), queue_document("b"), {"kind": "Namespace", **_named("default")}],
        dry_run=True,
    ),
    "validate": lambda: check_documents([smaller()]),
}


def _named(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


@pytest.mark.usefixtures("busy_writer")
@pytest.mark.parametrize("what", DRY_RUNS)
def test_a_dry_run_is_answered_while_somebody_else_writes(what: str):
    DRY_RUNS[what]()


@pytest.mark.usefixtures("busy_writer")
def test_the_order_itself_has_to_wait():
    with pytest.raises(OperationalError, match="locked"):
        nodes.cordon_node("n1")


@pytest.mark.usefixtures("world")
def test_no_dry_run_changes_anything():
    before = _everything()

    for dry_run in DRY_RUNS.values():
        dry_run()

    assert _everything() == before


def _everything() -> list[Any]:
    tables = (Job, Pod, Node, Queue, AuditEntry)
    return [list(table.objects.order_by("pk").values()) for table in tables]


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("name", ["train", "waits"])
@pytest.mark.parametrize("action", ["Cancel", "AbortJob", "RestartJob"])
def test_a_dry_run_foretells_the_phase_of_a_job(name: str, action: str):
    foretold = command_job("default", name, action, dry_run=True)

    came = command_job("default", name, action)

    assert (foretold.message, foretold.changed) == (came.message, came.changed)
    assert foretold.job.phase == came.job.phase


@pytest.mark.usefixtures("world")
def test_objects_of_a_file_that_need_each_other_are_tried_together():
    file = [queue_document("b"), {**manifest("train-b", queue="b"), "kind": "Job"}]

    tried = apply_documents(file, dry_run=True)

    assert [one.operation for one in tried] == ["created", "created"]
    assert not Queue.objects.filter(name="b").exists()


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize(
    "file", [[NODE], [smaller()], [NEW_NODE, NEW_NODE], [queue_document("b"), NAMESPACE]]
)
def test_a_dry_run_of_a_file_answers_as_the_real_one(file: list[Any]):
    tried = apply_documents(file, dry_run=True)

    done = apply_documents(file)

    assert tried == done
