from __future__ import annotations

import io
from pathlib import Path

import pytest
from django.core.management import call_command

from scheduler.domain.mixes import MIXES, Target
from scheduler.engine.policy import Policy
from scheduler.engine.presets import DEFAULT_POLICY
from scheduler.models import ClusterState, Job, Queue, SimulatedCluster
from scheduler.services.demo.sample import load_sample_cluster
from scheduler.services.demo.workload import (
    HOPELESS_KEPT,
    Stream,
    continue_stream,
    current_stream,
    start_stream,
    stop_stream,
)
from scheduler.services.sessions.policies import policy_in_force
from tests.worlds import job, node, queue, run_session

pytestmark = [pytest.mark.django_db]


def run(*arguments: object, **options: object) -> str:
    out = io.StringIO()
    call_command("workload", *arguments, stdout=out, **options)
    return out.getvalue()


def refused(*arguments: object, **options: object) -> str:
    err = io.StringIO()
    with pytest.raises(SystemExit) as end:
        call_command("workload", *arguments, stdout=io.StringIO(), stderr=err, **options)
    assert end.value.code == 2
    return err.getvalue()


def let_pass(seconds: float) -> int:
    state = SimulatedCluster.objects.get(pk=1)
    SimulatedCluster.objects.filter(pk=1).update(clock=state.clock + seconds)
    return continue_stream()


@pytest.mark.parametrize("mix", MIXES)
def test_every_mix_makes_jobs_that_are_admitted(mix: str):
    queue("a")

    assert "20 of 20 jobs were submitted" in run(mix, count=20, at_once=True)
    assert Job.objects.count() == 20


def test_a_stream_submits_what_is_due_and_goes_on_where_it_stopped():
    start_stream(Stream("steady", rate=1.0, most_waiting=1000))

    first = let_pass(20)
    second = let_pass(20)

    assert first > 5
    assert second > 5
    assert Job.objects.count() == first + second == current_stream()["number"]


def test_made_up_users_withdraw_what_can_never_start_so_that_more_can_come():
    node("n1", cpu="64", memory="256Gi")
    queue("tiny", capability={"cpu": "500m"})
    job("somebodys-own", "tiny", cpu="4")
    start_stream(
        Stream("steady", rate=1.0, most_waiting=10, targets=[Target("tiny", takes_gpu=False)])
    )

    for _ in range(3):
        let_pass(30)
        run_session()
    came = let_pass(30)

    waiting = Job.objects.filter(phase="Pending")
    assert came > 0
    assert waiting.filter(podgroup__reason_code="ExceedsCapability").count() == HOPELESS_KEPT + 1
    assert waiting.filter(name="somebodys-own").exists()
    assert set(Job.objects.exclude(phase="Pending").values_list("phase", flat=True)) <= {
        "Terminated",
        "Terminating",
    }


def test_the_same_seed_makes_the_same_jobs():
    run("steady", count=5, at_once=True, seed=3)
    first = list(Job.objects.order_by("id").values_list("name", "queue__name", "tasks"))
    Job.objects.all().delete()

    run("steady", count=5, at_once=True, seed=3)

    assert list(Job.objects.order_by("id").values_list("name", "queue__name", "tasks")) == first


def test_a_stream_ends_after_its_count():
    start_stream(Stream("many-tiny-jobs", count=3, most_waiting=1000))

    let_pass(60)

    assert Job.objects.count() == 3
    assert current_stream() == {}


def test_a_stream_ends_after_its_duration():
    start_stream(Stream("many-tiny-jobs", rate=1.0, duration=5, most_waiting=1000))
    let_pass(10)
    before = Job.objects.count()

    let_pass(60)

    assert 0 < before == Job.objects.count()
    assert not stop_stream()


def test_jobs_are_passed_over_while_enough_wait():
    start_stream(Stream("many-tiny-jobs", most_waiting=5, targets=[Target("default")]))
    for _ in range(10):
        let_pass(10)

    assert Job.objects.count() == 5


def test_a_full_queue_does_not_keep_jobs_from_the_others():
    queue("full")
    queue("idle")
    for number in range(4):
        job(f"waits-{number}", "full")
    start_stream(
        Stream("many-tiny-jobs", rate=1.0, most_waiting=6, targets=[Target("full"), Target("idle")])
    )

    let_pass(60)

    assert Job.objects.filter(queue__name="full").count() == 4
    assert Job.objects.filter(queue__name="idle").count() == 3


def test_the_command_starts_tells_and_stops():
    queue("a")
    assert "From now on gpu-contention jobs are submitted." in run(
        "gpu-contention", rate=2.0, queues="a"
    )
    assert "Submitting now: gpu-contention, 2 jobs a second" in run()
    let_pass(10)
    assert set(Job.objects.values_list("queue__name", flat=True)) == {"a"}
    assert "No more jobs are submitted." in run(stop=True)
    assert "No jobs were being submitted." in run(stop=True)
    assert "60 simulated seconds" in run(speed=60.0)
    assert SimulatedCluster.objects.get(pk=1).speed == 60


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("stedy",), {}, "“stedy” is not a mix; there are steady, burst"),
        (("steady",), {"rate": 0.0}, "--rate is 0; it must be more than 0."),
        (("steady",), {"queues": "nowhere"}, "nowhere is no leaf queue; there are default."),
        ((), {"speed": 0.0}, "a speed of 0 is not possible; give 0.1 to 1000"),
        ((), {"csv": "/nowhere.csv"}, "/nowhere.csv cannot be read: No such file or directory."),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    arguments: tuple[str, ...],
    options: dict[str, object],
    message: str,
):
    assert message in refused(*arguments, **options)


def test_a_recorded_load_is_submitted_as_it_came(tmp_path: Path):
    Queue.objects.get(name="default")
    file = tmp_path / "Philly 2017.csv"
    file.write_text(
        "submit,tasks,cpu,duration,user,queue\n0,2,1,10,alice,default\n3,1,2,5,bob,elsewhere\n"
    )

    told = run(csv=str(file), faster=1000.0)

    assert "2 jobs were submitted, 0 refused." in told
    assert list(Job.objects.order_by("id").values_list("name", "owner")) == [
        ("philly-2017-0", "alice"),
        ("philly-2017-1", "bob"),
    ]


def test_a_recorded_load_with_a_mistake_is_not_begun(tmp_path: Path):
    file = tmp_path / "load.csv"
    file.write_text("submit,cpu,duration\n0,1,10\n3,lots,5\n")

    assert "line 3: cpu is “lots”" in refused(csv=str(file))
    assert not Job.objects.exists()


def test_the_sample_cluster_comes_with_work():
    load_sample_cluster()
    node("extra", cpu="8")

    result = run_session()

    assert len(result.written.bound) > 50
    assert current_stream()["mix"] == "steady"


def test_the_sample_cluster_has_the_default_policy_with_shorter_times():
    load_sample_cluster()

    policy = policy_in_force(ClusterState.objects.select_related("policy").get(pk=1))

    assert (policy.actions, policy.tiers) == (DEFAULT_POLICY.actions, DEFAULT_POLICY.tiers)
    changed = changed_settings(policy, DEFAULT_POLICY)
    assert changed == {
        ("preempt", "minRunSeconds"): 60,
        ("preempt", "patienceSeconds"): 120,
        ("reclaim", "minRunSeconds"): 60,
        ("reclaim", "patienceSeconds"): 120,
        ("reclaim", "shortRunWaitSeconds"): 720,
    }


def changed_settings(policy: Policy, other: Policy) -> dict[tuple[str, str], object]:
    return {
        (action, name): value
        for action, settings in policy.configurations.items()
        for name, value in settings.items()
        if other.configurations[action][name] != value
    }
