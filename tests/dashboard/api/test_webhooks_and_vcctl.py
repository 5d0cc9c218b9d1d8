"""What Volcano's design documents have their readers type and apply, with our webhooks beside it.

The real vcctl, Volcano's own controller manager and definitions, and a real API server that asks
us.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from scheduler.domain.resources import Resources
from scheduler.models import PodGroup, Queue
from tests.control_plane import objects
from tests.control_plane.objects import QUEUES, wait_until
from tests.control_plane.plane import ControlPlane, ProgramFailed
from tests.dashboard.asking import (
    CONFIGURATIONS,
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

_KIND = "queues.scheduling.volcano.sh"
_VERBS = {"validating": "validate", "mutating": "mutate"}
DESIGNS = Path(objects.__file__).parent / "designs"


def lines_of(design: str) -> list[str]:
    """What its reader types after the prompt."""
    return [line.removeprefix("$ ") for line in (DESIGNS / design).read_text().splitlines()]


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
    create_line, view_line, list_line = lines_of("queue.txt")
    vcctl(volcano, create_line)
    wait_for_queue("myqueue", weight=10)

    rows = [line.split() for line in vcctl(volcano, list_line).splitlines()]

    assert rows[0][:2] == ["Name", "Weight"]
    assert ["myqueue", "10"] in [row[:2] for row in rows]
    # Volcano calls it get by now, and answers the old name with its usage
    assert "get a queue" in vcctl(volcano, view_line)
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
    as_written = (DESIGNS / "reservation.txt").read_text()
    with_comments = as_written.replace("//", "#")
    in_cores = with_comments.replace("2c", "2")

    def apply(manifest: str) -> str:
        return volcano.kubectl("apply", "-f", "-", given=manifest)

    with pytest.raises(ProgramFailed, match="error converting YAML to JSON"):
        apply(as_written)  # what stands behind // is no comment in YAML
    with pytest.raises(ProgramFailed, match="2c"):  # no quantity of Kubernetes
        apply(with_comments)
    assert "guarantee cpu 2 of q1 is more than the whole cluster has (1)." in refusal(
        apply, in_cores
    )
    add_node(volcano, "n2", cpu="1")
    assert "created" in apply(in_cores)
    wait_for_queue("q1", weight=1, reclaimable=True)
    wanted = Resources.parse({"cpu": "2", "memory": "4G"})
    assert Queue.objects.get(name="q1").guarantee == wanted
    capped = in_cores + "  capability: {cpu: 1}\n"
    assert "guarantee cpu 2 of q1 is more than its capability" in refusal(apply, capped)


def test_the_webhooks_of_the_queue_state_design_are_ours(volcano: ControlPlane):
    """Its templates ask for the old group of queues, and a Service of Volcano's release."""
    text = (DESIGNS / "webhooks.txt").read_text()
    for asked_for in ("{{ .Release.Name }}", "{{ .Release.Namespace }}"):
        text = text.replace(asked_for, "fumarole")
    installed = [hook for path in CONFIGURATIONS for hook in volcano.api.get(path)["webhooks"]]
    for wanted in yaml.safe_load_all(text):
        (hook,) = wanted["webhooks"]
        kind = wanted["kind"].removesuffix("WebhookConfiguration").lower()
        ours = next(each for each in installed if each["name"].startswith(f"{_VERBS[kind]}.queues"))
        assert ours["failurePolicy"] == hook["failurePolicy"]
        operations = {name for rule in ours["rules"] for name in rule["operations"]}
        assert set(hook["rules"][0]["operations"]) <= operations


def give(plane: ControlPlane, name: str, action: str) -> None:
    """A bus command, as the suspension design says it."""
    create(plane, objects.command(action, stored(plane, name)))
    wait_until(lambda: not plane.kubectl("get", "commands", "-A"), f"{action} to be carried out")


@pytest.fixture
def extended(extended_control_plane: ControlPlane, console_of: ConsoleOf) -> Iterator[ControlPlane]:
    """The definitions as the designs ask for them. Nobody but us looks after queues."""
    plane = extended_control_plane
    with asked(plane, console_of(plane)), watching(plane):
        yield plane


def test_the_hierarchy_design(extended: ControlPlane):
    create(extended, objects.queue("a", weight=1, deserved={"cpu": "4"}))
    create(extended, objects.queue("b", weight=1, parent="a", deserved={"cpu": "3"}))
    wait_for_queue("b", parent__name="a")
    too_much = objects.queue("c", weight=1, parent="a", deserved={"cpu": "2"})
    assert "deserved" in refusal(create, extended, too_much)
    assert "a has 1 child" in refusal(create, extended, objects.volcano_job("j", queue="a"))

    give(extended, "a", "CloseQueue")
    for name in ("a", "b"):  # what is below is closed with it
        wait_for_state(extended, name, "Closed")
    assert "a has 1 child" in refusal(extended.kubectl, "delete", _KIND, "a")
    extended.kubectl("delete", _KIND, "b")
    extended.kubectl("delete", _KIND, "a")
    wait_until(lambda: not Queue.objects.filter(name="a").exists(), "the mirror to lose it")


def test_vcctl_creates_a_closed_queue(extended_control_plane: ControlPlane, console_of: ConsoleOf):
    plane = extended_control_plane
    with asked(plane, console_of(plane)):
        vcctl(plane, "vcctl queue create --name shut --state Closed")

        assert plane.api.get(f"{QUEUES}/shut")["spec"]["state"] == "Closed"
        told = refusal(create, plane, objects.volcano_job("j", queue="shut"))
        assert told.startswith("Conflict: shut is Closed")
