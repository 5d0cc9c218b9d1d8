"""The whole circle: a door of the console writes to the API server, which asks the same console.

Every door does everything that can be done to a queue, and both sides see it: the cluster, and the
mirror of it.
"""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from django.contrib.auth import get_user_model
from django.test import Client

from scheduler.models import Queue
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.accounts.tokens import create_token
from tests.control_plane import objects
from tests.control_plane.console import TlsConsole
from tests.control_plane.objects import wait_until
from tests.control_plane.plane import ControlPlane, ProgramFailed
from tests.dashboard.asking import ConsoleOf, asked, stored
from tests.running import BASE
from tests.services.cluster.test_queues_both_ways import watching

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.kubernetes,
    pytest.mark.both_databases,
]

KIND = "queues.scheduling.volcano.sh"


class Refused(Exception):
    """What the door says about it."""


@dataclass(frozen=True, slots=True)
class Web:
    """Requests to the console over TLS, as a browser or a program sends them."""

    console: TlsConsole
    token: str
    session: str

    def api(self, method: str, path: str, body: Any = None) -> str:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        return self._send(method, f"/api/v1/queues/{path}", json.dumps(body or {}), headers)

    def page(self, path: str, **fields: str) -> str:
        headers = {
            "Cookie": f"sessionid={self.session}; csrftoken={'c' * 32}",
            "X-CSRFToken": "c" * 32,
            "Referer": self.console.address + "/",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        return self._send("POST", f"/queues/{path}", urllib.parse.urlencode(fields), headers)

    def _send(self, method: str, path: str, body: str, headers: dict[str, str]) -> str:
        request = urllib.request.Request(
            self.console.address + path, body.encode(), headers, method=method
        )
        context = ssl.create_default_context(cafile=str(self.console.authority))
        try:
            with urllib.request.urlopen(request, timeout=60, context=context) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as refusal:
            raise Refused(f"{refusal.code} {refusal.read().decode()}") from None


Deed = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Door:
    """How each deed is done here. `weigh` sets the weight to 7."""

    create: Deed
    weigh: Deed
    close: Deed
    open: Deed
    suspend: Deed
    resume: Deed
    delete: Deed


def _manifest(name: str, **spec: Any) -> str:
    return yaml.safe_dump(objects.queue(name, **spec))


def api_door(web: Web, plane: ControlPlane) -> Door:
    return Door(
        create=lambda name: web.api("POST", "", objects.queue(name, weight=2)),
        weigh=lambda name: web.api("PATCH", f"{name}/", {"spec": {"weight": 7}}),
        close=lambda name: web.api("POST", f"{name}/close/"),
        open=lambda name: web.api("POST", f"{name}/open/"),
        suspend=lambda name: web.api("POST", f"{name}/suspend/"),
        resume=lambda name: web.api("POST", f"{name}/resume/"),
        delete=lambda name: web.api("DELETE", f"{name}/"),
    )


def page_door(web: Web, plane: ControlPlane) -> Door:
    def fill_in(address: str, manifest: str) -> None:
        web.page(address, **{"as": "yaml", "yaml": manifest})

    return Door(
        create=lambda name: fill_in("-/new/", _manifest(name, weight=2)),
        weigh=lambda name: fill_in(f"{name}/edit/", _manifest(name, weight=7)),
        close=lambda name: web.page(f"{name}/close/"),
        open=lambda name: web.page(f"{name}/open/"),
        suspend=lambda name: web.page(f"{name}/suspend/"),
        resume=lambda name: web.page(f"{name}/resume/"),
        delete=lambda name: web.page(f"{name}/delete/", queue=name),
    )


def cli_door(web: Web, plane: ControlPlane) -> Door:
    environment = {
        **os.environ,
        "VCCTL_SERVER": web.console.address,
        "VCCTL_TOKEN": web.token,
        "VCCTL_CA_CERT": str(web.console.authority),
    }

    def vcctl(line: str) -> None:
        command = [sys.executable, "-m", "dashboard.cli", "queue", *line.split()]
        done = subprocess.run(
            command, env=environment, cwd=BASE, text=True, capture_output=True, check=False
        )
        if done.returncode:
            raise Refused(done.stdout + done.stderr)

    return Door(
        create=lambda name: vcctl(f"create --name {name} --weight 2"),
        weigh=lambda name: vcctl(f"update {name} --weight 7"),
        close=lambda name: vcctl(f"close {name} --yes"),
        open=lambda name: vcctl(f"open {name} --yes"),
        suspend=lambda name: vcctl(f"suspend {name} --yes"),
        resume=lambda name: vcctl(f"resume {name} --yes"),
        delete=lambda name: vcctl(f"delete {name} --yes"),
    )


def kubectl_door(web: Web, plane: ControlPlane) -> Door:
    def patch(name: str, **spec: Any) -> str:
        return plane.kubectl("patch", KIND, name, "--type=merge", "-p", json.dumps({"spec": spec}))

    return Door(
        create=lambda name: plane.kubectl("create", "-f", "-", given=_manifest(name, weight=2)),
        weigh=lambda name: patch(name, weight=7),
        close=lambda name: patch(name, state="Closed"),
        open=lambda name: patch(name, state="Open"),
        suspend=lambda name: patch(name, state="Suspended"),
        resume=lambda name: patch(name, state="Open"),
        delete=lambda name: plane.kubectl("delete", KIND, name),
    )


def volcano_door(web: Web, plane: ControlPlane) -> Door:
    """Volcano's vcctl. It knows no Suspended, so that is a Command of its bus."""

    def operate(name: str, *action: str) -> str:
        return plane.vcctl("queue", "operate", "--name", name, "--action", *action)

    def send(name: str, action: str) -> str:
        command = objects.command(action, stored(plane, name))
        return plane.kubectl("create", "-f", "-", given=yaml.safe_dump(command))

    return Door(
        create=lambda name: plane.vcctl("queue", "create", "--name", name, "--weight", "2"),
        weigh=lambda name: operate(name, "update", "--weight", "7"),
        close=lambda name: operate(name, "close"),
        open=lambda name: operate(name, "open"),
        suspend=lambda name: send(name, "SuspendQueue"),
        resume=lambda name: send(name, "ResumeQueue"),
        delete=lambda name: plane.vcctl("queue", "delete", "--name", name),
    )


DOORS = {
    "api": api_door,
    "page": page_door,
    "cli": cli_door,
    "kubectl": kubectl_door,
    "volcano": volcano_door,
}


@pytest.fixture
def circle(
    extended_control_plane: ControlPlane, console_of: ConsoleOf
) -> Iterator[tuple[Web, ControlPlane]]:
    plane = extended_control_plane
    console = console_of(plane)
    user = get_user_model().objects.create_superuser("boss")
    browser = Client()
    browser.force_login(user)
    web = Web(
        console,
        create_token(user, "test", ("admin",), by=SYSTEM).secret,
        browser.cookies["sessionid"].value,
    )
    with asked(plane, console), watching(plane):
        yield web, plane


def wait_for_both(plane: ControlPlane, name: str, state: str, **columns: Any) -> None:
    def in_cluster() -> bool:
        found = stored(plane, name)
        return found["spec"].get("state") == state and found.get("status", {}).get("state") == state

    def here() -> bool:
        return Queue.objects.filter(name=name, state=state, **columns).exists()

    wait_until(here, f"{name} to be {state} here")
    wait_until(in_cluster, f"{name} to be {state} in the cluster")


def test_every_door_does_everything_and_both_sides_see_it(circle):
    web, plane = circle
    for name, door_of in DOORS.items():
        door = door_of(web, plane)
        door.create(name)
        wait_for_both(plane, name, "Open", weight=2)
        door.weigh(name)
        wait_for_both(plane, name, "Open", weight=7)
        with pytest.raises((Refused, ProgramFailed)) as refused:
            door.delete(name)
        assert f"{name} is Open" in " ".join(str(refused.value).split())
        door.suspend(name)
        wait_for_both(plane, name, "Suspended")
        door.resume(name)
        wait_for_both(plane, name, "Open")
        door.close(name)
        wait_for_both(plane, name, "Closed")
        door.open(name)
        wait_for_both(plane, name, "Open")
        door.close(name)
        wait_for_both(plane, name, "Closed")
        door.delete(name)
        wait_until(lambda name=name: not Queue.objects.filter(name=name).exists(), "its end here")
        assert name not in plane.kubectl("get", KIND)
