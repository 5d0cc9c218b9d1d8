"""python -m tests.bench.many_sockets [--sockets 10000]: so many open pages on two web processes,
and whether each of them learns of every change.

It starts a Redis, two web processes as `make run` starts them, and two load programs, each with the
file descriptors that it needs, all on 127.0.0.1 and with a database of its own. A queue's weight is
changed over HTTP. Each socket counts: messages must follow one another without a gap, and the last
must have the last weight. It stops by itself, after --seconds at the latest.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx

from scheduler.supervisor.installation import Installation
from scheduler.supervisor.programs import web_program
from tests.bench.start import free_port, memory_of, processor_seconds
from tests.dashboard.conftest import RedisServer

ROOT = Path(__file__).resolve().parents[2]
WEBS = 2
SPARE_FILES = 200
AT_ONCE = 50
QUEUE = "default"
PING = 9
_SEQ = re.compile(rb'"topic":"queues","seq":(\d+)')
_WEIGHT = re.compile(rb'"name":"default",.*?"weight":(\d+)')


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.many_sockets", description=__doc__)
    parser.add_argument("--sockets", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=600, help="it ends then (default 600)")
    parser.add_argument("--load", metavar="PORT", type=int, help="be the load program of this site")
    options = parser.parse_args(arguments)
    if options.load:
        allow_files(options.sockets + SPARE_FILES)
        signal.alarm(max(1, int(options.seconds)))  # whatever happens to the other programs
        cookie = sys.stdin.readline().strip()
        asyncio.run(serve_as_load(options.load, options.sockets, cookie))
        return 0
    print(json.dumps(measured(options.sockets, options.rounds, options.seconds), indent=2))
    return 0


def measured(sockets: int, rounds: int, seconds: float) -> dict[str, Any]:
    until = time.monotonic() + seconds
    with ExitStack() as stack:
        site = stack.enter_context(Site(Path(stack.enter_context(_folder())), sockets // WEBS))
        began = time.monotonic()
        loads = []
        for web in site.webs:
            loads.append(stack.enter_context(Load(web.port, sockets // WEBS, site.cookie, until)))
        for load in loads:
            load.wait_for("open")
        opened = time.monotonic() - began
        times = []
        for turn in range(rounds):
            times.append(_change_once(site, loads, weight=turn + 20))
        lost = [load.end() for load in loads]
        return {
            "sockets": sockets // WEBS * WEBS,
            "secondsToOpenAll": round(opened, 1),
            "msFromRequestToLast": [round(1000 * taken) for taken in times],
            "socketsThatMissedSomething": sum(lost),
            "processorSecondsOfWebs": [round(processor_seconds(web.pid), 1) for web in site.webs],
            "memoryMBOfWebs": [round(memory_of(web.pid)) for web in site.webs],
            "load": round(os.getloadavg()[0], 1),
        }


def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def _change_once(site: Site, loads: list[Load], weight: int) -> float:
    """Seconds from the request, which has to be carried out first, until the last socket knows."""
    for load in loads:
        load.say(str(weight))
    asked = time.monotonic()
    site.set_weight(weight)
    return max(float(load.wait_for("done")) for load in loads) - asked


# The site


class Web:
    def __init__(self, folder: Path, environment: dict[str, str], sockets: int) -> None:
        self.port = free_port()
        self._process = subprocess.Popen(
            web_program(Installation(folder, self.port)).command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: allow_files(sockets + SPARE_FILES),  # noqa: PLW1509 - one thread
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until_it_answers(self) -> None:
        while self._process.poll() is None:
            try:
                httpx.get(f"http://127.0.0.1:{self.port}/healthz", timeout=10)
            except httpx.TransportError:
                time.sleep(0.2)
            else:
                return
        raise RuntimeError("The web process did not start.")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class Site:
    """Two web processes on one database and one Redis; somebody is signed in."""

    def __init__(self, folder: Path, sockets: int) -> None:
        self._folder = folder
        self._redis = RedisServer(folder)
        self._sockets = sockets
        self.webs: list[Web] = []
        self.cookie = ""

    def __enter__(self) -> Site:
        self._redis.start()
        own = {"FUMAROLE_EMBEDDED": "1", "FUMAROLE_VAR": str(self._folder)}
        environment = {
            **os.environ,
            **own,
            "REDIS_URL": self._redis.url,
            "PYTHONWARNINGS": "ignore",
        }
        prepare = [sys.executable, "manage.py", "prepare"]
        subprocess.run(prepare, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
        for _ in range(WEBS):
            self.webs.append(Web(self._folder, environment, self._sockets))
        for web in self.webs:
            web.wait_until_it_answers()
        self.cookie = self._sign_in()
        return self

    def __exit__(self, *_: object) -> None:
        for web in self.webs:
            web.kill()
        self._redis.stop()

    @property
    def _address(self) -> str:
        return f"http://127.0.0.1:{self.webs[0].port}"

    def _sign_in(self) -> str:
        """The cookie of the session."""
        password = (self._folder / "admin-password").read_text().strip()
        with httpx.Client(base_url=self._address, timeout=60) as visitor:
            visitor.get("/accounts/login/")
            form = {"username": "admin", "password": password}
            form["csrfmiddlewaretoken"] = visitor.cookies["csrftoken"]
            visitor.post("/accounts/login/", data=form)
            return str(visitor.cookies["sessionid"])

    def set_weight(self, weight: int) -> None:
        token = (self._folder / "cli-token").read_text().strip()
        answer = httpx.patch(
            f"{self._address}/api/v1/queues/{QUEUE}/",
            json={"spec": {"weight": weight}},
            headers={"Authorization": f"Bearer {token}"},
            timeout=60,
        )
        answer.raise_for_status()


def allow_files(number: int) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most not in (resource.RLIM_INFINITY,) and most < number:
        raise OSError(f"A process may have {most} open files here, and {number} are needed.")
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, most))


# The load programs, one for each web process


class Load:
    def __init__(self, port: int, sockets: int, cookie: str, until: float) -> None:
        self._until = until
        command = [sys.executable, "-m", "tests.bench.many_sockets"]
        command += ["--load", str(port), "--sockets", str(sockets)]
        command += ["--seconds", str(until - time.monotonic())]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen(command, cwd=ROOT, text=True, **pipes)  # type: ignore[call-overload]
        self.say(cookie)

    def __enter__(self) -> Load:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def say(self, line: str) -> None:
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def wait_for(self, word: str) -> str:
        """What the program says after that word. It ends by itself when its time is over."""
        said = self._process.stdout.readline().split()
        if not said or said[0] != word:
            raise RuntimeError(f"The load program ended before it said “{word}”.")
        return str(said[-1])

    def end(self) -> int:
        self.say("end")
        return int(self.wait_for("lost"))


class Listener:
    """One open page: the last weight that it was told, and whether no message is missing."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._seq = 0
        self.weight = 0
        self.heard_at = 0.0
        self.is_whole = True

    async def listen(self) -> None:
        try:
            while True:
                self._take(*await self._frame())
        except (asyncio.IncompleteReadError, ConnectionError):
            self.is_whole = False

    async def _frame(self) -> tuple[int, bytes]:
        head = await self._reader.readexactly(2)
        size = head[1] & 127
        if size == 126:
            size = int.from_bytes(await self._reader.readexactly(2))
        elif size == 127:
            size = int.from_bytes(await self._reader.readexactly(8))
        return head[0] & 15, await self._reader.readexactly(size)

    def _take(self, kind: int, payload: bytes) -> None:
        if kind == PING:
            mask = bytes([0x8A, 0x80 | len(payload)]) + bytes(4)
            self._writer.write(mask + payload)
            return
        found = _SEQ.search(payload)
        if not found:
            return
        self.is_whole = self.is_whole and int(found[1]) == self._seq + 1
        self._seq = int(found[1])
        weight = _WEIGHT.search(payload)
        if weight:
            self.weight = int(weight[1])
            self.heard_at = time.monotonic()

    def knows(self, weight: int) -> bool:
        """Or will never know."""
        return self.weight == weight or not self.is_whole

    @property
    def has_snapshot(self) -> bool:
        return self._seq > 0


async def serve_as_load(port: int, sockets: int, cookie: str) -> None:
    """Says “open”, “done” with the time of the last, and “lost” with a number."""
    listeners: list[Listener] = []
    tasks = []
    while len(listeners) < sockets:
        number = min(AT_ONCE, sockets - len(listeners))
        opened = await asyncio.gather(*(_open(port, cookie) for _ in range(number)))
        listeners += opened
        tasks += [asyncio.create_task(listener.listen()) for listener in opened]
    await _until(
        lambda: all(listener.has_snapshot or not listener.is_whole for listener in listeners)
    )
    print("open", flush=True)
    while (line := (await asyncio.to_thread(sys.stdin.readline)).strip()) != "end":
        weight = int(line)
        await _until(lambda: all(each.knows(weight) for each in listeners))  # noqa: B023
        print("done", max(listener.heard_at for listener in listeners), flush=True)
    print("lost", sum(not listener.is_whole for listener in listeners), flush=True)


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.02)


async def _open(port: int, cookie: str) -> Listener:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    key = base64.b64encode(os.urandom(16)).decode()
    head = (
        "GET /ws/v1/ HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {key}",
        "Sec-WebSocket-Version: 13",
        f"Origin: http://127.0.0.1:{port}",
        f"Cookie: sessionid={cookie}",
    )
    writer.write(("\r\n".join(head) + "\r\n\r\n").encode())
    await reader.readuntil(b"\r\n\r\n")
    request = b'{"type": "subscribe", "topics": ["queues"]}'
    writer.write(bytes([0x81, 0x80 | len(request)]) + bytes(4) + request)
    return Listener(reader, writer)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
