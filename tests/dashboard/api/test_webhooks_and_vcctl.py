"""What Volcano's design documents have their readers type and apply, with our webhooks beside it.

The real vcctl, Volcano's own controller manager and definitions, and a real API server that asks
us.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scheduler.models import PodGroup, Queue
from tests.control_plane import objects
from tests.control_plane.objects import QUEUES, wait_until
from tests.control_plane.plane import ControlPlane, ProgramFailed
from tests.dashboard.asking import (
    ConsoleOf,
    add_node,
    asked,
    create,
    refusal,
    stored,
    wait_for_queue,
)
from tests.services.cluster.mirror.test_real_cluster import watching

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.kubernetes]

RESERVATION = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata:
  name: q1
spec:
  reclaimable: true
  weight: 1
  guarantee:             # reservation key word
    resource:            # specified reserving resource
      cpu: {cpu}
      memory: 4G
"""


@pytest.fixture
def volcano(control_plane: ControlPlane, console_of: ConsoleOf) -> Iterator[ControlPlane]:
    """Volcano as it is installed, except for its scheduler, and us."""
    plane = control_plane
    with asked(plane, console_of(plane)), watching(plane), plane.volcano_controllers():
        yield plane


def vcctl(plane: ControlPlane, line: str) -> str:
    program, *arguments = line.split()
    assert program == "vcctl"
    return plane.vcctl(*arguments)


def state_in_cluster(plane: ControlPlane, name: str) -> str:
    return str(stored(plane, name).get("status", {}).get("state", ""))


def wait_for_state(plane: ControlPlane, name: str, state: str) -> None:
    """On both sides: Volcano's controllers have written it, and we have seen it."""
    wait_until(lambda: state_in_cluster(plane, name) == state, f"{name} to be {state}")
    wait_for_queue(name, state=state)


def test_the_queue_design(volcano: ControlPlane):
    vcctl(volcano, "vcctl queue create --name myqueue --weight 10")
    wait_for_queue("myqueue", weight=10)

    rows = [line.split() for line in vcctl(volcano, "vcctl queue list").splitlines()]

    assert rows[0][:2] == ["Name", "Weight"]
    assert ["myqueue", "10"] in [row[:2] for row in rows]
    # Volcano calls it get by now
    assert "myqueue" in vcctl(volcano, "vcctl queue get --name myqueue")
    with pytest.raises(ProgramFailed, match="There is no queue ghost"):
        create(volcano, objects.volcano_job("j", queue="ghost"))


def test_the_queue_state_design(volcano: ControlPlane):
    vcctl(volcano, "vcctl queue create --name myqueue --weight 10")
    wait_for_state(volcano, "myqueue", "Open")
    assert "myqueue is Open" in refusal(vcctl, volcano, "vcctl queue delete --name myqueue")
    create(volcano, objects.volcano_job("j", queue="myqueue"))
    wait_until(PodGroup.objects.filter(queue__name="myqueue").exists, "the job's podgroup")

    vcctl(volcano, "vcctl queue operate --name myqueue --action update --weight 20")
    vcctl(volcano, "vcctl queue operate --name myqueue --action close")

    wait_for_state(volcano, "myqueue", "Closing")
    wait_for_queue("myqueue", weight=20)
    told = refusal(create, volcano, objects.volcano_job("k", queue="myqueue"))
    assert told.startswith("Conflict: myqueue is Closing and takes no jobs;")
    assert "has 1 podgroup" in refusal(vcctl, volcano, "vcctl queue delete --name myqueue")

    with volcano.controllers():  # the podgroup goes with its job
        volcano.kubectl("delete", "jobs.batch.volcano.sh", "j")
        wait_for_state(volcano, "myqueue", "Closed")
    vcctl(volcano, "vcctl queue operate --name myqueue --action open")
    wait_for_state(volcano, "myqueue", "Open")
    vcctl(volcano, "vcctl queue operate --name myqueue --action close")
    wait_for_state(volcano, "myqueue", "Closed")
    vcctl(volcano, "vcctl queue delete --name myqueue")
    wait_until(lambda: not Queue.objects.filter(name="myqueue").exists(), "the mirror to lose it")


def test_the_design_of_guarantees(volcano: ControlPlane):
    add_node(volcano, "n1", cpu="1")

    def apply(cpu: str) -> str:
        return volcano.kubectl("apply", "-f", "-", given=RESERVATION.format(cpu=cpu))

    with pytest.raises(ProgramFailed, match="2c"):  # as it is written: no quantity of Kubernetes
        apply("2c")
    assert "guarantee cpu 2 of q1 is more than the whole cluster has (1)." in refusal(apply, "2")
    add_node(volcano, "n2", cpu="1")
    assert "created" in apply("2")


def test_vcctl_creates_a_closed_queue(extended_control_plane: ControlPlane, console_of: ConsoleOf):
    plane = extended_control_plane
    with asked(plane, console_of(plane)):
        vcctl(plane, "vcctl queue create --name shut --state Closed")

        assert plane.api.get(f"{QUEUES}/shut")["spec"]["state"] == "Closed"
        told = refusal(create, plane, objects.volcano_job("j", queue="shut"))
        assert told.startswith("Conflict: shut is Closed")
