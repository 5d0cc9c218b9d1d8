"""`?watch=1`: whoever applies the events of a list always has the list."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from dashboard.api.watch import handover, streams, views
from dashboard.api.watch.endpoint import PLACES
from scheduler.models import ApiToken, Grant, Queue
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.accounts.grants import grant_role
from scheduler.services.accounts.tokens import revoke_token
from tests.dashboard.api.conftest import Caller, job, node, queue
from tests.dashboard.api.watch.followers import Following
from tests.worlds import pass_time, run_session

pytestmark = pytest.mark.django_db

LISTS = (
    "queues/?watch=1",
    "queues/?watch=1&label=team=a&fields=metadata,spec.weight",
    "jobs/?watch=1",
    "jobs/?watch=1&phase=Pending,Running&queue=research",
    "podgroups/?watch=1&phase=Pending,Inqueue",
    "pods/?watch=1&phase=Pending,Bound,Running",
    "nodes/?watch=1",
)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "PAUSE_SECONDS", 0.0)
    PLACES._taken.clear()  # what a test that failed has left


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """What is kept for other processes."""
    kept: dict[str, bytes] = {}
    monkeypatch.setattr(handover, "redis_client", lambda _url: _Kept(kept))
    return kept


class _Kept:
    def __init__(self, kept: dict[str, bytes]) -> None:
        self.kept = kept

    def set(self, name: str, value: bytes, ex: int) -> None:
        self.kept[name] = value

    def get(self, name: str) -> bytes | None:
        return self.kept.get(name)


def forget_views() -> None:
    """As another process: it knows of no reading of this one."""
    views._VIEWS._by_id.clear()


class Life:
    """Whatever may happen to queues, jobs and nodes, one thing after the other."""

    def __init__(self, admin: Caller, seed: int) -> None:
        self.admin = admin
        self.chance = random.Random(seed)
        self.number = 0
        admin.post("queues/", queue("research"), expect=201)
        admin.post("nodes/", node("first", cpu="4"), expect=201)

    def step(self) -> None:
        deed: Callable[[], Any] = self.chance.choice(
            (
                *(self.new_job, self.new_job, self.drop_job, self.session, self.time),
                *(self.label, self.new_queue, self.drop_queue, self.suspend, self.new_node),
            )
        )
        deed()

    def _one(self, collection: str) -> dict[str, Any] | None:
        found = self.admin.get(f"{collection}/")["results"]
        return self.chance.choice(found) if found else None

    def new_job(self) -> None:
        self.number += 1
        place = self.chance.choice(("research", "default"))
        self.admin.post("jobs/", job(f"j{self.number}", place), expect=201)

    def session(self) -> None:
        run_session()

    def time(self) -> None:
        pass_time(self.chance.choice((5, 60)))

    def label(self) -> None:
        change = {"metadata": {"labels": {"team": self.chance.choice("ab")}}}
        self.admin.patch("queues/research/", change)

    def new_queue(self) -> None:
        self.number += 1
        labels = {"team": self.chance.choice("ab")}
        made = queue(f"q{self.number}")
        made["metadata"]["labels"] = labels
        self.admin.post("queues/", made, expect=201)

    def drop_job(self) -> None:
        found = self._one("jobs")
        if found:
            self.admin.ask("DELETE", f"jobs/default/{found['metadata']['name']}/")

    def drop_queue(self) -> None:
        name = self.chance.choice([f"q{number}" for number in range(1, self.number + 2)])
        self.admin.ask("POST", f"queues/{name}/close/")
        self.admin.ask("DELETE", f"queues/{name}/")

    def suspend(self) -> None:
        verb = self.chance.choice(("suspend", "resume"))
        self.admin.ask("POST", f"queues/research/{verb}/")

    def new_node(self) -> None:
        self.number += 1
        self.admin.post("nodes/", node(f"n{self.number}", cpu="4"), expect=201)


@pytest.mark.both_databases
@pytest.mark.parametrize("seed", [1, 2])
def test_whoever_applies_the_events_has_the_list_through_any_life(
    admin: Caller, elsewhere: dict[str, bytes], seed: int
):
    life = Life(admin, seed)
    followers = [Following(admin, path) for path in LISTS]
    for follower in followers:
        follower.connect()
    for number in range(25):
        life.step()
        if number % 3 == 0:
            life.step()
        follower = life.chance.choice(followers)
        follower.leave()
        if number % 2:
            forget_views()
        life.step()
        follower.connect()
        for one in followers:
            one.look()
            assert one.objects == one.listed(), one.path
    for follower in followers:
        assert len(follower.heard) > 1, follower.path
        follower.leave()
    assert PLACES.taken() == 0


def test_a_list_begins_with_all_it_has_and_then_tells_what_changes(admin: Caller):
    admin.post("queues/", queue("a"), expect=201)
    follower = Following(admin, "queues/?watch=1&search=a")
    follower.connect()
    admin.patch("queues/a/", {"spec": {"weight": 5}})
    follower.look()
    admin.post("queues/a/close/")
    admin.delete("queues/a/")
    follower.look()

    assert [word for word in follower.heard if word.endswith(" a")] == [
        "ADDED a",
        "MODIFIED a",
        "DELETED a",
    ]
    follower.leave()


def test_what_leaves_the_filter_is_deleted(admin: Caller):
    admin.post("queues/", queue("a"), expect=201)
    follower = Following(admin, "queues/?watch=1&state=Open&search=a")
    follower.connect()
    before = dict(follower.objects)

    admin.post("queues/a/suspend/")
    follower.look()

    assert "DELETED a" in follower.heard
    assert len(follower.objects) == len(before) - 1
    assert follower.objects == follower.listed()
    follower.leave()


def test_a_version_that_is_forgotten_is_gone_and_says_what_to_do(admin: Caller):
    follower = Following(admin, "queues/?watch=1")
    follower.connect()
    follower.leave()
    forget_views()

    problem = admin.get(f"queues/?watch=1&since={follower.version}", expect=410)

    assert problem["title"] == "Too old"
    assert "Follow the list from the start" in problem["detail"]


def test_a_version_of_another_list_is_not_taken(admin: Caller):
    follower = Following(admin, "queues/?watch=1")
    follower.connect()

    admin.get(f"nodes/?watch=1&since={follower.version}", expect=410)
    follower.leave()


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ("watch=1&since=yesterday", "since"),
        ("since=0123456789abcdef-1", "since"),
        ("watch=maybe", "watch"),
        ("watch=1&cursor=abc", "cursor"),
        ("watch=1&page_size=5", "page_size"),
        ("watch=1&state=Sleeping", "state"),
        ("watch=1&nonsense=1", "nonsense"),
    ],
)
def test_what_cannot_be_followed_is_named(admin: Caller, asked: str, field: str):
    problem = admin.get(f"queues/?{asked}", expect=400)

    assert problem["violations"][0]["field"] == field


def test_a_list_that_is_too_long_is_refused(admin: Caller, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dashboard.api.watch.endpoint.MOST_OBJECTS", 1)

    problem = admin.get("queues/?watch=1", expect=400)

    assert "more than 1 objects" in problem["detail"]


def test_somebody_follows_few_lists_at_once(admin: Caller):
    followers = [Following(admin, "queues/?watch=1") for _ in range(10)]
    for follower in followers:
        follower.connect()

    problem = admin.get("queues/?watch=1", expect=429)

    assert problem["detail"] == "You follow 10 lists already. Close one of them first."
    for follower in followers:
        follower.leave()
    assert PLACES.taken() == 0


def test_a_reader_of_one_branch_hears_of_that_branch_and_of_rights_that_change(admin: Caller):
    for name in ("a", "b"):
        admin.post("queues/", queue(name), expect=201)
    narrow = Caller("narrow", ("read",))
    granted = grant_role(user="narrow", role="viewer", queue="a", by=SYSTEM)
    follower = Following(narrow, "queues/?watch=1")
    follower.connect()
    seen_first = sorted(found["metadata"]["name"] for found in follower.objects.values())
    admin.patch("queues/b/", {"spec": {"weight": 5}})
    follower.look()
    grant_role(user="narrow", role="viewer", queue="b", by=SYSTEM)
    follower.look()
    Grant.objects.filter(pk=granted.pk).delete()
    follower.look()

    assert seen_first == ["a"]
    assert follower.heard == ["ADDED a", "ADDED b", "DELETED a"]
    assert follower.objects == follower.listed()
    follower.leave()


def test_a_revoked_token_ends_the_stream(admin: Caller):
    reader = Caller("vera", ("read",))
    follower = Following(reader, "jobs/?watch=1")
    follower.connect()

    revoke_token(ApiToken.objects.get(user=reader.user), by=SYSTEM)
    follower.look()

    assert follower.end == {"reason": "rights", "message": "You may no longer follow this list."}
    follower.leave()


def test_who_loses_every_role_follows_no_nodes(admin: Caller):
    admin.post("queues/", queue("a"), expect=201)
    reader = Caller("vera", ("read",))
    grant_role(user="vera", role="viewer", queue="a", by=SYSTEM)
    follower = Following(reader, "nodes/?watch=1")
    follower.connect()

    Grant.objects.all().delete()
    follower.look()

    assert (follower.end or {})["reason"] == "rights"
    follower.leave()


def test_lists_are_followed_in_read_only_mode(admin: Caller, settings: Any):
    settings.READ_ONLY = True
    follower = Following(admin, "queues/?watch=1")

    follower.connect()

    assert len(follower.objects) == Queue.objects.count()
    follower.leave()
