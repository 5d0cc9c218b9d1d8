"""The fake API server: the same conversations with it and with a real one, and its faults."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import urllib3

from tests.control_plane import objects
from tests.control_plane.api import Api, ApiError
from tests.control_plane.fake.faults import Answer, Broken, Expired, Late, Reset, Silent
from tests.control_plane.fake.server import FakeApiServer
from tests.control_plane.plane import ControlPlane

_QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
_GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
_BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
_NODES = "/api/v1/nodes"
_PODS = "/api/v1/namespaces/default/pods"
_OTHER_UID = "11111111-1111-1111-1111-111111111111"

Told = list[Any]  # what a client learns in a conversation, without what differs by chance


@pytest.fixture
def fake() -> Iterator[FakeApiServer]:
    with FakeApiServer() as server:
        yield server


def list_in_pages(api: Api) -> Told:
    for name in ("a", "b", "c", "d", "e"):
        api.post(_PODS, objects.pod(name))
    told: Told = []
    token = ""
    while True:
        page = api.get(f"{_PODS}?limit=2&continue={token}")
        names = [each["metadata"]["name"] for each in page["items"]]
        token = page["metadata"].get("continue", "")
        told.append([page["kind"], names, page["metadata"].get("remainingItemCount"), bool(token)])
        if not token:
            break
    from_cache = api.get(f"{_PODS}?limit=2&resourceVersion=0")
    told.append([len(from_cache["items"]), "continue" in from_cache["metadata"]])
    told.append(_refusal(lambda: api.get(f"{_PODS}?limit=2&continue=nonsense"), with_words=False))
    return told


def create_change_and_delete_a_queue(api: Api) -> Told:
    queue = f"{_QUEUES}/research"
    told = [_refusal(lambda: api.get(queue))]
    first = api.post(_QUEUES, objects.queue("research", weight=1))
    told.append(_refusal(lambda: api.post(_QUEUES, objects.queue("research"))))
    second = api.patch(queue, {"spec": {"weight": 2}})
    told.append([second["spec"]["weight"], second["metadata"]["generation"]])
    told.append(_refusal(lambda: api.put(queue, first)))
    old = {"metadata": {"resourceVersion": first["metadata"]["resourceVersion"]}}
    told.append(_refusal(lambda: api.patch(queue, {**old, "spec": {"weight": 3}})))
    same = api.patch(queue, {"spec": {"weight": 2}})
    told.append(same["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"])
    told.append(api.patch(queue, {"status": {"state": "Open"}}).get("status"))
    with_status = api.patch(f"{queue}/status", {"status": {"state": "Open"}, "spec": {"weight": 9}})
    told.append([with_status["status"], with_status["spec"]["weight"]])
    told.append(with_status["metadata"]["generation"])
    gone = api.delete(queue)
    told.append([gone["status"], gone["details"]["name"], gone["details"]["kind"]])
    told.append(_refusal(lambda: api.delete(queue)))
    return told


def change_the_status_of_a_podgroup(api: Api) -> Told:
    """A podgroup has no path for its status: it is a field as any other."""
    group = api.post(_GROUPS, {**objects.podgroup("gang"), "status": {"phase": "Pending"}})
    told = [group["status"]["phase"]]
    running = api.patch(f"{_GROUPS}/gang", {"status": {"phase": "Running"}})
    told.append([running["status"]["phase"], running["spec"]["minMember"]])
    told.append(_refusal(lambda: api.patch(f"{_GROUPS}/gang/status", {}), with_words=False))
    return told


def bind_pods(api: Api) -> Told:
    api.post(_NODES, objects.node("n1"))
    pod = api.post(_PODS, objects.pod("p1"))
    other = objects.binding("p1", "n1", uid=_OTHER_UID)
    told = [_refusal(lambda: api.post(f"{_PODS}/p1/binding", other), with_words=False)]
    good = objects.binding("p1", "n1", uid=pod["metadata"]["uid"])
    told.append(api.post(f"{_PODS}/p1/binding", good))
    told.append(_refusal(lambda: api.post(f"{_PODS}/p1/binding", good)))
    told.append(_pod(api.get(f"{_PODS}/p1")))
    nobody = objects.binding("p2", "n1")
    told.append(_refusal(lambda: api.post(f"{_PODS}/p2/binding", nobody)))
    api.post(_PODS, objects.pod("p3"))
    told.append(api.post(f"{_PODS}/p3/binding", objects.binding("p3", "no-such-node"))["code"])
    move = {"spec": {"nodeName": "n2"}}
    told.append(_refusal(lambda: api.patch(f"{_PODS}/p3", move), with_words=False))
    return told


def change_conditions_of_a_pod(api: Api) -> Told:
    api.post(_PODS, objects.pod("p1"))
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    api.patch(f"{_PODS}/p1/status", {"status": {"conditions": [waits]}}, "strategic")
    ready = {"type": "Ready", "status": "False"}
    api.patch(f"{_PODS}/p1/status", {"status": {"conditions": [ready]}}, "strategic")
    gone = {"status": {"conditions": [{"type": "PodScheduled", "reason": "QueueHeld"}]}}
    return [_pod(api.patch(f"{_PODS}/p1/status", gone, "strategic"))]


def delete_pods(api: Api) -> Told:
    for name in ("waiting", "bound"):
        api.post(_PODS, objects.pod(name))
    api.post(f"{_PODS}/bound/binding", objects.binding("bound", "n1"))
    wrong = {"preconditions": {"uid": _OTHER_UID}}
    told = [_refusal(lambda: api.delete(f"{_PODS}/waiting", wrong), with_words=False)]
    told.append(_pod(api.delete(f"{_PODS}/waiting")))
    told.append(_refusal(lambda: api.get(f"{_PODS}/waiting")))
    told.append(_pod(api.delete(f"{_PODS}/bound")))
    told.append(_pod(api.get(f"{_PODS}/bound")))
    told.append(_pod(api.delete(f"{_PODS}/bound", {"gracePeriodSeconds": 0})))
    told.append(_refusal(lambda: api.get(f"{_PODS}/bound")))
    return told


def evict_pods(api: Api) -> Told:
    api.post(_PODS, objects.pod("free"))
    told = [api.post(f"{_PODS}/free/eviction", _eviction("free"))]
    told.append(_refusal(lambda: api.get(f"{_PODS}/free")))
    told.append(_refusal(lambda: api.post(f"{_PODS}/free/eviction", _eviction("free"))))
    api.post(_BUDGETS, _budget("keep", app="web"))
    full = {"desiredHealthy": 1, "currentHealthy": 1, "disruptionsAllowed": 0, "expectedPods": 1}
    api.patch(f"{_BUDGETS}/keep/status", {"status": {"observedGeneration": 1, **full}})
    api.post(_PODS, objects.pod("kept", labels={"app": "web"}))
    api.post(f"{_PODS}/kept/binding", objects.binding("kept", "n1"))
    runs = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    api.patch(f"{_PODS}/kept/status", {"status": runs}, "strategic")
    told.append(_refusal(lambda: api.post(f"{_PODS}/kept/eviction", _eviction("kept"))))
    told.append(_pod(api.get(f"{_PODS}/kept")))
    return told


def watch_pods(api: Api) -> Told:
    api.post(_PODS, objects.pod("before"))
    revision = api.get(_PODS)["metadata"]["resourceVersion"]
    api.post(_PODS, objects.pod("p1"))
    api.post(f"{_PODS}/p1/binding", objects.binding("p1", "n1"))
    api.patch(f"{_PODS}/p1/status", {"status": {"phase": "Running"}})
    api.delete(f"{_PODS}/p1", {"gracePeriodSeconds": 0})
    events = api.watch(f"{_PODS}?watch=1&timeoutSeconds=1&resourceVersion={revision}")
    return _events(events)


def watch_from_the_start(api: Api) -> Told:
    for name in ("p1", "p2"):
        api.post(_PODS, objects.pod(name))
    question = "watch=1&timeoutSeconds=1&allowWatchBookmarks=true"
    told = [_events(api.watch(f"{_PODS}?{question}"))]
    told.append(_events(api.watch(f"{_PODS}?{question}&resourceVersion=0")))
    initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    told.append(_events(api.watch(f"{_PODS}?{question}&{initial}")))
    return told


def ask_for_what_is_not_there(api: Api) -> Told:
    nowhere = "/api/v1/namespaces/nowhere/pods"
    told = [api.get(nowhere)["items"]]
    told.append(_refusal(lambda: api.post(nowhere, objects.pod("p1"))))
    unknown = "/apis/nothing.example.com/v1/things"
    told.append(_refusal(lambda: api.get(unknown), with_words=False)[0])
    return told


CONVERSATIONS = (
    list_in_pages,
    create_change_and_delete_a_queue,
    change_the_status_of_a_podgroup,
    bind_pods,
    change_conditions_of_a_pod,
    delete_pods,
    evict_pods,
    watch_pods,
    watch_from_the_start,
    ask_for_what_is_not_there,
)


@pytest.mark.parametrize("hold", CONVERSATIONS, ids=lambda each: each.__name__)
def test_the_fake_answers_as_the_real_server_does(
    control_plane: ControlPlane, fake: FakeApiServer, hold: Callable[[Api], Told]
) -> None:
    assert hold(Api(fake.address)) == hold(control_plane.api)


def test_an_error_is_answered_as_planned_and_only_so_often(fake: FakeApiServer) -> None:
    api = Api(fake.address)
    fake.plan("GET", _PODS, Answer(500, "InternalError"), times=2)

    codes = [_code(lambda: api.get(_PODS)) for _ in range(3)]

    assert codes == [500, 500, 200]


def test_a_busy_server_says_when_to_come_back(fake: FakeApiServer) -> None:
    fake.plan("GET", "*", Answer(429, "TooManyRequests", retry_after=7))

    answer = urllib3.request("GET", fake.address + _PODS, retries=False)

    assert answer.status == 429
    assert answer.headers["Retry-After"] == "7"


@pytest.mark.parametrize("is_done", [False, True])
def test_a_connection_breaks_before_or_after_the_work(fake: FakeApiServer, is_done: bool) -> None:
    api = Api(fake.address)
    fake.plan("POST", _PODS, Reset(is_done=is_done))

    with pytest.raises(urllib3.exceptions.ProtocolError):
        api.post(_PODS, objects.pod("p1"))

    assert api.answers(f"{_PODS}/p1") is is_done


def test_a_late_answer_comes_after_the_client_has_given_up(fake: FakeApiServer) -> None:
    fake.plan("GET", _PODS, Late(seconds=30))

    with pytest.raises(urllib3.exceptions.ReadTimeoutError):
        urllib3.request("GET", fake.address + _PODS, retries=False, timeout=0.1)


def test_a_watch_expires_in_the_middle(fake: FakeApiServer) -> None:
    api = Api(fake.address)
    for name in ("p1", "p2"):
        api.post(_PODS, objects.pod(name))
    fake.plan("WATCH", _PODS, Expired(after_events=1))

    events = list(api.watch(f"{_PODS}?watch=1"))

    assert [each["type"] for each in events] == ["ADDED", "ERROR"]
    assert events[1]["object"]["code"] == 410


def test_a_watch_from_before_the_history_is_told_that_it_is_gone(fake: FakeApiServer) -> None:
    api = Api(fake.address)
    revision = api.get(_PODS)["metadata"]["resourceVersion"]
    api.post(_PODS, objects.pod("p1"))
    fake.store.forget_history()

    (event,) = api.watch(f"{_PODS}?watch=1&resourceVersion={revision}")

    assert event["object"]["reason"] == "Expired"


def test_a_watch_breaks_in_the_middle_of_an_event(fake: FakeApiServer) -> None:
    api = Api(fake.address)
    for name in ("p1", "p2"):
        api.post(_PODS, objects.pod(name))
    fake.plan("WATCH", _PODS, Broken(after_events=1))

    events = api.watch(f"{_PODS}?watch=1")

    assert next(events)["object"]["metadata"]["name"] == "p1"
    with pytest.raises(urllib3.exceptions.ProtocolError):
        next(events)


def test_a_silent_watch_tells_not_even_its_end(fake: FakeApiServer) -> None:
    Api(fake.address).post(_PODS, objects.pod("p1"))
    fake.plan("WATCH", _PODS, Silent())
    path = f"{fake.address}{_PODS}?watch=1&timeoutSeconds=1"

    answer = urllib3.request("GET", path, preload_content=False, retries=False, timeout=1.5)

    with pytest.raises(urllib3.exceptions.ReadTimeoutError):
        answer.read()


def test_a_watch_tells_what_happens_while_it_is_open(fake: FakeApiServer) -> None:
    api = Api(fake.address)
    revision = api.get(_PODS)["metadata"]["resourceVersion"]
    events = api.watch(f"{_PODS}?watch=1&resourceVersion={revision}")
    maker = threading.Thread(target=lambda: (time.sleep(0.1), api.post(_PODS, objects.pod("p1"))))

    maker.start()
    event = next(events)
    maker.join()
    events.close()

    assert event["object"]["metadata"]["name"] == "p1"


def test_requests_are_kept_for_the_test_to_look_at(fake: FakeApiServer) -> None:
    Api(fake.address).get(f"{_PODS}?limit=500")

    assert fake.requests == [("GET", f"{_PODS}?limit=500")]


def _refusal(ask: Callable[[], Any], *, with_words: bool = True) -> Told:
    try:
        ask()
    except ApiError as refused:
        status = refused.status
        if not with_words:
            return [refused.code, status.get("reason")]
        return [refused.code, status.get("reason"), status["message"], status.get("details")]
    return ["not refused"]


def _code(ask: Callable[[], Any]) -> int:
    try:
        ask()
    except ApiError as refused:
        return refused.code
    return 200


def _pod(pod: dict[str, Any]) -> Told:
    conditions = [
        (each["type"], each["status"], each.get("reason"))
        for each in pod["status"].get("conditions", [])
    ]
    return [
        pod["kind"],
        pod["metadata"]["name"],
        pod["metadata"]["namespace"],
        pod["metadata"].get("deletionGracePeriodSeconds"),
        pod["spec"].get("nodeName"),
        pod["spec"]["schedulerName"],
        pod["status"]["phase"],
        sorted(conditions),
    ]


def _events(events: Iterator[dict[str, Any]]) -> Told:
    told: Told = []
    for event in events:
        metadata = event["object"]["metadata"]
        if event["type"] != "BOOKMARK":
            told.append([event["type"], *_pod(event["object"])])
        elif "annotations" in metadata:  # others come when the server likes
            told.append([event["type"], event["object"]["kind"], metadata["annotations"]])
    return told


def _eviction(name: str) -> dict[str, Any]:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}


def _budget(name: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
    }
