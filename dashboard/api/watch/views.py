"""One list as it was last read, how it came to be so, and what it was at an earlier moment.

All who ask for the same list with the same rights share a view: it is read once for all of them.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from dashboard.api.framework.fields import select_fields, wanted_fields
from dashboard.api.framework.json_cache import as_json
from dashboard.api.watch.events import ADDED, DELETED, MODIFIED, event
from scheduler.domain.access import Access

MOST_OBJECTS: Final = 10_000
"""A longer list is not followed: each reading takes in all of it."""
MOST_STEPS: Final = 20_000
KEPT_SECONDS: Final = 180.0
"""How long a view is kept that nobody follows, for readers that come back."""


class TooMany(Exception):
    """The list has more objects than can be followed."""


class Known(NamedTuple):
    """What a reader knows of an object: a digest of its text, and how it is told of its end."""

    digest: bytes
    identity: str


State = Mapping[int, Known]
"""What a reader knows, by primary key."""


@dataclass(frozen=True, slots=True)
class Item:
    stamp: Any
    text: str
    known: Known


class Step(NamedTuple):
    """A change of one object, as it can be undone. `before` is None where it was not there."""

    number: int
    key: int
    before: Known | None


@dataclass(slots=True)
class Question:
    """Which list, with whose rights. `endpoint` is a copy of the one that was asked."""

    endpoint: Any
    access: Access
    key: tuple[Any, ...] = field(init=False)

    def __post_init__(self) -> None:
        given = self.endpoint.request.query_params.lists()
        asked = tuple(sorted((name, tuple(values)) for name, values in given if name != "since"))
        sight = (self.access.visible, self.access.readable)
        self.key = (self.endpoint.noun, asked, sight)

    def with_access(self, access: Access) -> Question:
        return Question(self.endpoint.for_watching(access), access)

    def read(self, known: Mapping[int, Item]) -> dict[int, Item]:
        """The objects of the list as they are now. Those with the same stamp are not read again."""
        stamps, read_objects = self.endpoint.stamped_list(MOST_OBJECTS + 1)
        if len(stamps) > MOST_OBJECTS:
            raise TooMany
        outdated = []
        for key, stamp in stamps.items():
            if key not in known or known[key].stamp != stamp:
                outdated.append(key)
        objects = read_objects(outdated) if outdated else {}
        wanted = wanted_fields(self.endpoint.request)
        items: dict[int, Item] = {}
        for key, stamp in stamps.items():
            if key in objects:
                items[key] = _item(stamp, objects[key], wanted)
            elif key in known and known[key].stamp == stamp:
                items[key] = known[key]
        return items


def _item(stamp: Any, found: dict[str, Any], wanted: Any) -> Item:
    text = as_json(select_fields(found, wanted))
    digest = hashlib.blake2b(text.encode(), digest_size=12).digest()
    return Item(stamp, text, Known(digest, _identity(found)))


def _identity(found: dict[str, Any]) -> str:
    """Enough to know which object it was."""
    metadata = found["metadata"]
    names = {key: metadata[key] for key in ("namespace", "name", "uid") if key in metadata}
    return as_json({"apiVersion": found["apiVersion"], "kind": found["kind"], "metadata": names})


class View:
    """A list, and the steps that led to it. Each step has a number, which readers are told."""

    def __init__(self, question: Question) -> None:
        self.id = secrets.token_hex(8)
        self.question = question
        self.noun: str = question.endpoint.noun
        self.items: dict[int, Item] = {}
        self.number = 0
        self.is_read = False
        self.left_at: float | None = None
        self._steps: deque[Step] = deque(maxlen=MOST_STEPS)
        self._lock = threading.Lock()
        _VIEWS.add(self)

    @property
    def version(self) -> str:
        return f"{self.id}-{self.number}"

    def read(self) -> dict[int, Item]:
        return self.question.read(self.items)

    def take(self, fresh: dict[int, Item]) -> list[str]:
        """Remember what was read, and say what changed. The first reading changes nothing."""
        with self._lock:
            before = self.items
            self.items = fresh
            if not self.is_read:
                self.is_read = True
                return []
            return self._note_changes(before, fresh)

    def _note_changes(self, before: dict[int, Item], fresh: dict[int, Item]) -> list[str]:
        events = []
        for key, item in fresh.items():
            old = before.get(key)
            if old is None:
                self._note(key, None)
                events.append(event(ADDED, item.text, self.version))
            elif old.text != item.text:
                self._note(key, old.known)
                events.append(event(MODIFIED, item.text, self.version))
        for key, item in before.items():
            if key not in fresh:
                self._note(key, item.known)
                events.append(event(DELETED, item.known.identity, self.version))
        return events

    def _note(self, key: int, before: Known | None) -> None:
        self.number += 1
        self._steps.append(Step(self.number, key, before))

    def state_at(self, number: int) -> State | None:
        """What a reader knows that has come so far; None where that was forgotten."""
        with self._lock:
            oldest = self.number - len(self._steps)
            if not self.is_read or not oldest <= number <= self.number:
                return None
            state = {key: item.known for key, item in self.items.items()}
            return undone(state, reversed(self._steps), number)

    def record(self, most: int) -> bytes:
        """For another process: the state, and the last steps back."""
        with self._lock:
            state = {}
            for key, item in self.items.items():
                state[key] = [item.known.digest.hex(), item.known.identity]
            steps = []
            for step in list(self._steps)[-most:]:
                known = None
                if step.before is not None:
                    known = [step.before.digest.hex(), step.before.identity]
                steps.append([step.number, step.key, known])
            content = {"noun": self.noun, "number": self.number, "state": state, "steps": steps}
            return json.dumps(content, separators=(",", ":")).encode()


def undone(state: dict[int, Known], steps: Iterable[Step], number: int) -> State:
    """The state before all steps after `number`. The newest step comes first."""
    for step in steps:
        if step.number <= number:
            break
        if step.before is None:
            state.pop(step.key, None)
        else:
            state[step.key] = step.before
    return state


def state_in(record: bytes, noun: str, number: int) -> State | None:
    """What another process wrote down, as `View.state_at`."""
    content = json.loads(record)
    steps = [_step(*step) for step in content["steps"]]
    oldest = content["number"] - len(steps)
    if content["noun"] != noun or not oldest <= number <= content["number"]:
        return None
    state = {}
    for key, known in content["state"].items():
        state[int(key)] = _known(known)
    return undone(state, reversed(steps), number)


def _step(number: int, key: int, known: list[str] | None) -> Step:
    return Step(number, key, _known(known) if known else None)


def _known(written: list[str]) -> Known:
    return Known(bytes.fromhex(written[0]), written[1])


def catching_up(state: State, view: View) -> list[str]:
    """What leads a reader from what it knows to what there is. They have no version of their own:
    only all of them together lead to one.
    """
    events = []
    for key, item in view.items.items():
        if key not in state:
            events.append(event(ADDED, item.text))
        elif state[key].digest != item.known.digest:
            events.append(event(MODIFIED, item.text))
    for key, known in state.items():
        if key not in view.items:
            events.append(event(DELETED, known.identity))
    return events


class _Views:
    """All views of this process, by id. Those that nobody follows are forgotten after a while."""

    def __init__(self) -> None:
        self._by_id: dict[str, View] = {}
        self._lock = threading.Lock()

    def add(self, view: View) -> None:
        with self._lock:
            self._by_id[view.id] = view

    def find(self, view_id: str) -> View | None:
        self.forget_old()
        return self._by_id.get(view_id)

    def forget_old(self) -> None:
        now = time.monotonic()
        with self._lock:
            for view in list(self._by_id.values()):
                if view.left_at is not None and now - view.left_at > KEPT_SECONDS:
                    del self._by_id[view.id]


_VIEWS = _Views()


def find_view(view_id: str) -> View | None:
    return _VIEWS.find(view_id)
