"""Several clients at once against the real web process: repeats, conflicts, limits, pages,
compressed answers.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.running import Running

pytestmark = pytest.mark.processes

AT_ONCE = 20
TASKS = [{"name": "t", "replicas": 1, "template": {"spec": {"containers": []}}}]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(
        tmp_path_factory.mktemp("clients") / "var", API_ANONYMOUS_RATE_PER_MINUTE="40"
    ) as running:
        yield running


@pytest.fixture
def api(site: Running) -> Iterator[httpx.Client]:
    token = (site.var / "cli-token").read_text().strip()
    with httpx.Client(
        base_url=f"{site.address}/api/v1/", headers={"Authorization": f"Bearer {token}"}, timeout=60
    ) as client:
        yield client


def at_once(ask: Callable[[int], httpx.Response]) -> list[httpx.Response]:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(ask, range(AT_ONCE)))


def repeated_at_once(api: httpx.Client, where: str, body: Any) -> list[httpx.Response]:
    key = str(uuid4())
    return at_once(lambda _: api.post(where, json=body, headers={"Idempotency-Key": key}))


@pytest.mark.parametrize(
    ("where", "body"),
    [
        ("queues/", {"metadata": {"name": "once"}}),
        ("jobs/", {"metadata": {"name": "once"}, "spec": {"tasks": TASKS}}),
        ("commands/", {"action": "SuspendQueue", "target": {"kind": "Queue", "name": "default"}}),
        ("queues/", {"metadata": {"name": "root"}}),  # a refusal is repeated too
    ],
)
def test_a_request_repeated_at_once_is_carried_out_once(api: httpx.Client, where: str, body: Any):
    answers = repeated_at_once(api, where, body)

    assert len({(answer.status_code, answer.text) for answer in answers}) == 1
    assert Counter(answer.headers.get("Idempotent-Replayed") for answer in answers) == {
        "true": AT_ONCE - 1,
        None: 1,
    }


def test_a_token_asked_for_several_times_at_once_is_shown_to_one(api: httpx.Client):
    answers = repeated_at_once(api, "tokens/", {"name": "once", "scopes": ["read"]})

    bodies = [answer.json() for answer in answers]
    assert len({body["metadata"]["name"] for body in bodies}) == 1
    assert [bool(body["token"]) for body in bodies].count(True) == 1
    assert all(
        bool(body["token"]) != ("Idempotent-Replayed" in answer.headers)
        for body, answer in zip(bodies, answers, strict=True)
    )


def test_of_several_who_change_what_they_read_one_wins_and_the_others_are_told_by_whom(
    api: httpx.Client,
):
    api.post("queues/", json={"metadata": {"name": "wanted"}}).raise_for_status()
    read = api.get("queues/wanted/", headers={"Accept-Encoding": "gzip"})

    answers = at_once(
        lambda number: api.patch(
            "queues/wanted/",
            json={"spec": {"weight": number + 2}},
            headers={"If-Match": read.headers["ETag"]},
        )
    )

    assert Counter(answer.status_code for answer in answers) == {200: 1, 412: AT_ONCE - 1}
    won = next(answer.json()["spec"]["weight"] for answer in answers if answer.status_code == 200)
    assert api.get("queues/wanted/").json()["spec"]["weight"] == won
    assert all(
        "changed by admin" in answer.json()["detail"]
        for answer in answers
        if answer.status_code == 412
    )


def test_pages_hold_while_another_client_writes(api: httpx.Client):
    staying = {f"stay-{number}" for number in range(0, 60, 2)}
    api.post(
        "namespaces/", json=[{"metadata": {"name": name}} for name in staying]
    ).raise_for_status()
    stop = threading.Event()

    def write() -> None:
        number = 1
        while not stop.is_set():
            api.post("namespaces/", json={"metadata": {"name": f"stay-{number % 60}x"}})
            api.delete(f"namespaces/stay-{(number - 8) % 60}x/")
            number += 2

    writer = threading.Thread(target=write)
    writer.start()
    try:
        walks = [
            _walked(api, f"namespaces/?page_size=4&ordering={ordering}")
            for ordering in ("name", "-name", "created", "-created")
        ]
    finally:
        stop.set()
        writer.join()

    for seen in walks:
        assert [name for name, times in Counter(seen).items() if times > 1] == []
        assert staying <= set(seen)


def _walked(api: httpx.Client, where: str | None) -> list[str]:
    seen: list[str] = []
    while where:
        page = api.get(where).raise_for_status().json()
        seen += [found["metadata"]["name"] for found in page["results"]]
        where = page["next"]
    return seen


def test_who_asks_too_often_is_told_when_to_come_back(site: Running):
    answers = [httpx.get(f"{site.address}/api/v1/queues/") for _ in range(100)]

    refused = [answer for answer in answers if answer.status_code == 429]
    assert {answer.status_code for answer in answers} == {401, 429}
    for answer in refused:
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.headers["RateLimit-Limit"] == "40"
        assert answer.headers["RateLimit-Remaining"] == "0"
        assert 1 <= int(answer.headers["Retry-After"]) <= 61
        assert (answer.json()["status"], answer.json()["title"]) == (429, "Too many requests")
        assert answer.headers["X-Request-ID"]


def test_answers_are_compressed_for_those_who_take_it(api: httpx.Client):
    api.post(
        "queues/", json=[{"metadata": {"name": f"long-{number}"}} for number in range(20)]
    ).raise_for_status()

    packed, plain = (
        api.get("queues/", headers={"Accept-Encoding": coding}) for coding in ("gzip", "identity")
    )

    assert (packed.headers.get("Content-Encoding"), plain.headers.get("Content-Encoding")) == (
        "gzip",
        None,
    )
    assert {found["metadata"]["name"] for found in packed.json()["results"]} == {
        found["metadata"]["name"] for found in plain.json()["results"]
    }
    assert "Accept-Encoding" in packed.headers["Vary"]
    head = api.head("queues/")
    assert (head.status_code, head.content) == (200, b"")


def test_a_list_of_many_is_made_with_a_result_for_each(api: httpx.Client):
    jobs = [
        {"metadata": {"name": f"many-{number % 250}"}, "spec": {"tasks": TASKS}}
        for number in range(300)
    ]

    answer = api.post("jobs/", json=jobs, timeout=300).raise_for_status().json()

    assert Counter(result["status"] for result in answer["results"]) == {201: 250, 409: 50}
    assert [result["index"] for result in answer["results"]] == list(range(300))
