"""Logs that are followed: no line twice, none left out without a word, and an end with a reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scheduler.models import Grant, Pod
from scheduler.selectors.jobs.log_pods import LogPods
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.accounts.grants import grant_role
from scheduler.services.cluster import api_server, log_following
from scheduler.services.cluster.log_following import End, Following, Places, Remark
from scheduler.services.cluster.nodes import drain_node
from scheduler.services.cluster.pod_logs import LogQuestion, read_log
from scheduler.services.jobs.submit import command_job, submit_job
from tests.control_plane.fake.faults import Answer
from tests.scheduled import PODS, ScheduledCluster, scheduled_cluster
from tests.services.cluster.test_job_writes import ANN
from tests.worlds import manifest, node, pass_time, run_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ScheduledCluster]:
    """A real one, as far as the requests go: one pod runs."""
    with scheduled_cluster(tmp_path) as running:
        running.has_gang("gang", 1)
        becomes(running, {"phase": "Running"})
        yield running
    api_server._client.cache_clear()


def becomes(cluster: ScheduledCluster, status: dict[str, Any]) -> None:
    def change(pod: dict[str, Any]) -> dict[str, Any]:
        return {**pod, "spec": {**pod["spec"], "nodeName": "n1"}, "status": status}

    cluster.server.store.change(PODS, "default", "gang-0", change)
    cluster.tells()


def following(name: str = "gang-0", by: Actor = ANN, **asked: Any) -> Following:
    pod = Pod.objects.get(name=name)
    return Following(by, LogPods(pod.podgroup_id, pod=name), LogQuestion(**asked))


def texts(pieces: list[Any]) -> list[str]:
    return [line.text for piece in pieces for line in piece.lines]


def test_lines_of_one_moment_come_once_each(cluster):
    at = "2026-11-18T04:00:00.000000007Z"
    cluster.server.logs["gang-0"] = f"{at} a\n{at} b\n"
    follow = following()
    first = follow.look()

    cluster.server.logs["gang-0"] += f"{at} c\n2026-11-18T04:00:00.000000008Z d\n"

    assert texts(first) == ["a", "b"]
    assert texts(follow.look()) == ["c", "d"]
    assert follow.look() == []


def test_a_pod_that_writes_too_much_is_followed_in_parts_and_what_is_missing_is_told(cluster):
    cluster.server.logs["gang-0"] = "2026-11-18T04:00:00Z begin\n"
    follow = following()
    follow.look()
    line = "2026-11-18T04:00:{:02}.{:09}Z " + "x" * 60
    late = [line.format(second, number) for second in (1, 2) for number in range(6000)]
    cluster.server.logs["gang-0"] += "\n".join(late)

    pieces = follow.look()

    assert [piece.left_out for piece in pieces] == [True]
    assert sum(len(text) + 1 for text in texts(pieces)) <= log_following.MOST_BYTES_A_LOOK
    assert [piece.left_out for piece in follow.look()] == [False]


def test_a_server_that_is_away_is_asked_again_and_then_it_ends(cluster):
    cluster.server.logs["gang-0"] = "begin\n"
    follow = following()
    follow.look()

    cluster.server.plan("GET", "*/log*", Answer(503, "ServiceUnavailable", "etcd is away"))
    told = follow.look()
    cluster.server.logs["gang-0"] += "end\n"
    after = follow.look()
    for _ in range(5):
        cluster.server.plan("GET", "*/log*", Answer(503, "ServiceUnavailable", "etcd is away"))
    pieces = [piece for _ in range(5) for piece in follow.look()]

    assert isinstance(told[0], Remark)
    assert texts(after) == ["end"]
    assert pieces[-1] == End("away", "The API server has no log of gang-0: etcd is away")


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"phase": "Succeeded"}, "gang-0 has ended: it succeeded."),
        ({"phase": "Failed"}, "gang-0 has ended: it failed."),
    ],
)
def test_it_ends_with_the_pod_after_its_last_line(cluster, status, words):
    follow = following()
    follow.look()
    cluster.server.logs["gang-0"] = "last words\n"
    becomes(cluster, status)

    pieces = follow.look()

    assert texts(pieces[:1]) == ["last words"]
    assert pieces[1:] == [End("ended", words)]


def test_it_ends_where_the_pod_is_deleted(cluster):
    follow = following()
    follow.look()
    cluster.loses_pod("gang-0")
    cluster.tells()

    assert follow.look() == [End("deleted", "gang-0 was deleted.")]


def test_who_loses_the_right_reads_no_more(cluster, django_user_model):
    user = django_user_model.objects.create_user("olga")
    grant_role(user="olga", role="admin", queue="root", by=SYSTEM)
    cluster.server.logs["gang-0"] = "begin\n"
    follow = following(by=Actor("olga", user=user))
    assert texts(follow.look()) == ["begin"]

    Grant.objects.all().delete()
    cluster.server.logs["gang-0"] += "secret\n"

    assert follow.look() == [End("rights", "You may no longer read these logs.")]


def test_it_does_not_go_on_for_ever(cluster):
    now = 0.0
    pod = Pod.objects.get()
    pods = LogPods(pod.podgroup_id, pod=pod.name)
    follow = Following(ANN, pods, LogQuestion(), clock=lambda: now)

    now = log_following.MOST_SECONDS + 1.0

    assert [piece.reason for piece in follow.look()] == ["time"]


def test_places_are_few_for_one_and_limited_for_all():
    places = Places(3, 2)

    assert [places.take("ann"), places.take("ann")] == ["", ""]
    assert "You follow 2 logs already" in places.take("ann")
    assert places.take("bob") == ""
    assert "3 logs are followed already" in places.take("eve")
    places.give_back("ann")
    assert places.take("eve") == ""


# The simulated cluster


def simulated(name: str = "train", **shape: Any) -> Pod:
    node("n1", cpu="8")
    submit_job(manifest(name, **shape))
    run_session()
    pass_time(10)
    return Pod.objects.select_related("podgroup__queue").get()


def test_a_simulated_pod_tells_the_same_whoever_asks_and_whenever():
    pod = simulated(seconds=30, exit_code=3)
    early = read_log(ANN, pod).text
    pass_time(60)
    pod = Pod.objects.select_related("podgroup__queue").get()

    whole = read_log(ANN, pod)

    assert early.startswith("train-worker-0 starts on n1")
    assert whole.text.startswith(early)
    assert whole.text.endswith("exit code 3\n")
    assert read_log(ANN, pod, LogQuestion(lines=1)).lines == whole.lines[-1:]
    assert [line.stamp for line in whole.lines] == sorted(line.stamp for line in whole.lines)


def test_a_simulated_pod_that_is_evicted_says_so_and_waits_again():
    pod = simulated(seconds=600)
    follow = following(pod.name)
    follow.look()

    drain_node("n1")
    run_session()
    leaving = follow.look()
    pass_time(20)
    gone = follow.look()

    assert texts(leaving)[-1].startswith("SIGTERM: stops at step")
    assert gone == [End("evicted", "train-worker-0 was evicted, and waits for a place again.")]


def test_following_a_job_ends_when_it_is_cancelled_and_its_pods_are_gone():
    pod = simulated(seconds=600)
    gang = LogPods(pod.podgroup_id)
    follow = Following(ANN, gang, LogQuestion())
    follow.look()

    command_job("default", "train", "Cancel")
    run_session()
    pass_time(60)
    run_session()
    last = follow.look()

    assert not Pod.objects.exists()
    the_end = End("ended", "The job default/train has ended: Terminated.")
    assert last == [Remark(pod.name, "train-worker-0 was deleted."), the_end]
    assert Following(ANN, gang, LogQuestion()).look() == [the_end]
