"""The walk of an admin who takes over from Volcano's scheduler, as docs/how-to/take-over.md tells.

The real scheduler of Volcano and its controllers, KWOK's nodes, and Chromium. In the long form
only, which builds that scheduler if it is missing. With pictures of each step, in light and dark,
wide and narrow:

WALK_PICTURES=FOLDER python -m pytest --long tests/browser/test_take_over_walk.py
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import sign_in
from tests.control_plane import objects, schedulers
from tests.control_plane.plane import ControlPlane
from tests.running import PATIENCE_SECONDS, Running

pytestmark = [pytest.mark.browser, pytest.mark.long]
PATIENCE = PATIENCE_SECONDS * 1000
NODES = 24
WIDE = (1440, 900)
NARROW = (360, 780)
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/{}/jobs"


@pytest.fixture(autouse=True)
def patient() -> Iterator[None]:
    """Everything runs here at once, on a machine that may have other work to do."""
    expect.set_options(timeout=PATIENCE)
    yield
    expect.set_options(timeout=30_000)


class Walk:
    def __init__(self, plane: ControlPlane, browser: Browser, folder: Path) -> None:
        self.plane = plane
        self._browser = browser
        self._folder = folder

    @contextmanager
    def console(self, **settings: str) -> Iterator[Page]:
        """A whole installation in one mode, and an admin who has signed in."""
        given = {
            "SCHEDULER_CLUSTER": "kubernetes",
            "KUBECONFIG": str(self.plane.kubeconfig),
            "KUBERNETES_CLUSTER_NAME": "lab",
            # They run beside the cluster here, and not in it, where they would be found.
            "KUBERNETES_QUEUE_CONTROLLER": "volcano",
            **settings,
        }
        with Running(self._folder / "var", **given) as site:
            site.wait_until_sessions_run()
            page = self._opened(site)
            yield page
            page.context.close()

    def _opened(self, site: Running) -> Page:
        password = (site.var / "admin-password").read_text().strip()
        size = {"width": WIDE[0], "height": WIDE[1]}
        context = self._browser.new_context(base_url=site.address, viewport=size)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.goto("/")
        sign_in(page, "admin", password)
        expect(page.locator("#pill")).to_have_text("Live")
        return page

    def take_over(self, *named: str) -> None:
        kubeconfig = str(self.plane.kubeconfig)
        output = StringIO()
        call_command("kubernetes", "take-over", *named, "--kubeconfig", kubeconfig, stdout=output)

    def submit(self, name: str, namespace: str, queue: str, pods: int, cpu: str) -> None:
        job = objects.volcano_job(name, queue=queue, replicas=pods)
        (task,) = job["spec"]["tasks"]
        (container,) = task["template"]["spec"]["containers"]
        container["resources"]["requests"]["cpu"] = cpu
        self.plane.api.post(JOBS.format(namespace), job)

    def wait_until_it_runs(self, name: str, namespace: str) -> None:
        def runs() -> bool:
            job = self.plane.api.get(f"{JOBS.format(namespace)}/{name}")
            return bool(job.get("status", {}).get("state", {}).get("phase") == "Running")

        objects.wait_until(runs, f"{name} to run")

    def scheduler_of_new_job(self, namespace: str) -> str:
        trial = objects.volcano_job("trial")
        made = self.plane.api.post(f"{JOBS.format(namespace)}?dryRun=All", trial)
        return str(made["spec"]["schedulerName"])


def test_the_walk_of_an_admin_who_takes_over(
    control_plane: ControlPlane, browser: Browser, tmp_path: Path
) -> None:
    walk = Walk(control_plane, browser, tmp_path)
    volcano = schedulers.build()
    stages = [each for each in control_plane.programs.stages() if "complete" not in each.name]
    with ExitStack() as beside:
        beside.enter_context(control_plane.kwok(stages))
        for start in (control_plane.controllers, control_plane.volcano_controllers):
            beside.enter_context(start())
        with volcano.volcano(control_plane):
            _make_cluster(control_plane)
            _watch(walk)
            _take_over_a_namespace(walk)
        _take_over_all(walk)


def _make_cluster(plane: ControlPlane) -> None:
    for name in ("team-a", "team-b"):
        plane.kubectl("create", "namespace", name)
    queues = {
        "research": {"cpu": "200"},
        "vision": {"cpu": "120"},
        "production": {"cpu": "150"},
    }
    items: list[dict[str, Any]] = [
        objects.node(f"node-{number:02d}", cpu="16", memory="64Gi", is_kwok=True)
        for number in range(NODES)
    ]
    items += [objects.queue(name, deserved=deserved) for name, deserved in queues.items()]
    whole = {"apiVersion": "v1", "kind": "List", "items": items}
    plane.kubectl("apply", "--server-side", "-f", "-", given=json.dumps(whole))


def _watch(walk: Walk) -> None:
    """Volcano's scheduler places; pages show it, and what would have been done here."""
    with walk.console() as page:
        for number, queue in enumerate(("research", "vision", "production")):
            walk.submit(f"train-{number}", "team-a", queue, pods=8, cpu="4")
            walk.submit(f"serve-{number}", "team-b", queue, pods=4, cpu="2")
        walk.submit("too-large", "team-b", "research", pods=4, cpu="20")
        walk.wait_until_it_runs("serve-2", "team-b")

        expect(page.get_by_text("Kubernetes · watching").first).to_be_visible()
        expect(page.get_by_role("link", name="1 waiting")).to_be_visible()
        _pictures(page, "watching")
        page.goto("/queues/")
        expect(page.locator('tr[data-key="research"]')).to_be_visible()
        _pictures(page, "queues")
        page.goto("/jobs/team-b/too-large/")
        expect(page.locator("main")).to_contain_text("20 CPU")
        _pictures(page, "reason")
        _compare(walk, page)


def _compare(walk: Walk, page: Page) -> None:
    """Gangs that start between two looks are not compared: so some more are submitted."""
    for number in range(20):
        walk.submit(f"more-{number}", "team-b", "production", pods=2, cpu="1")
        walk.wait_until_it_runs(f"more-{number}", "team-b")
        page.goto("/comparison/?kind=all")
        if page.locator("main tbody tr").count() >= 3:
            break
    expect(page.locator("main tbody tr").nth(2)).to_be_visible()
    _pictures(page, "comparison")


def _take_over_a_namespace(walk: Walk) -> None:
    walk.take_over("--namespace", "team-a")
    objects.wait_until(
        lambda: walk.scheduler_of_new_job("team-a") == "fumarole", "the policy to hold"
    )
    with walk.console(KUBERNETES_MODE="schedule") as page:
        expect(page.get_by_text("Kubernetes · scheduling 1 namespace").first).to_be_visible()
        walk.submit("ours", "team-a", "vision", pods=6, cpu="2")
        walk.submit("theirs", "team-b", "production", pods=6, cpu="2")
        walk.wait_until_it_runs("ours", "team-a")
        walk.wait_until_it_runs("theirs", "team-b")
        page.goto("/jobs/")
        expect(page.locator("main")).to_contain_text("ours")
        expect(page.get_by_role("link", name="ours", exact=True).first).to_be_visible()
        _pictures(page, "part")


def _take_over_all(walk: Walk) -> None:
    both = {"KUBERNETES_MODE": "schedule", "KUBERNETES_SCHEDULER_NAMES": "fumarole,volcano"}
    with walk.console(**both) as page:
        walk.submit("last", "team-b", "research", pods=6, cpu="2")
        walk.wait_until_it_runs("last", "team-b")
        page.goto("/queues/")
        expect(page.locator('tr[data-key="research"]')).to_be_visible()
        _pictures(page, "all")
        page.goto("/jobs/")
        expect(page.locator("main")).to_contain_text("last")
        _pictures(page, "all-jobs")


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
            page.screenshot(path=Path(folder) / f"take-over-{name}-{theme}-{width}.png")
    page.emulate_media(color_scheme="light")
