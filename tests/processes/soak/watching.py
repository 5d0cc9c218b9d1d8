"""python -m tests.processes.soak.watching: programs follow a list through nginx and three web
processes, of which one is stopped and another killed meanwhile.

What they know at the end, beside the list itself, as JSON in the last line.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from tests.processes.soak.harness import furnish, is_ready
from tests.processes.soak.rolling import Nginx
from tests.processes.soak.stack import Stack
from tests.running import random_port

SECONDS = 120.0
"""So long a busy machine may take until a change is heard of."""
FOLLOWERS = 6
"""More than web processes, so that whichever goes away has one."""
PATH = "jobs/?watch=1&search=heard"


class Program(threading.Thread):
    """Follows a list, and goes on after the last version whenever the connection ends."""

    def __init__(self, api: httpx.Client, path: str) -> None:
        from tests.dashboard.api.watch.followers import Follower  # needs Django, set up since

        super().__init__(daemon=True)
        self.api = api
        self.path = path
        self._fresh = Follower
        self.follower = Follower()
        self.connects = 0
        self.begun_anew = 0
        self.problem: BaseException | None = None
        self.is_over = threading.Event()

    def run(self) -> None:
        try:
            while not self.is_over.is_set():
                with suppress(httpx.HTTPError):  # what came whole was taken
                    self._follow()
                self.is_over.wait(0.2)
        except BaseException as problem:
            self.problem = problem
            raise

    def _follow(self) -> None:
        headers = {"Accept": "text/event-stream"}
        if self.follower.version:
            headers["Last-Event-ID"] = self.follower.version
        else:
            self.follower = self._fresh()
        with self.api.stream("GET", self.path, headers=headers, timeout=30) as answer:
            if answer.status_code in (502, 503, 504):
                return
            if answer.status_code == 410:
                self.begun_anew += 1
                self.follower = self._fresh()
                return
            assert answer.status_code == 200, answer.read()
            self.connects += 1
            rest = ""
            for text in answer.iter_text():
                *whole, rest = (rest + text).split("\n\n")
                self.follower.apply("\n\n".join(whole))
                if self.is_over.is_set():
                    return

    def known(self) -> dict[str, str]:
        """Name by uid."""
        objects = list(self.follower.objects.items())
        return {uid: one["metadata"]["name"] for uid, one in objects}

    def names(self) -> set[str]:
        return set(self.known().values())


@contextmanager
def site() -> Iterator[tuple[Stack, str, str]]:
    """The processes, their address behind nginx, and a token."""
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="fumarole-watch-")))
        folder.chmod(0o755)
        port = random_port()
        stack = opened.enter_context(
            Stack(folder, webs=3, schedulers=1, TRUSTED_PROXIES="127.0.0.1")
        )
        token, _ = furnish(stack)
        stack.start_all()
        nginx = Nginx(folder, port, list(stack.web_ports.values()))
        opened.enter_context(nginx.running(stack.log_of("nginx")))
        origin = f"http://127.0.0.1:{port}"
        wait(lambda: all(map(is_ready, [*stack.addresses, origin])))
        yield stack, origin, token


def wait(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def submit(api: httpx.Client, name: str) -> None:
    """Too large to start, so that it stays as it is. If the process went away in the midst, the job
    may be there: then the next try is refused.
    """
    body = manifest(name)

    def is_there() -> bool:
        try:
            answer = api.post("jobs/", json=body, timeout=30)
        except httpx.HTTPError:
            return False
        assert answer.status_code in (201, 400, 409, 502, 503, 504), answer.text
        return answer.status_code in (201, 400, 409)

    wait(is_there)


def manifest(name: str) -> dict[str, Any]:
    container = {"name": "main", "resources": {"requests": {"cpu": "900"}}}
    task = {"name": "worker", "replicas": 1, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"queue": "a1", "minAvailable": 1, "tasks": [task]},
    }


def main() -> dict[str, Any]:
    with site() as (stack, origin, token):
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=f"{origin}/api/v1/", headers=headers, trust_env=False) as api:
            return _follow_through_faults(stack, api)


def _follow_through_faults(stack: Stack, api: httpx.Client) -> dict[str, Any]:
    programs = [Program(api, PATH) for _ in range(FOLLOWERS)]
    for program in programs:
        program.start()
    wait(lambda: all(program.connects for program in programs))
    said: set[str] = set()

    def all_know() -> bool:
        assert not any(program.problem for program in programs)
        return all(program.names() == said for program in programs)

    delays = []
    begun_anew = {}
    for number, away in enumerate((None, "web-1", None, "web-2", None)):
        if away == "web-1":
            stack.stop(away, 30)  # as an update does
        elif away is not None:
            stack.kill(away)
        for turn in range(3):
            name = f"heard-{number}-{turn}"
            submit(api, name)
            said.add(name)
        told = time.monotonic()
        wait(all_know)
        if away is not None:
            begun_anew[away] = sum(program.begun_anew for program in programs)  # so far
        if away is None:
            delays.append(round(time.monotonic() - told, 2))
        else:
            stack.start(away)
            wait(lambda: all(map(is_ready, stack.addresses)))
    api.post("jobs/default/heard-0-0/cancel/", json={}, timeout=30).raise_for_status()
    api.delete("jobs/default/heard-0-0/", timeout=30).raise_for_status()
    said.remove("heard-0-0")
    wait(all_know)
    for program in programs:
        program.is_over.set()
    items = api.get("jobs/?search=heard&page_size=100", timeout=30).json()["results"]
    listed = {one["metadata"]["uid"]: one["metadata"]["name"] for one in items}
    return {
        "listed": sorted(listed.values()),
        "agree": sum(program.known() == listed for program in programs),
        "connects": sum(program.connects for program in programs),
        "begunAnew": begun_anew,
        "delays": delays,
    }


if __name__ == "__main__":
    print(json.dumps(main()))
