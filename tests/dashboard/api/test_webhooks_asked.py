"""The rules of queues and work, as kubectl meets them: the API server asks us over TLS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.utils import timezone

from scheduler.models import Mirror, PodGroup, Queue
from tests.control_plane import objects, programs
from tests.control_plane.api import ApiError
from tests.control_plane.console import TlsConsole, database_of_tests
from tests.control_plane.objects import QUEUES, wait_until
from tests.control_plane.plane import ControlPlane, ProgramFailed
from tests.dashboard.asking import (
    ConsoleOf,
    add_node,
    asked,
    create,
    refusal,
    running,
    stored,
    wait_for_queue,
)
from tests.services.cluster.mirror.test_real_cluster import watching

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.kubernetes]


@pytest.fixture
def cluster(extended_control_plane: ControlPlane, console_of: ConsoleOf) -> Iterator[ControlPlane]:
    """A cluster with our definition of queues that asks us, and is mirrored."""
    plane = extended_control_plane
    with asked(plane, console_of(plane)), watching(plane):
        yield plane


def set_state(plane: ControlPlane, name: str, state: str) -> str:
    patch = f'{{"spec": {{"state": "{state}"}}}}'
    return plane.kubectl("patch", "queue", name, "--type=merge", "-p", patch)


# Creating and changing queues


def test_what_a_new_queue_leaves_out_is_filled_in(cluster: ControlPlane):
    create(cluster, objects.queue("plain"), objects.queue("shut", state="Closed"))

    assert stored(cluster, "plain")["spec"] == {
        "weight": 1,
        "reclaimable": True,
        "parent": "root",
        "dequeueStrategy": "traverse",
        "state": "Open",
    }
    assert stored(cluster, "shut")["spec"]["state"] == "Closed"


def test_a_tree_in_one_file_is_taken_although_the_mirror_is_behind(cluster: ControlPlane):
    made = create(
        cluster,
        objects.queue("company"),
        objects.queue("team", parent="company"),
        objects.queue("person", parent="team"),
    )

    assert made.count("created") == 3
    wait_for_queue("person", parent__name="team")


def test_a_queue_below_nothing_is_refused(cluster: ControlPlane):
    assert refusal(create, cluster, objects.queue("team", parent="ghost")) == (
        "BadRequest: team cannot be put there: ghost, its parent, does not exist. "
        "Create ghost first, or name another queue."
    )


def test_the_children_of_a_queue_get_no_more_than_it_has(cluster: ControlPlane):
    parent = objects.queue("p", capability={"cpu": 10}, deserved={"cpu": 10})
    parent["spec"]["guarantee"] = {"resource": {"cpu": 4}}
    create(cluster, parent, objects.queue("first", parent="p", deserved={"cpu": 6}))
    wait_for_queue("first", parent__name="p")

    over = objects.queue("second", parent="p", deserved={"cpu": 6})
    assert "deserved" in refusal(create, cluster, over)
    promised = objects.queue("second", parent="p", guarantee={"resource": {"cpu": 5}})
    assert "guarantee" in refusal(create, cluster, promised)
    wider = objects.queue("second", parent="p", capability={"cpu": 11})
    assert "capability" in refusal(create, cluster, wider)
    create(cluster, objects.queue("second", parent="p", deserved={"cpu": 4}))


def test_a_guarantee_fits_into_the_cluster_and_into_the_capability(cluster: ControlPlane):
    add_node(cluster, "n1", cpu="8")

    large = objects.queue("q", guarantee={"resource": {"cpu": 9}})
    assert refusal(create, cluster, large) == (
        "BadRequest: guarantee cpu 9 of q is more than the whole cluster has (8). "
        "Lower it to 8 or less."
    )
    wide = objects.queue("q", guarantee={"resource": {"cpu": 2}}, capability={"cpu": 1})
    assert "guarantee cpu 2 of q is more than its capability 1." in refusal(create, cluster, wide)


def test_a_queue_with_work_gets_no_children(cluster: ControlPlane):
    create(cluster, objects.queue("busy"), objects.podgroup("gang", queue="busy"))
    wait_until(PodGroup.objects.filter(queue__name="busy").exists, "the podgroup in the mirror")

    told = refusal(create, cluster, objects.queue("child", parent="busy"))

    assert "only a queue without work can get children." in told


def test_a_state_that_cannot_be_asked_for_is_refused(cluster: ControlPlane):
    create(cluster, objects.queue("q"))

    for wrong in ("Closing", "Unknown", "Odd"):
        with pytest.raises(ProgramFailed, match=r"spec\.state"):
            create(cluster, objects.queue("other", state=wrong))
        with pytest.raises(ProgramFailed, match=r"spec\.state"):
            set_state(cluster, "q", wrong)


def test_a_queue_below_a_closed_one_cannot_be_opened(cluster: ControlPlane):
    create(cluster, objects.queue("p"), objects.queue("c", parent="p", state="Closed"))
    set_state(cluster, "p", "Closed")
    wait_for_queue("p", state="Closed")

    assert refusal(set_state, cluster, "c", "Open").startswith("Conflict: ")


# Deleting


def test_only_a_closed_queue_without_children_is_deleted(cluster: ControlPlane):
    create(cluster, objects.queue("p"), objects.queue("c", parent="p"))
    wait_for_queue("c", parent__name="p")

    assert refusal(cluster.kubectl, "delete", "queue", "p") == (
        "Conflict: p has 1 child (c). Delete the children first. "
        "p is Open; only a Closed queue can be deleted. Close p and wait until it is Closed."
    )
    set_state(cluster, "p", "Closed")
    cluster.kubectl("delete", "queue", "c")
    cluster.kubectl("delete", "queue", "p")  # at once: nobody waits for the mirror
    assert cluster.kubectl("get", "queues", "-o", "name") == ""


def test_a_queue_with_podgroups_is_not_deleted(cluster: ControlPlane):
    create(cluster, objects.queue("busy"), objects.podgroup("gang", queue="busy"))
    wait_until(PodGroup.objects.filter(queue__name="busy").exists, "the podgroup in the mirror")
    set_state(cluster, "busy", "Closed")

    told = refusal(cluster.kubectl, "delete", "queue", "busy")

    assert told.startswith("Conflict: busy is Closing; only a Closed queue can be deleted.")
    assert "busy has 1 podgroup not Completed." in told


def test_the_default_queue_is_never_deleted(cluster: ControlPlane):
    create(cluster, objects.queue("default", state="Closed"), objects.queue("root"))

    assert refusal(cluster.kubectl, "delete", "queue", "default") == (
        "Conflict: default cannot be deleted: jobs that name no queue go there."
    )
    assert refusal(cluster.kubectl, "delete", "queue", "root").startswith("Conflict: root cannot")


# Work


@pytest.mark.parametrize("work", [objects.volcano_job, objects.podgroup])
def test_work_goes_to_open_and_suspended_leaves(cluster: ControlPlane, work: Callable[..., Any]):
    create(
        cluster,
        objects.queue("open"),
        objects.queue("waits", state="Suspended"),
        objects.queue("shut", state="Closed"),
        objects.queue("p"),
        objects.queue("c", parent="p"),
    )

    assert refusal(create, cluster, work("w", queue="shut")) == (
        "Conflict: shut is Closed and takes no jobs; a queue must be Open or Suspended for that. "
        "Open shut, or name another queue."
    )
    assert refusal(create, cluster, work("w", queue="ghost")) == (
        "BadRequest: There is no queue ghost. Name a queue that exists."
    )
    assert "only a leaf queue does." in refusal(create, cluster, work("w", queue="p"))
    assert "root takes no work" in refusal(create, cluster, work("w", queue="root"))
    create(cluster, work("w1", queue="open"), work("w2", queue="waits"), work("w3", queue="c"))


def test_a_closing_queue_takes_no_work(cluster: ControlPlane):
    create(cluster, objects.queue("busy"), objects.podgroup("gang", queue="busy"))
    wait_until(PodGroup.objects.filter(queue__name="busy").exists, "the podgroup in the mirror")
    set_state(cluster, "busy", "Closed")
    wait_for_queue("busy", state="Closing")

    assert "busy is Closing" in refusal(create, cluster, objects.volcano_job("j", queue="busy"))


def test_a_queue_that_was_opened_just_now_takes_work(cluster: ControlPlane):
    create(cluster, objects.queue("q", state="Closed"))
    wait_for_queue("q", state="Closed")

    set_state(cluster, "q", "Open")
    create(cluster, objects.volcano_job("j", queue="q"))  # the mirror may still have it Closed


def test_a_job_gets_its_queue_and_defaults(cluster: ControlPlane):
    job = objects.volcano_job("j")
    del job["spec"]["queue"], job["spec"]["minAvailable"], job["spec"]["tasks"][0]["name"]

    create(cluster, job)

    jobs = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
    made = cluster.api.get(f"{jobs}/j")["spec"]
    assert (made["queue"], made["minAvailable"], made["maxRetry"]) == ("default", 1, 3)
    assert made["tasks"][0]["name"] == "default0"


def test_only_pods_of_our_schedulers_are_judged(cluster: ControlPlane):
    create(cluster, objects.queue("shut", state="Closed"))
    mark = {"scheduling.volcano.sh/queue-name": "shut"}

    for scheduler in ("volcano", "fumarole"):
        pod = objects.pod("ours", scheduler=scheduler, annotations=mark)
        assert "shut is Closed" in refusal(create, cluster, pod)
    create(cluster, objects.pod("other", scheduler="default-scheduler", annotations=mark))


def test_the_answer_of_the_api_server_has_our_status_and_causes(cluster: ControlPlane):
    create(cluster, objects.queue("shut", state="Closed"))
    groups = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"

    with pytest.raises(ApiError) as wrong:
        cluster.api.post(QUEUES, objects.queue("q", parent="ghost"))
    with pytest.raises(ApiError) as forbidden:
        cluster.api.post(groups, objects.podgroup("g", queue="shut"))

    assert (wrong.value.code, wrong.value.status["reason"]) == (400, "BadRequest")
    assert (forbidden.value.code, forbidden.value.status["reason"]) == (409, "Conflict")
    (cause,) = wrong.value.status["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("parent_not_found", "spec.parent")


# Where the mirror and we are not


def test_without_a_mirror_the_cluster_itself_is_asked(
    extended_control_plane: ControlPlane, console_of: ConsoleOf
):
    plane = extended_control_plane
    create(plane, objects.queue("p", deserved={"cpu": 10}), objects.queue("shut", state="Closed"))

    with asked(plane, console_of(plane)):
        create(plane, objects.queue("first", parent="p", deserved={"cpu": 6}))
        over = objects.queue("second", parent="p", deserved={"cpu": 6})
        assert "deserved" in refusal(create, plane, over)
        create(plane, objects.volcano_job("j", queue="first"))
        assert "shut is Closed" in refusal(create, plane, objects.volcano_job("k", queue="shut"))
        plane.kubectl("delete", "queue", "shut")


def test_queues_that_passed_at_the_same_time_get_a_warning(
    extended_control_plane: ControlPlane, console_of: ConsoleOf
):
    plane = extended_control_plane
    with asked(plane, console_of(plane)):
        with watching(plane):
            create(plane, objects.queue("p", deserved={"cpu": 10}))
            wait_for_queue("p")
        # a mirror that is behind, and does not know it
        Mirror.objects.update(heard_at=timezone.now() + timedelta(hours=1))
        create(plane, objects.queue("first", parent="p", deserved={"cpu": 6}))
        create(plane, objects.queue("second", parent="p", deserved={"cpu": 6}))

        with watching(plane):
            wait_until(lambda: "deserved" in _problems_of("p"), "a warning on the queue")


def _problems_of(name: str) -> str:
    queue = Queue.objects.filter(name=name).first()
    if queue is None:
        return ""
    return f"{queue.warnings} {queue.conditions}"


def test_while_we_are_away_nothing_that_is_judged_passes(
    extended_control_plane: ControlPlane, console_of: ConsoleOf
):
    plane = extended_control_plane
    console = console_of(plane)
    create(plane, objects.queue("q"), objects.podgroup("gang", queue="q"))
    with asked(plane, console):
        console.stop()
        try:
            with pytest.raises(ProgramFailed, match="failed calling webhook"):
                create(plane, objects.queue("other"))
            with pytest.raises(ProgramFailed, match="failed calling webhook"):
                set_state(plane, "q", "Closed")
            with pytest.raises(ProgramFailed, match="failed calling webhook"):
                create(plane, objects.pod("ours", scheduler="volcano"))
            # what Volcano writes all the time, and the pods of others
            plane.api.patch(f"{QUEUES}/q/status", {"status": {"state": "Closing"}})
            groups = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
            plane.api.patch(f"{groups}/gang", {"status": {"phase": "Inqueue"}})
            create(plane, objects.pod("other", scheduler="default-scheduler"))
        finally:
            console.start()
        wait_until(lambda: _passes(plane, objects.queue("other")), "the API server to ask again")


def _passes(plane: ControlPlane, manifest: dict[str, Any]) -> bool:
    try:
        create(plane, manifest)
    except ProgramFailed:
        return False
    return True


def test_with_ignore_everything_passes_while_we_are_away(
    extended_control_plane: ControlPlane, console_of: ConsoleOf
):
    plane = extended_control_plane
    console = console_of(plane)
    with asked(plane, console, "--ignore-failures"):
        console.stop()
        try:
            create(plane, objects.queue("orphan", parent="ghost"))
        finally:
            console.start()
        with watching(plane):
            wait_until(lambda: "ghost" in _problems_of("orphan"), "a warning on the queue")


def test_volcanos_own_definition_takes_the_state_as_an_annotation(
    control_plane: ControlPlane, console_of: ConsoleOf
):
    plane = control_plane
    with asked(plane, console_of(plane)), watching(plane):
        waiting = objects.queue("waits")
        waiting["metadata"]["annotations"] = {"fumarole.io/state": "Suspended"}
        create(plane, waiting, objects.queue("q"))
        wait_for_queue("waits", state="Suspended")
        create(plane, objects.volcano_job("j", queue="waits"))

        plane.kubectl("annotate", "queue", "q", "fumarole.io/state=Closed")
        wait_for_queue("q", state="Closed")
        assert "q is Closed" in refusal(create, plane, objects.volcano_job("k", queue="q"))
        plane.kubectl("delete", "queue", "q")
        with pytest.raises(ProgramFailed, match="Odd"):
            plane.kubectl("annotate", "--overwrite", "queue", "waits", "fumarole.io/state=Odd")


def test_an_api_server_that_shows_the_token_is_answered(tmp_path: Path):
    """As deploy/kubernetes/README.md says it is set up."""
    settings = tmp_path / "admission.yaml"
    option = f"--admission-control-config-file={settings}"
    plane = ControlPlane(programs.find(), tmp_path / "plane", api_server_options=[option])
    console = TlsConsole(plane, database_of_tests(), tmp_path, ADMISSION_TOKEN=_TOKEN)
    settings.write_text(yaml.safe_dump(_admission_settings(tmp_path / "token.yaml")))
    _write_token(tmp_path / "token.yaml", console.address, "a wrong one")
    with plane, running(console), asked(plane, console):
        with pytest.raises(ProgramFailed, match="failed calling webhook"):
            create(plane, objects.queue("q"))

        _write_token(tmp_path / "token.yaml", console.address, _TOKEN)
        plane.kill_api_server()
        plane.start_api_server()
        wait_until(lambda: _passes(plane, objects.queue("q")), "the right token")
        assert "ghost" in refusal(create, plane, objects.queue("r", parent="ghost"))


_TOKEN = "a-long-random-text"


def _admission_settings(token_file: Path) -> dict[str, Any]:
    version = "apiserver.config.k8s.io/v1"
    plugins = []
    for name in ("ValidatingAdmissionWebhook", "MutatingAdmissionWebhook"):
        configuration = {
            "apiVersion": version,
            "kind": "WebhookAdmissionConfiguration",
            "kubeConfigFile": str(token_file),
        }
        plugins.append({"name": name, "configuration": configuration})
    return {"apiVersion": version, "kind": "AdmissionConfiguration", "plugins": plugins}


def _write_token(path: Path, address: str, token: str) -> None:
    host = address.removeprefix("https://")
    users = [{"name": host, "user": {"token": token}}]
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "users": users}))
