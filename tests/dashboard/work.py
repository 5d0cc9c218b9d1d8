"""A small cluster at work, and four people: admin, queue admin of research, submitter to vision,
viewer of vision.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.test import Client

from dashboard.http.log_stream import EVENT_STREAM
from scheduler.domain.access import Role
from scheduler.models import Grant, Queue
from scheduler.services.accounts.actors import Actor, Door
from scheduler.services.demo.setup import ensure_builtin_objects
from scheduler.services.jobs.submit import submit_job
from scheduler.services.queues.states import refresh_states
from scheduler.services.sessions.runner import SessionRunner
from tests.worlds import manifest, node, pass_time, queue, run_session

PASSWORD = "a long password"
PEOPLE = {
    "admin": None,
    "ruth": (Role.ADMIN, "research"),
    "sam": (Role.SUBMITTER, "vision"),
    "vera": (Role.VIEWER, "vision"),
}


def people() -> None:
    model = get_user_model()
    quick = PBKDF2PasswordHasher().encode(
        PASSWORD, "salt", iterations=1
    )  # a real hash costs half a second each
    for name, granted in PEOPLE.items():
        user = model.objects.create(
            username=name,
            password=quick,
            is_superuser=granted is None,
            is_staff=granted is None,
        )
        if granted:
            Grant.objects.create(
                user=user,
                role=granted[0].value,
                queue=Queue.objects.get(name=granted[1]),
            )


def signed_in(name: str) -> Client:
    client = Client()
    client.force_login(get_user_model().objects.get(username=name))
    return client


def person(name: str) -> Actor:
    return Actor(name, Door.UI, get_user_model().objects.get(username=name))


def submitted(name: str, in_queue: str, by: str, **shape: Any) -> None:
    """As somebody's own; `by` need not have an account."""
    submit_job(manifest(name, in_queue, seconds=100_000, **shape), by=Actor(by, Door.SYSTEM))


def small_cluster() -> None:
    """research (vision, language) and batch on two nodes of 8 CPU.

    Sam runs one job, one waits, others have theirs.
    """
    ensure_builtin_objects()
    node("n1", cpu="8", memory="32Gi")
    node("n2", cpu="8", memory="32Gi")
    queue("research", deserved={"cpu": "12"})
    queue("vision", "research", deserved={"cpu": "8"}, capability={"cpu": "12"})
    queue("language", "research", deserved={"cpu": "4"})
    queue("batch", deserved={"cpu": "4"})
    refresh_states()
    people()
    submitted("train-1", "vision", "sam", replicas=4, least=2)
    submitted("train-2", "vision", "sam", replicas=20, cpu="2")
    submitted("label", "language", "lena", replicas=2)
    submitted("nightly", "batch", "bert", replicas=2)
    runner = SessionRunner("test")
    run_session(runner)
    pass_time(10)
    run_session(runner)


def text(answer: Any) -> str:
    """As it came. Of a page, line breaks and indents count as one space each, as in a browser."""
    whole = str(_content(answer).decode())
    if not answer.headers.get("Content-Type", "").startswith("text/html"):
        return whole
    return " ".join(whole.split())


def _content(answer: Any) -> bytes:
    """Of a log that is followed, the first look: it has no end."""
    if not answer.streaming:
        return bytes(answer.content)
    if answer.headers["Content-Type"].startswith(EVENT_STREAM):
        begin = b"".join(islice(answer.streaming_content, 2))
        answer._iterator.close()  # as the client does it at the end: the database stays open
        return begin
    return bytes(answer.getvalue())


def job_names(answer: Any) -> list[str]:
    """Of the rows of the table of jobs."""
    return sorted(row["name"] for row in answer.context["rows"])
