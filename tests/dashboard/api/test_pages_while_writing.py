"""Pages are read while others come and go: whatever was there all the time is seen once, in every
order, forwards and backwards.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db.models import Model
from django.utils import timezone

from dashboard.api.urls import COLLECTIONS
from scheduler.models import (
    ApiToken,
    BulkRun,
    ChangePlan,
    ChangeSet,
    Command,
    Comparison,
    Decision,
    Event,
    Eviction,
    Grant,
    GroupMapping,
    Job,
    Namespace,
    Node,
    Notice,
    NoticeChannel,
    NoticeDelivery,
    NoticeRule,
    Occurrence,
    Pod,
    PodClass,
    PodGroup,
    PolicyVersion,
    Preview,
    PriorityClass,
    Queue,
    SafeWindow,
    SavedView,
    SchedulingSession,
)
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.demo.setup import ensure_builtin_objects
from scheduler.services.records import audit
from tests.dashboard.api.conftest import Caller

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

STAYING = 12


def _queue(number: int) -> Queue:
    root = Queue.objects.get(name="root")
    return Queue.objects.create(
        name=f"q{number}",
        parent=root,
        weight=number % 3 + 1,
        priority=number % 2,
        state=("Open", "Closed")[number % 2],
    )


def _gang(number: int, job: Job | None = None) -> PodGroup:
    return PodGroup.objects.create(
        namespace=f"ns{number % 2}",
        name=f"g{number}",
        queue=_leaf(number),
        owner=f"u{number % 3}",
        priority=number % 3,
        phase=_phase(number),
        job=job,
    )


def _leaf(number: int) -> Queue:
    return Queue.objects.get_or_create(
        name=f"leaf{number % 2}", defaults={"parent": Queue.objects.get(name="root")}
    )[0]


def _phase(number: int) -> str:
    return ("Pending", "Running")[number % 2]


def _job(number: int) -> Job:
    shared = {
        "tasks": [],
        "min_available": 1,
        "phase_since": timezone.now(),
        "phase": _phase(number),
    }
    return Job.objects.create(
        namespace=f"ns{number % 2}",
        name=f"j{number}",
        queue=_leaf(number),
        owner=f"u{number % 3}",
        **shared,
    )


def _pod(number: int) -> Pod:
    kind = PodClass.objects.first() or PodClass.objects.create(requests={"cpu": 1})
    gang = PodGroup.objects.first() or _gang(0)
    return Pod.objects.create(
        namespace="default",
        name=f"p{number}",
        podgroup=gang,
        pod_class=kind,
        phase=_phase(number),
        index=number,
    )


def _session(number: int) -> SchedulingSession:
    return SchedulingSession.objects.create(
        number=number + 1, state="Done", started_at=timezone.now()
    )


def _in_session(model: Any, **more: Any) -> Callable[[int], Any]:
    def make(number: int) -> Any:
        return model.objects.create(queue_name="leaf0", created_at=timezone.now(), **more)

    return make


def _event(number: int) -> Event:
    now = timezone.now().replace(microsecond=0) + timedelta(seconds=number % 3)
    return Event.objects.create(
        kind="Queue",
        name=f"e{number}",
        reason="x",
        message="x",
        first_at=now,
        last_at=now,
    )


def _mine(model: Any, **more: Callable[[int], Any]) -> Callable[[int], Any]:
    """Rows of the reader's own."""

    def make(number: int) -> Any:
        fields = {name: value(number) for name, value in more.items()}
        has_user = model in (ApiToken, Grant, Notice, NoticeChannel, NoticeRule)
        owner = "user" if has_user else "owner"
        return model.objects.create(
            **{owner: get_user_model().objects.get(username="boss")}, **fields
        )

    return make


def _delivery(number: int) -> NoticeDelivery:
    """A message to a channel of the reader's own."""
    channel = NoticeChannel.objects.filter(name="hook").first()
    if channel is None:
        channel = NoticeChannel.objects.create(
            user=get_user_model().objects.get(username="boss"), name="hook"
        )
    return NoticeDelivery.objects.create(channel=channel, due_at=timezone.now())


def _plan(number: int) -> ChangePlan:
    change_set = ChangeSet.objects.create(name=f"c{number}")
    return ChangePlan.objects.create(change_set=change_set, begins="2026-11-20T18:00", zone="UTC")


MAKERS: dict[str, Callable[[int], Any]] = {
    "queues": _queue,
    "jobs": _job,
    "podgroups": _gang,
    "pods": _pod,
    "nodes": lambda number: Node.objects.create(name=f"n{number}"),
    "namespaces": lambda number: Namespace.objects.create(name=f"n{number}"),
    "priorityclasses": lambda number: PriorityClass.objects.create(
        name=f"c{number}", value=number % 3
    ),
    "commands": lambda number: Command.objects.create(
        action="OpenQueue",
        target_kind="Queue",
        target_name=f"q{number}",
        result="Done",
    ),
    "sessions": _session,
    "decisions": _in_session(Decision, kind="Bind", pod_name="x", action="allocate", session_id=1),
    "evictions": _in_session(
        Eviction,
        session_number=1,
        pod_name="x",
        podgroup_name="x",
        action="reclaim",
    ),
    "comparisons": lambda number: Comparison.objects.create(
        about=Comparison.START,
        podgroup_number=number,
        podgroup_name=f"default/g{number}",
        queue_name="default",
        since=timezone.now(),
    ),
    "events": _event,
    "audit": lambda number: audit.record(SYSTEM, "Try", "Queue", f"q{number}"),
    "users": lambda number: get_user_model().objects.create(username=f"u{number}"),
    "groups": lambda number: Group.objects.create(name=f"g{number}"),
    "grants": lambda number: Grant.objects.create(
        user=get_user_model().objects.create(username=f"g{number}"),
        role="viewer",
        queue=_leaf(0),
    ),
    "groupmappings": lambda number: GroupMapping.objects.create(
        provider_group=f"g{number}",
        role="viewer",
        queue=_leaf(0),
    ),
    "tokens": _mine(
        ApiToken,
        name=lambda number: f"t{number}",
        digest=lambda number: f"d{number}",
        scopes=lambda _: ["read"],
    ),
    "views": _mine(SavedView, page=lambda _: "jobs", name=lambda number: f"v{number}"),
    "bulkruns": _mine(BulkRun, action=lambda _: "AbortJob"),
    "policyversions": lambda number: PolicyVersion.objects.create(text=f"# {number}"),
    "previews": _mine(Preview, minutes=lambda _: 60),
    "notices": _mine(
        Notice,
        key=lambda number: f"n{number}",
        at=lambda _: timezone.now(),
        queue_id=lambda _: _leaf(0).pk,
    ),
    "noticerules": _mine(
        NoticeRule, kind=lambda _: "JobFailed", queue_id=lambda number: _queue(number).pk
    ),
    "noticechannels": _mine(NoticeChannel, name=lambda number: f"c{number}"),
    "noticedeliveries": _delivery,
    "changes": lambda number: ChangeSet.objects.create(name=f"c{number}"),
    "windows": lambda number: SafeWindow.objects.create(
        queue=f"q{number}",
        change_set=ChangeSet.objects.create(name=f"w{number}"),
        before={f"q{number}": {"requested": "Open", "state": "Open"}},
    ),
    "plans": _plan,
    "occurrences": lambda number: Occurrence.objects.create(
        plan=_plan(number), number=0, begins_at=timezone.now()
    ),
}
_KEPT_FOR_EVER = ("audit",)  # the database refuses to delete them


class Coming:
    """Rows that come and go between two pages."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.chance = random.Random(name)
        self.numbers = iter(self.chance.sample(range(2000), 2000))
        self.rows: list[Model] = []

    def come(self) -> None:
        self.rows.append(MAKERS[self.name](next(self.numbers)))

    def go(self) -> None:
        if self.name not in _KEPT_FOR_EVER:
            self.rows.pop(self.chance.randrange(len(self.rows))).delete()

    def change(self) -> None:
        self.come()
        self.go()


def key(item: dict[str, Any]) -> tuple[str, str]:
    return (item["metadata"].get("namespace", ""), item["metadata"]["name"])


def keys(page: dict[str, Any]) -> list[tuple[str, str]]:
    return [key(item) for item in page["results"]]


def walked(
    admin: Caller,
    page: dict[str, Any],
    way: str,
    between: Callable[[], None],
) -> tuple[list[tuple[str, str]], dict[str, Any]]:
    """All keys from this page on in the order of the list, and the page at the end."""
    seen = keys(page)
    while page[way] is not None:
        between()
        page = admin.get(page[way])
        seen = seen + keys(page) if way == "next" else keys(page) + seen
    return seen, page


def assert_whole(
    seen: list[tuple[str, str]],
    before: list[tuple[str, str]],
    after: list[tuple[str, str]],
) -> None:
    always = [one for one in before if one in after]
    assert len(always) >= STAYING
    assert len(seen) == len(set(seen)), "a row was seen twice"
    assert [one for one in seen if one in always] == always


@pytest.mark.parametrize("name", COLLECTIONS)
def test_what_was_there_all_the_time_is_seen_once(admin: Caller, name: str):
    ensure_builtin_objects()
    if name == "decisions":
        SchedulingSession.objects.create(pk=1, number=1, state="Done", started_at=timezone.now())
    passing = Coming(name)
    for _ in range(STAYING):
        MAKERS[name](next(passing.numbers))
        passing.come()

    for ordering in (sign + known for known in COLLECTIONS[name].orderings for sign in ("", "-")):
        whole = f"{name}/?page_size=1000&ordering={ordering}"
        before = keys(admin.get(whole))
        seen, last = walked(
            admin,
            admin.get(f"{name}/?page_size=5&ordering={ordering}"),
            "next",
            passing.change,
        )
        between = keys(admin.get(whole))
        assert_whole(seen, before, between)
        seen, _ = walked(admin, last, "previous", passing.change)
        assert_whole(seen, between, keys(admin.get(whole)))
