"""Every place that could name others' work, read by people who may not see it: all pages, the API,
the websocket, vcctl.

The cluster has a queue, a job and an owner whose names nobody may learn without a role there. They
are planted wherever a row or a text could carry them; then everything is read.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone

from dashboard.api.urls import COLLECTIONS, SETS, SINGLETONS
from dashboard.http import log_stream
from dashboard.live.topics import as_seen, may_follow, read_topics
from scheduler.domain.lifecycle import QueueCommand
from scheduler.models import (
    ClusterState,
    Decision,
    Eviction,
    Grant,
    Namespace,
    Preview,
    Queue,
    SchedulingSession,
)
from scheduler.selectors.accounts.access import access_of
from scheduler.services.accounts.actors import SYSTEM, Actor, Door
from scheduler.services.change_sets.apply import apply_change_set
from scheduler.services.change_sets.drafts import create_change_set
from scheduler.services.cluster.nodes import cordon_node, uncordon_node
from scheduler.services.demo.setup import ensure_builtin_objects
from scheduler.services.queues.commands import command_queue
from scheduler.services.queues.create_update import update_queue
from scheduler.services.queues.states import refresh_states
from scheduler.services.queues.warnings import refresh_warnings
from scheduler.services.records.events import EventNote, record_events
from scheduler.services.sessions.runner import SessionRunner
from tests.dashboard.work import people, person, signed_in, submitted, text
from tests.worlds import let_age, manifest, node, pass_time, queue, run_session

pytestmark = pytest.mark.django_db

SECRET = "zzsecret"  # every name that must stay hidden begins with it, and nothing else holds it
VAULT = "zzsecret-vault"
HEIST = "zzsecret-heist"
MALLORY = "zzsecret-mallory"
READERS = ("sam", "ruth")  # a submitter to one queue, an admin of the one above it
AROUND = re.compile(rf".{{0,60}}{SECRET}.{{0,40}}", re.DOTALL)
MOST_VARIANTS = 6  # of one page: sorted, filtered and folded in every way there are thousands
NOT_FOLLOWED = re.compile(
    r"/accounts/logout/|/static/|/api/docs|/api/schema|/admin/|/admission/|/metrics"
)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs that are followed tell at once that they have nothing to tell."""
    monkeypatch.setattr(log_stream, "PAUSE_SECONDS", 0.0)


@pytest.fixture(autouse=True)
def cluster() -> None:
    """research deserves half and has little.

    The vault has borrowed the rest; what stands between them is in the records.
    """
    ensure_builtin_objects()
    node("n1", cpu="8", memory="32Gi")
    node("n2", cpu="8", memory="32Gi")
    queue("research", deserved={"cpu": "10"})
    queue("vision", "research", deserved={"cpu": "8"}, capability={"cpu": "12"})
    queue("language", "research", deserved={"cpu": "2"})
    queue(VAULT, deserved={"cpu": "9"})
    refresh_states()
    refresh_warnings()  # the two deserve more together than the cluster has: each is warned
    people()
    submitted("train-1", "vision", "sam", replicas=2, least=1)
    submitted(HEIST, VAULT, MALLORY, replicas=14, least=1)
    submitted(f"{HEIST}-late", VAULT, MALLORY, replicas=4)
    runner = SessionRunner("test")
    run_session(runner)
    pass_time(10)
    run_session(runner)
    submitted("train-2", "vision", "sam", replicas=20, cpu="2")
    run_session(runner)
    let_age()
    _plant()


HOLDING = {"before": 2000, "after": 1000, "due": 1000, "dueIs": "deserved"}


def _plant() -> None:
    """What sessions and people could leave behind, in every table that names somebody."""
    Namespace.objects.create(name="shared", annotations={"scheduling.volcano.sh/queue-name": VAULT})
    session = SchedulingSession.objects.order_by("-number").first()
    assert session is not None
    own = "default/train-1"
    others = f"default/{HEIST}"
    for victim, queue_name, taker, taker_queue in (
        (own, "vision", others, VAULT),
        (others, VAULT, own, "vision"),
    ):
        Eviction.objects.create(
            session=session,
            session_number=session.number,
            pod_name=f"{victim}-worker-0",
            podgroup_name=victim,
            queue_name=queue_name,
            node_name="n1",
            beneficiary=taker,
            beneficiary_queue=taker_queue,
            action="reclaim",
            reason=f"{taker_queue} takes back what {queue_name} borrowed",
            common_ancestor="root",
            level=0,
            before={"allocated": {"cpu": 2000}},
            after={"allocated": {"cpu": 1000}},
            rule="Deserved",
            grounds={
                "rule": "Deserved",
                "resource": "cpu",
                "taker": {**HOLDING, "queue": taker_queue},
                "loser": {**HOLDING, "queue": queue_name},
                "possible": 3,
                "chosen": 1,
                "hasTriedAll": True,
            },
            created_at=timezone.now(),
        )
        Decision.objects.create(
            session=session,
            kind="Evict",
            pod_name=f"{victim}-worker-0",
            podgroup_name=victim,
            queue_name=queue_name,
            node_name="n1",
            action="reclaim",
            created_at=timezone.now(),
        )
    SchedulingSession.objects.create(
        number=session.number + 1,
        state="Failed",
        started_at=timezone.now(),
        finished_at=timezone.now(),
        message=f"ValueError: queue {VAULT} has no parent",
    )
    ClusterState.objects.update(
        warnings=[f"queue {VAULT}: its children deserve more than its own cpu"]
    )
    _plant_tenant()
    command_queue(VAULT, QueueCommand.SUSPEND, by=SYSTEM, reason=f"{MALLORY} wants it")
    command_queue(VAULT, QueueCommand.RESUME, by=SYSTEM)
    cordon_node("n1", by=SYSTEM)
    uncordon_node("n1", by=SYSTEM)


def _plant_tenant() -> None:
    """An admin of the vault, and what they keep and have done."""
    user = get_user_model().objects.create(username=MALLORY)
    vault = Queue.objects.get(name=VAULT)
    Grant.objects.create(user=user, role="admin", queue=vault, created_by=MALLORY)
    group = Group.objects.create(name=f"{SECRET}-gang")
    user.groups.add(group)
    Grant.objects.create(group=group, role="viewer", queue=vault)
    mallory = Actor(MALLORY, Door.UI, user)
    limits = {"namespaces": [f"{SECRET}-space"], "maxWaitingJobs": 100, "maxRunSeconds": 86_400}
    update_queue(VAULT, {"spec": limits}, merge=True, by=SYSTEM)
    asked = {"kind": "Queue", "metadata": {"name": VAULT}, "spec": {"description": "x"}}
    create_change_set(f"{SECRET}-empty", by=mallory)
    filled = create_change_set(f"{SECRET}-plan", [asked], by=mallory)
    apply_change_set(filled.pk, by=mallory)
    Preview.objects.create(owner=user, message=f"{VAULT} wins", result={"queues": [VAULT]})
    words = f"It ran for longer than the 60 s that {VAULT} allows."
    note = EventNote("Job", HEIST, "RunTimeExceeded", words, "default", VAULT, warning=True)
    record_events([note], timezone.now())


# What is read


def links_of(page: str, at: str) -> set[str]:
    found = re.findall(r'(?:href|hx-get|data-url|src|action)="([^"#]+)', page)
    inside = {
        urljoin(at, link.replace("&amp;", "&")) for link in found if not urlsplit(link).netloc
    }
    return {link for link in inside if link.startswith("/") and not NOT_FOLLOWED.match(link)}


def pages(reader: Client) -> Iterator[tuple[str, str]]:
    """All that can be reached from the overview by links, dialogs and tabs."""
    waiting = [
        "/",
        "/queues/",
        "/jobs/",
        "/nodes/",
        "/nodes/?view=map",
        "/sessions/",
        "/activity/?kind=all",
        "/audit/",
        "/policy/",
    ]
    seen: Counter[str] = Counter()
    done: set[str] = set()
    while waiting:
        path = waiting.pop()
        bare = path.partition("?")[0]
        if path in done or seen[bare] >= MOST_VARIANTS:
            continue
        done.add(path)
        seen[bare] += 1
        answer = reader.get(path)
        assert answer.status_code < 500 or path == "/readyz", path
        if answer.status_code == 200:
            yield path, text(answer)
            waiting += sorted(links_of(text(answer), path) - done, reverse=True)
    assert len(seen) > 40


def api(reader: Client) -> Iterator[tuple[str, str]]:
    for name, view in COLLECTIONS.items():
        answer = reader.get(f"/api/v1/{name}/?page_size=500")
        yield f"{name}/", text(answer)
        for found in answer.json().get("results", []) if answer.status_code == 200 else ():
            place = "/".join(found["metadata"][part] for part in view.lookups)
            yield f"{name}/{place}/", text(reader.get(f"/api/v1/{name}/{place}/"))
            for verb, methods in view.verbs.items():
                if "get" in methods:
                    yield (
                        f"{name}/{place}/{verb}/",
                        text(reader.get(f"/api/v1/{name}/{place}/{verb}/")),
                    )
    for name in (*SINGLETONS, *SETS):
        yield name, text(reader.get(f"/api/v1/{name}/"))


NEW_JOB = manifest("train-3", "vision", replicas=3)


def questions(reader: Client) -> Iterator[tuple[str, str]]:
    """What is asked with a body, and writes nothing."""
    form = {
        "name": "train-3",
        "namespace": "default",
        "queue": "vision",
        "task": "worker",
        "replicas": "3",
        "cpu": "1",
        "do": "check",
    }
    yield "check", text(reader.post("/jobs/-/new/", form))
    yield (
        "check as YAML",
        text(
            reader.post("/jobs/-/new/", {"as": "yaml", "yaml": json.dumps(NEW_JOB), "do": "check"})
        ),
    )
    documents: list[Any] = [
        NEW_JOB,
        manifest("train-1", "vision"),
        {
            "kind": "Queue",
            "metadata": {"name": "vision"},
            "spec": {
                "parent": "research",
                "deserved": {"cpu": "100"},
                "guarantee": {"resource": {"cpu": "90"}},
            },
        },
        {
            "kind": "Queue",
            "metadata": {"name": "new"},
            "spec": {
                "parent": "research",
                "capability": {"cpu": "1000"},
                "guarantee": {"resource": {"cpu": "90"}},
            },
        },
    ]
    for path in (
        "forecast/",
        "validate/",
        "apply/?dry_run=true",
        "jobs/?dry_run=true",
        "queues/?dry_run=true",
    ):
        for body in documents:
            yield path, text(reader.post(f"/api/v1/{path}", body, content_type="application/json"))
    typed = {
        "name": "new",
        "parent": "research",
        "weight": "1",
        "guarantee:cpu": "90",
        "deserved:cpu": "100",
    }
    yield "queue check", text(reader.post("/queues/-/check/", typed))
    yield (
        "queue edit check",
        text(reader.post("/queues/-/check/", {**typed, "editing": "vision", "name": "vision"})),
    )
    for verb in ("cordon", "drain", "lose"):
        yield f"node {verb}", text(reader.get(f"/nodes/n1/{verb}/", follow=True))
        yield (
            f"node {verb}",
            text(
                reader.post(
                    f"/api/v1/nodes/n1/{verb}/?dry_run=true", {}, content_type="application/json"
                )
            ),
        )
    yield "bulk", text(reader.post("/queues/-/commands/", {"verb": "suspend", "names": ["vision"]}))


def searches(reader: Client) -> Iterator[tuple[str, str]]:
    """Others' names cannot be looked for either: an answer with rows would say that there are some.

    The word itself is echoed.
    """
    for name in COLLECTIONS:
        answer = reader.get(f"/api/v1/{name}/?search={SECRET}")
        yield f"{name}/?search", json.dumps(answer.json().get("results", []))


def live(name: str) -> Iterator[tuple[str, str]]:
    sight = access_of(person(name).user).visible
    wanted = [
        "queues",
        "jobs",
        "nodes",
        "cluster",
        "queue:vision",
        "queue:research",
        "queue:root",
        "job:default/train-1",
        "job:default/train-2",
    ]
    followed = [topic for topic in wanted if may_follow(sight, topic)]
    for topic, rows in read_topics(followed).items():
        for key, row in rows.items():
            yield f"topic {topic} {key}", as_seen(sight, topic, key, row) or ""


Walk = Callable[[str], Iterable[tuple[str, str]]]
WALKS: dict[str, Walk] = {
    "pages": lambda name: pages(signed_in(name)),
    "api": lambda name: api(signed_in(name)),
    "questions": lambda name: questions(signed_in(name)),
    "searches": lambda name: searches(signed_in(name)),
    "live": live,
}


@pytest.mark.parametrize("name", READERS)
def test_nothing_names_work_that_the_reader_may_not_see(name: str):
    walks = (told for walk in WALKS.values() for told in walk(name))
    told = [f"{place}: …{around}…" for place, words in walks for around in AROUND.findall(words)]

    assert not told, "\n".join(told)


def test_a_check_counts_the_pods_that_it_may_not_name():
    told = dict(questions(signed_in("sam")))

    assert "3 pods in queues that you may not see" in told["check"]
    assert "Starts when others have made room" in told["check"]


def test_an_admin_of_all_is_told_everything():
    """The walk can see what it looks for: as somebody who may, it finds the names in each kind of
    place.
    """
    for walk in ("pages", "api", "questions", "searches", "live"):
        assert any(SECRET in words for _, words in WALKS[walk]("admin")), walk
