"""Logs that are followed: server-sent events of simulated pods, and who may have them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dashboard.http import log_stream
from scheduler.models import Job, Pod
from scheduler.services.cluster.log_following import PLACES
from scheduler.services.jobs.submit import submit_job
from tests.dashboard import work
from tests.worlds import manifest, node, pass_time, queue, run_session

pytestmark = pytest.mark.django_db

LOG = "/api/v1/pods/default/train-worker-0/log/"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(log_stream, "PAUSE_SECONDS", 0.0)


@pytest.fixture
def running() -> Job:
    """A gang of two in vision, owned by sam."""
    node("n1", cpu="8")
    queue("research")
    queue("vision", "research")
    work.people()
    made = submit_job(manifest("train", "vision", replicas=2), by=work.person("sam")).job
    run_session()
    pass_time(10)
    assert Pod.objects.filter(phase="Running").count() == 2
    return made


def events(answer: Any) -> list[tuple[str, dict[str, Any]]]:
    """Each event of a stream that has ended: its name and its data."""
    body = b"".join(answer.streaming_content).decode()
    found = []
    for block in body.split("\n\n"):
        fields = dict(
            line.split(": ", 1) for line in block.splitlines() if line[:1] not in ("", ":")
        )
        if fields:
            found.append((fields.get("event", ""), json.loads(fields["data"])))
    return found


def test_a_pod_is_followed_to_its_end_and_from_where_one_was(running):
    first = work.signed_in("sam").get(LOG).json()
    pass_time(120)

    seen = events(work.signed_in("sam").get(f"{LOG}follow/?lines=5000"))
    lines = [text for name, data in seen if not name for _, text in data["lines"]]
    position = next(data["position"] for name, data in seen if not name)
    again = events(work.signed_in("sam").get(f"{LOG}follow/", {"from": position}))

    assert lines[0].startswith("train-worker-0 starts on n1, container worker")
    assert set(first["log"].splitlines()) <= set(lines)
    assert lines[-1] == "bye"
    assert seen[-1] == (
        "end",
        {"reason": "ended", "message": "train-worker-0 has ended: it succeeded."},
    )
    assert [name for name, _ in again] == ["end"]
    assert PLACES.taken() == 0


def test_all_pods_of_a_job_are_followed_in_one_stream(running):
    pass_time(120)

    seen = events(work.signed_in("sam").get("/api/v1/jobs/default/train/log/follow/?task=worker"))

    assert {data["pod"] for name, data in seen if not name} == {"train-worker-0", "train-worker-1"}
    assert seen[-1] == (
        "end",
        {"reason": "ended", "message": "The job default/train has ended: Completed."},
    )


@pytest.mark.parametrize(
    "address", [LOG, f"{LOG}follow/", "/api/v1/jobs/default/train/log/follow/"]
)
def test_who_may_only_look_reads_no_log(running, address):
    answer = work.signed_in("vera").get(address)

    assert answer.status_code == 403
    assert "read the logs of a job that is not your own" in answer.json()["detail"]


def test_a_reader_follows_few_logs_at_once(running):
    client = work.signed_in("sam")
    streams = [client.get(f"{LOG}follow/") for _ in range(5)]

    refused = client.get(f"{LOG}follow/")

    assert refused.status_code == 429
    assert refused.json()["detail"] == "You follow 5 logs already. Close one of them first."
    for stream in streams:
        stream.close()
    assert PLACES.taken() == 0


def test_an_event_is_not_held_back_by_a_compressor(running):
    answer = work.signed_in("sam").get(f"{LOG}follow/", headers={"Accept-Encoding": "gzip"})

    assert not answer.has_header("Content-Encoding")
    assert answer["Content-Type"].startswith("text/event-stream")
    answer.close()


@pytest.mark.parametrize("asked", ["from=yesterday", "since=long", "lines=0", "nonsense=1"])
def test_what_cannot_be_read_is_named(running, asked):
    answer = work.signed_in("sam").get(f"{LOG}follow/?{asked}")

    assert answer.status_code == 400
    assert answer.json()["violations"][0]["field"] == asked.partition("=")[0]
