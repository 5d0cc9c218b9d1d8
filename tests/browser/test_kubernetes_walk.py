"""The walk of an admin on a real cluster, as docs/how-to/kubernetes.md tells it.

100 nodes of KWOK, Volcano's controllers, and Chromium. With pictures of each step, in light and
dark, wide and narrow:

WALK_PICTURES=FOLDER python -m pytest tests/browser/test_kubernetes_walk.py
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import sign_in
from tests.control_plane import objects
from tests.control_plane.plane import ControlPlane
from tests.running import PATIENCE_SECONDS, Running

pytestmark = pytest.mark.browser
PATIENCE = PATIENCE_SECONDS * 1000
NODES = 100
GPU_NODES = 24
PODS_OF_GANG = 6
QUEUE = "queues.scheduling.volcano.sh"
WIDE = (1440, 900)
NARROW = (360, 780)


@pytest.fixture(autouse=True)
def patient() -> Iterator[None]:
    """Everything runs here at once, on a machine that may have other work to do."""
    expect.set_options(timeout=PATIENCE)
    yield
    expect.set_options(timeout=30_000)


@pytest.fixture
def cluster(extended_control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """With nodes and queues in use, as an admin finds it. Volcano looks after queues and jobs."""
    plane = extended_control_plane
    with ExitStack() as beside:
        for start in (plane.kwok, plane.controllers, plane.volcano_controllers):
            beside.enter_context(start())
        _apply(plane, [*_nodes(), *_queues(), *_gangs(), *_foreign_pods()])
        yield plane


@pytest.fixture
def site(cluster: ControlPlane, tmp_path: Path) -> Iterator[Running]:
    settings = {
        "SCHEDULER_CLUSTER": "kubernetes",
        "KUBECONFIG": str(cluster.kubeconfig),
        "KUBERNETES_CLUSTER_NAME": "lab",
        # They run beside the cluster here, and not in it, where they would be found.
        "KUBERNETES_QUEUE_CONTROLLER": "volcano",
    }
    with Running(tmp_path / "var", **settings) as running:
        running.wait_until_sessions_run()
        yield running


def test_the_walk_of_an_admin_on_a_real_cluster(
    site: Running, cluster: ControlPlane, browser: Browser
) -> None:
    page = _opened(browser, site)
    _see_the_cluster(page)
    _see_what_others_hold(page)
    _submit_by_kubectl(page, cluster)
    _suspend_a_queue(page, cluster)
    _close_a_queue(page, cluster)
    _lose_the_api_server(page, cluster)
    page.context.close()


# The cluster


def _apply(plane: ControlPlane, items: list[dict[str, Any]]) -> None:
    whole = {"apiVersion": "v1", "kind": "List", "items": items}
    plane.kubectl("apply", "--server-side", "-f", "-", given=json.dumps(whole))


def _nodes() -> Iterator[dict[str, Any]]:
    for number in range(NODES):
        labels = {"topology.kubernetes.io/zone": "abc"[number % 3]}
        if number < GPU_NODES:
            yield _gpu_node(f"gpu-{number:03d}", labels)
        else:
            yield objects.node(f"cpu-{number:03d}", cpu="16", labels=labels, is_kwok=True)


def _gpu_node(name: str, labels: dict[str, str]) -> dict[str, Any]:
    gpus = {"nvidia.com/gpu": "8"}
    made = objects.node(name, cpu="32", memory="256Gi", labels=labels, is_kwok=True, **gpus)
    made["spec"] = {"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]}
    return made


def _queues() -> Iterator[dict[str, Any]]:
    yield objects.queue("research", deserved={"cpu": "600", "nvidia.com/gpu": "128"})
    yield objects.queue("vision", parent="research", deserved={"nvidia.com/gpu": "64"})
    yield objects.queue("language", parent="research", deserved={"nvidia.com/gpu": "64"})
    yield objects.queue("production", deserved={"cpu": "800", "nvidia.com/gpu": "64"})
    yield objects.queue("sandbox", capability={"cpu": "64"})


def _gangs() -> Iterator[dict[str, Any]]:
    """As Volcano's scheduler leaves them: each pod on a node, which KWOK lets run."""
    for number, queue in enumerate(("vision", "vision", "language", "production")):
        name = f"train-{number}"
        gang = objects.podgroup(name, queue=queue, min_member=PODS_OF_GANG)
        gang["status"] = {"phase": "Running", "running": PODS_OF_GANG}
        yield gang
        for pod in range(PODS_OF_GANG):
            yield _gang_pod(name, pod, node=f"gpu-{number * PODS_OF_GANG + pod:03d}")


def _gang_pod(gang: str, number: int, node: str) -> dict[str, Any]:
    group = {"scheduling.k8s.io/group-name": gang}
    made = objects.pod(f"{gang}-{number}", cpu="8", scheduler="volcano", annotations=group)
    (container,) = made["spec"]["containers"]
    container["resources"]["requests"]["nvidia.com/gpu"] = "6"
    container["resources"]["limits"] = {"nvidia.com/gpu": "6"}
    made["spec"]["nodeName"] = node
    return made


def _foreign_pods() -> Iterator[dict[str, Any]]:
    """Of the default scheduler, as daemon sets make them."""
    for number in range(3):
        made = objects.pod(f"exporter-{number}", cpu="2500m", scheduler="default-scheduler")
        made["metadata"]["namespace"] = "kube-system"
        made["spec"]["nodeName"] = f"cpu-{GPU_NODES + number:03d}"
        yield made


# The walk


def _opened(browser: Browser, site: Running) -> Page:
    password = (site.var / "admin-password").read_text().strip()
    context = browser.new_context(
        base_url=site.address, viewport={"width": WIDE[0], "height": WIDE[1]}
    )
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto("/")
    sign_in(page, "admin", password)
    expect(_pill(page)).to_have_text("Live")
    return page


def _pill(page: Page) -> Any:
    return page.locator("#pill")


def _go(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="Main").get_by_role("link", name=name).click()


def _see_the_cluster(page: Page) -> None:
    """Whose cluster it is, and that it is only watched, stands on every page."""
    expect(page.get_by_text("Kubernetes · watching").first).to_be_visible()
    expect(page.get_by_text("lab").first).to_be_visible()
    _pictures(page, "overview")
    _go(page, "Queues")
    for name in ("research", "vision", "language", "production", "sandbox"):
        expect(page.locator(f'tr[data-key="{name}"]')).to_be_visible()
    _pictures(page, "queues")


def _see_what_others_hold(page: Page) -> None:
    _go(page, "Nodes")
    expect(page.locator("main")).to_contain_text(f"{NODES} nodes")
    _pictures(page, "nodes")
    page.goto(f"/nodes/cpu-{GPU_NODES:03d}/")
    expect(page.locator("main")).to_contain_text("2.5 CPU by pods of other schedulers")
    expect(page.locator("main")).to_contain_text("No pods of our schedulers")
    _pictures(page, "node")


def _submit_by_kubectl(page: Page, cluster: ControlPlane) -> None:
    """Volcano's controller makes its podgroup, and its pods when a scheduler lets it in."""
    job = objects.volcano_job("train-llm", queue="vision", replicas=4)
    (task,) = job["spec"]["tasks"]
    (container,) = task["template"]["spec"]["containers"]
    container["resources"]["requests"]["nvidia.com/gpu"] = "16"
    container["resources"]["limits"] = {"nvidia.com/gpu": "16"}
    cluster.kubectl("create", "-f", "-", given=json.dumps(job))

    _go(page, "Jobs")
    page.get_by_role("link", name="train-llm").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("train-llm")
    expect(page.locator("main")).to_contain_text("NotEnoughTasks")
    _pictures(page, "job")


def _suspend_a_queue(page: Page, cluster: ControlPlane) -> None:
    _order(page, "sandbox", "Suspend", "quota change")

    _wait_for_state(cluster, "sandbox", "spec.state", "Suspended")
    page.goto("/queues/sandbox/")
    expect(page.locator("main")).to_contain_text("Suspended")
    _pictures(page, "suspended")


def _close_a_queue(page: Page, cluster: ControlPlane) -> None:
    """It drains at first, and is Closed when the last podgroup is gone."""
    _order(page, "production", "Close", "moves to another cluster")

    _wait_for_state(cluster, "production", "status.state", "Closing")
    page.goto("/queues/")
    production = page.locator('tr[data-key="production"]')
    expect(production).to_contain_text("Closing")
    _pictures(page, "closing")
    cluster.kubectl("delete", "podgroups.scheduling.volcano.sh", "train-3", "--wait=false")
    _wait_for_state(cluster, "production", "status.state", "Closed")
    expect(production).to_contain_text("Closed")


def _order(page: Page, queue: str, verb: str, reason: str) -> None:
    page.goto(f"/queues/{queue}/{verb.lower()}/")
    page.get_by_label("Reason").fill(reason)
    _pictures(page, verb.lower())
    page.get_by_role("button", name=re.compile(f"^{verb}", re.IGNORECASE)).click()
    page.wait_for_load_state()


def _wait_for_state(cluster: ControlPlane, queue: str, field: str, state: str) -> None:
    """Until kubectl shows it."""
    shown = ("get", QUEUE, queue, f"--output=jsonpath={{.{field}}}")
    objects.wait_until(lambda: cluster.kubectl(*shown) == state, f"{queue} to be {state}")


def _lose_the_api_server(page: Page, cluster: ControlPlane) -> None:
    """Pages go on showing what was known, and say so."""
    page.goto("/queues/")
    expect(_pill(page)).to_have_text("Live")

    cluster.kill_api_server()
    expect(_pill(page)).to_contain_text(re.compile(r"Cluster not heard for \d+ s"))
    expect(page.locator('tr[data-key="research"]')).to_be_visible()
    _pictures(page, "not-heard")

    cluster.start_api_server()
    expect(_pill(page)).to_have_text("Live")
    _pictures(page, "heard-again")


def _pictures(page: Page, name: str) -> None:
    folder = os.environ.get("WALK_PICTURES")
    if not folder:
        return
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        for width, height in (NARROW, WIDE):
            page.set_viewport_size({"width": width, "height": height})
            page.evaluate("scrollTo(0, 0)")
            page.wait_for_timeout(300)
            page.screenshot(path=Path(folder) / f"cluster-{name}-{theme}-{width}.png")
    page.emulate_media(color_scheme="light")
