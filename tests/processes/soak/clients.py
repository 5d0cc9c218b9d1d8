"""Whoever uses the site: they submit, cancel, edit, command, click, read and watch.

Each is a thread with dice of its own, so that what they do follows from the seed. Whoever has an
Idempotency-Key asks again until they are answered; a click on a page is made once.
"""

from __future__ import annotations

import json
import random
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import httpx
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from tests.processes.soak.ledger import Deed, Ledger

LEAVES = ("a1", "a2", "b", "default")
COMMANDED = ("a", "a1", "a2", "b")
CLICKED = "default"
EDITED = ("a1", "b")
PAGES = ("/", "/queues/", "/jobs/", "/nodes/", "/sessions/", "/queues/a1/", "/activity/")
READS = (
    "queues/",
    "jobs/?page_size=50",
    "nodes/",
    "cluster/",
    "sessions/?page_size=5",
    "queues/a1/",
)
_ANSWER_SECONDS = 20.0
_AGAIN_SECONDS = 0.5
_TRY_AGAIN = (409, 429, 502, 503, 504)  # 409: the same request is still being worked on


class Crowd:
    """`wait_seconds` is how long each rests between two deeds, about."""

    def __init__(
        self, addresses: Sequence[str], token: str, cookie: str, seed: int, wait_seconds: float
    ) -> None:
        self.ledger = Ledger()
        self._addresses = list(addresses)
        self._token = token
        self._cookie = cookie
        self._wait_seconds = wait_seconds
        self._is_over = threading.Event()
        self._jobs: list[str] = []
        self.weights: dict[str, int] = {}  # of queues, as they were last answered
        self.frames = 0
        self.connects = 0
        self.broken_sockets = 0
        kinds: dict[str, Callable[[Visitor], None]] = {
            "submitter-1": self._submit,
            "submitter-2": self._submit,
            "canceller": self._cancel,
            "editor": self._edit,
            "commander": self._command,
            "clicker": self._click,
            "page reader": self._read_page,
            "API reader": self._read_api,
            "watcher-1": self._watch,
            "watcher-2": self._watch,
        }
        self._threads = [
            threading.Thread(target=self._keep_doing, args=(name, deed, seed), name=name)
            for name, deed in kinds.items()
        ]

    def __enter__(self) -> Crowd:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def end(self) -> None:
        """Each finishes what they have begun."""
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _keep_doing(self, name: str, deed: Callable[[Visitor], None], seed: int) -> None:
        visitor = Visitor(self, random.Random(f"{seed} {name}"))
        with visitor.client:
            while not self._is_over.wait(visitor.dice.uniform(0.3, 1.7) * self._wait_seconds):
                try:
                    deed(visitor)
                except Exception as problem:  # a client that stopped would hide what follows
                    self.ledger.note_problem(f"{name}: {problem!r}")

    # Deeds

    def _submit(self, visitor: Visitor) -> None:
        from tests.worlds import manifest

        dice = visitor.dice
        name = f"job-{uuid.UUID(int=dice.getrandbits(128)).hex[:12]}"
        replicas = dice.randint(1, 6)
        body = manifest(
            name,
            dice.choice(LEAVES),
            replicas=replicas,
            least=dice.randint(1, replicas),
            cpu=dice.choice(["500m", "1", "2", "4"]),
            seconds=dice.choice([1, 3, 8]),
            ttlSecondsAfterFinished=100_000,
        )
        deed = self.ledger.open(Deed("submit", name, body["spec"]["queue"]))
        visitor.insist(deed, "POST", "jobs/", body)
        if deed.is_done:
            self._jobs.append(name)

    def _cancel(self, visitor: Visitor) -> None:
        if self._jobs:
            name = visitor.dice.choice(self._jobs[-20:])
            deed = self.ledger.open(Deed("cancel", visitor.mark("cancel"), name))
            visitor.insist(deed, "POST", f"jobs/default/{name}/cancel/", {"reason": deed.mark})

    def _edit(self, visitor: Visitor) -> None:
        """And read it again, from any web process: what was answered is there."""
        queue = visitor.dice.choice(EDITED)
        weight = visitor.dice.choice([w for w in range(1, 10) if w != self.weights.get(queue)])
        deed = self.ledger.open(Deed("edit", visitor.mark("edit"), queue))
        visitor.insist(deed, "PATCH", f"queues/{queue}/", {"spec": {"weight": weight}})
        if not deed.is_done:
            return
        self.weights[queue] = weight
        answer = visitor.ask("read", "GET", f"queues/{queue}/")
        if answer is not None and answer.status_code == 200:
            found = answer.json()["spec"]["weight"]
            if found != weight:
                self.ledger.note_problem(
                    f"lost click: {queue} was given weight {weight} and has {found}"
                )

    def _command(self, visitor: Visitor) -> None:
        again = ("open", "resume") * 2  # or soon nothing would go on
        verb = visitor.dice.choice(("open", "close", "suspend", "resume", *again))
        queue = visitor.dice.choice(COMMANDED)
        deed = self.ledger.open(Deed("command", visitor.mark(verb), queue))
        visitor.insist(deed, "POST", f"queues/{queue}/{verb}/", {"reason": deed.mark})

    def _click(self, visitor: Visitor) -> None:
        """A form of a page, sent once, as a browser does."""
        verb = visitor.dice.choice(("suspend", "resume", "resume"))
        path = f"/queues/{CLICKED}/{verb}/"
        form = visitor.ask("page", "GET", path)
        if form is None or form.status_code != 200:
            return
        deed = self.ledger.open(Deed("click", visitor.mark(verb), CLICKED))
        token = visitor.client.cookies.get("csrftoken", "")
        body = {"csrfmiddlewaretoken": token, "reason": deed.mark}
        answer = visitor.ask("click", "POST", path, deed=deed, form=body)
        deed.status = answer.status_code if answer is not None else 0
        deed.is_over = True
        if deed.is_done:
            self.ledger.last_done_at = time.monotonic()

    def _read_page(self, visitor: Visitor) -> None:
        visitor.ask("page", "GET", visitor.dice.choice(PAGES))

    def _read_api(self, visitor: Visitor) -> None:
        visitor.ask("read", "GET", visitor.dice.choice(READS))

    def _watch(self, visitor: Visitor) -> None:
        """A page that is open for a while. Whatever breaks it, it connects again."""
        address = visitor.dice.choice(self._addresses).replace("http", "ws", 1)
        until = time.monotonic() + visitor.dice.uniform(3, 20)
        headers = {"Cookie": f"sessionid={self._cookie}", "Origin": "http://127.0.0.1"}
        try:
            with connect(
                f"{address}/ws/v1/", additional_headers=headers, proxy=None, open_timeout=10
            ) as opened:
                self.connects += 1
                opened.send(json.dumps({"type": "subscribe", "topics": ["queues", "jobs"]}))
                while time.monotonic() < until and not self._is_over.is_set():
                    with_frame = _receive(opened)
                    self.frames += with_frame
        except (OSError, WebSocketException):
            self.broken_sockets += 1
            self._is_over.wait(_AGAIN_SECONDS)


def _receive(opened: Any) -> int:
    try:
        opened.recv(timeout=0.5)
    except TimeoutError:
        return 0
    return 1


class Visitor:
    """One client of the crowd. Each request goes to any of the web processes."""

    def __init__(self, crowd: Crowd, dice: random.Random) -> None:
        self._crowd = crowd
        self.dice = dice
        self.client = httpx.Client(timeout=_ANSWER_SECONDS, trust_env=False)
        for address in crowd._addresses:
            self.client.cookies.set("sessionid", crowd._cookie, domain=_host(address))

    def mark(self, words: str) -> str:
        return f"{words} {uuid.UUID(int=self.dice.getrandbits(128)).hex[:16]}"

    def insist(self, deed: Deed, method: str, path: str, body: dict[str, Any]) -> None:
        """Until it is answered, under one key."""
        key = uuid.UUID(int=self.dice.getrandbits(128)).hex
        while True:
            answer = self.ask(deed.kind, method, path, deed=deed, body=body, key=key)
            if answer is not None and not _asks_for_patience(answer):
                break
            if self._crowd._is_over.wait(_AGAIN_SECONDS) and len(deed.request_ids) > 60:
                break
        if answer is not None:
            deed.status = answer.status_code
        if answer is not None and deed.is_done:
            self._crowd.ledger.last_done_at = time.monotonic()
        deed.is_over = True

    def ask(
        self,
        kind: str,
        method: str,
        path: str,
        *,
        deed: Deed | None = None,
        body: dict[str, Any] | None = None,
        form: dict[str, str] | None = None,
        key: str = "",
    ) -> httpx.Response | None:
        """None if no answer came."""
        address = self.dice.choice(self._crowd._addresses)
        headers = {"X-Request-ID": uuid.uuid4().hex, "Origin": address}
        if deed is not None:
            deed.request_ids.append(headers["X-Request-ID"])
        if key:
            headers["Idempotency-Key"] = key
        if not path.startswith("/"):
            path = f"/api/v1/{path}"
            headers["Authorization"] = f"Bearer {self._crowd._token}"
            headers["Accept"] = "application/json"
        try:
            answer = self.client.request(
                method, address + path, headers=headers, json=body, data=form
            )
        except httpx.HTTPError:
            self._crowd.ledger.note_answer(kind, 0)
            return None
        self._crowd.ledger.note_answer(kind, answer.status_code)
        if answer.status_code >= 500 and answer.status_code not in _TRY_AGAIN:
            said = f"{method} {path} was answered with {answer.status_code}: {answer.text[:200]}"
            self._crowd.ledger.note_problem(said)
        if "Traceback" in answer.text:
            self._crowd.ledger.note_problem(f"{method} {path} shows a traceback")
        return answer


def _asks_for_patience(answer: httpx.Response) -> bool:
    if answer.status_code == 409:
        return "key-busy" in answer.text
    return answer.status_code in _TRY_AGAIN


def _host(address: str) -> str:
    return httpx.URL(address).host
