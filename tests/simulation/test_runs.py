"""A cluster run forward in simulated time.

What is measured is what happened, and twice the same.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.domain.resources import Resources
from scheduler.domain.workloads import Phase
from scheduler.engine.presets import BOUND, FUMAROLE, PRESETS
from scheduler.scenarios.clusters import Cluster
from scheduler.scenarios.files import read_file, read_scenarios
from scheduler.simulation.loads import LoadJob, drawn_load, load_targets
from scheduler.simulation.runs import PERIOD, LoadRun, run_load, run_to_rest
from scheduler.simulation.world import START_DELAY

GPU = "nvidia.com/gpu"


def small(queues: str = "- {name: q1}\n") -> Cluster:
    text = f"""
name: small
nodes:
- {{name: n1, allocatable: {{cpu: 8, memory: 32Gi, {GPU}: 4, pods: 110}}}}
queues:
{queues}"""
    return read_scenarios(text, "small")[0].cluster


def one(name, at=0.0, tasks=1, gpu=4, seconds=10.0, queue="q1", minimum=None):
    request = Resources.parse({"cpu": "1", GPU: str(gpu)})
    return LoadJob(f"default/{name}", queue, at, tasks, minimum or tasks, request, seconds)


def test_a_job_that_runs_to_its_end_is_useful():
    figures = run_load(small(), BOUND, [one("a", seconds=10.0)], 20.0).document()

    assert (figures["jobs"], figures["finished"], figures["binds"], figures["evictions"]) == (
        1,
        1,
        1,
        0,
    )
    assert figures["useful"][GPU] == pytest.approx(10 / 20)
    assert figures["held"][GPU] == pytest.approx((10 + START_DELAY) / 20)
    assert figures["waits"]["all"] == {"count": 1, "p50": 0.0, "p95": 0.0, "max": 0.0}


def test_a_job_waits_for_the_one_before_it():
    figures = run_load(small(), BOUND, [one("a"), one("b", at=1.0)], 60.0).document()

    assert figures["finished"] == 2
    assert figures["waits"]["all"]["max"] == pytest.approx(10 + START_DELAY - 1, abs=1.0)


def test_while_nobody_waits_a_session_runs_for_each_arrival_alone():
    jobs = [one("a", seconds=500.0, gpu=1), one("b", at=90.0, seconds=500.0, gpu=1)]
    run = LoadRun(small(), FUMAROLE, jobs, 300.0, PERIOD, None)

    measures = run.run()

    assert (measures.sessions, measures.binds) == (2, 2)
    phases = run.world.snapshot.groups.phase[run.world.snapshot.groups.alive]
    assert phases.tolist() == [Phase.RUNNING, Phase.RUNNING]


def test_a_gang_that_was_admitted_and_found_no_room_needs_no_second_session():
    jobs = [one("a", seconds=500.0), one("b", at=90.0)]

    measures = LoadRun(small(), FUMAROLE, jobs, 300.0, PERIOD, None).run()

    assert (measures.sessions, measures.binds) == (2, 1)


def test_the_parts_of_a_run_add_up_to_what_the_processor_did():
    figures = run_load(small(), FUMAROLE, [one("a")], 20.0).document()

    parts = figures["cpuSecondsByPart"]
    assert {"allocate", "reclaim", "between sessions", "carrying out"} <= set(parts)
    assert sum(parts.values()) == pytest.approx(figures["cpuSeconds"], abs=0.01)


def test_who_has_not_started_counts_with_the_time_waited_so_far():
    figures = run_load(small(), BOUND, [one("a", seconds=500.0), one("b", gpu=2)], 100.0).document()

    assert figures["waits"]["notStarted"] == 1
    assert figures["waits"]["all"]["max"] == pytest.approx(100.0)


def test_what_an_evicted_pod_had_done_is_lost_and_it_comes_back():
    queues = f"- {{name: q1, deserved: {{{GPU}: 2}}}}\n- {{name: q2, deserved: {{{GPU}: 2}}}}\n"
    impatient = replace(FUMAROLE, configurations={"reclaim": {"wholeGangs": True}})
    jobs = [
        one("a", tasks=4, gpu=1, minimum=2, seconds=300.0),
        one("b", at=50.0, tasks=2, gpu=1, queue="q2", seconds=30.0),
    ]

    figures = run_load(small(queues), impatient, jobs, 900.0).document()

    assert figures["evictionsByAction"] == {"reclaim": 2}
    assert figures["mostEvicted"] == 1
    assert figures["lost"][GPU] == pytest.approx(2 * 49 / (4 * 900), abs=0.002)
    assert figures["finished"] == 2
    assert figures["waits"]["byQueue"]["q2"]["max"] <= 5.0


def test_the_same_load_gives_the_same_run():
    cluster = read_file("examples/sample-cluster.yaml", str)[0].cluster
    jobs = drawn_load("steady", cluster, seconds=60.0, seed=3)

    first, second = (run_load(cluster, FUMAROLE, jobs, 60.0).document() for _ in range(2))

    timing = {"cpuSeconds", "cpuSecondsByPart"}
    assert {key: first[key] for key in first.keys() - timing} == {
        key: second[key] for key in second.keys() - timing
    }
    assert first["binds"] > 50


@pytest.mark.parametrize("policy", sorted(PRESETS))
def test_nothing_is_counted_twice(policy):
    """What is held is at most all there is; what is useful or lost was held."""
    cluster = read_file("examples/sample-cluster.yaml", str)[0].cluster
    figures = run_load(
        cluster, PRESETS[policy], drawn_load("steady", cluster, seconds=120.0, seed=5), 120.0
    ).document()

    for resource, held in figures["held"].items():
        assert figures["useful"][resource] + figures["lost"][resource] <= held <= 1.0
    assert figures["jobs"] >= figures["finished"]
    assert figures["waits"]["all"]["count"] == figures["jobs"]


def test_a_resource_that_no_node_has_is_never_given():
    strange = LoadJob(
        "default/a", "q1", 0.0, 1, 1, Resources.parse({"example.com/thing": "1"}), 10.0
    )

    figures = run_load(small(), BOUND, [strange], 30.0).document()

    assert figures["binds"] == 0


def test_jobs_of_a_mix_go_to_the_queues_that_the_file_names():
    cluster = read_file("examples/sample-cluster.yaml", str)[0].cluster

    targets = {target.queue: target for target in load_targets(cluster)}

    assert set(targets) == {
        "etl",
        "vision",
        "language",
        "sandbox",
        "serving",
        "reports",
        "adhoc",
        "batch",
    }
    assert not targets["etl"].takes_gpu
    assert {job.queue for job in drawn_load("steady", cluster, seconds=200.0, seed=7)} <= set(
        targets
    )


def test_without_targets_a_queue_with_gpus_of_its_own_takes_the_jobs_that_ask_for_them():
    cluster = small(f"- {{name: q1, deserved: {{{GPU}: 4}}}}\n- {{name: q2}}\n")

    assert {
        target.queue: (target.takes_gpu, target.takes_cpu) for target in load_targets(cluster)
    } == {
        "q1": (True, False),
        "q2": (False, True),
    }


def test_a_cluster_without_work_is_at_rest_at_once():
    assert run_to_rest(small(), FUMAROLE, 3).document() == {"after": 0, "evictions": [0, 0, 0]}


def test_a_pod_that_is_being_evicted_at_the_start_leaves_and_waits_again():
    text = f"""
name: small
nodes:
- {{name: n1, allocatable: {{cpu: 8, memory: 32Gi, {GPU}: 4, pods: 110}}}}
queues: [{{name: q1}}]
podgroups: [{{name: a, queue: q1, phase: Running}}]
pods: [{{name: a-0, podgroup: a, node: n1, phase: Releasing, requests: {{{GPU}: 4}}}}]
"""
    cluster = read_scenarios(text, "small")[0].cluster

    assert run_to_rest(cluster, FUMAROLE, 5).after == 2


def test_the_end_of_a_pod_that_nobody_waits_for_needs_no_session():
    jobs = [one(f"job-{number}", gpu=1, seconds=20.0 + 5 * number) for number in range(4)]

    measures = run_load(small(), BOUND, jobs, 60.0)

    assert measures.document()["finished"] == 4
    assert measures.sessions <= 3


@pytest.mark.parametrize(("asks", "unmet"), [(2, 1.0), (3, 0.0)])
def test_a_due_is_unmet_only_if_a_gang_waits_that_would_be_within_it(asks, unmet):
    """q2 asks for its two GPUs and has none of them; a gang of three would have more than that."""
    queues = f"- {{name: q1, deserved: {{{GPU}: 2}}}}\n- {{name: q2, deserved: {{{GPU}: 2}}}}\n"
    jobs = [one("a", seconds=500.0), one("b", at=0.5, gpu=asks, queue="q2")]

    figures = run_load(small(queues), BOUND, jobs, 100.0).document()

    assert figures["shortfall"]["q2"] == pytest.approx(1.0)
    assert figures["dueUnmet"]["q2"] == pytest.approx(unmet)
