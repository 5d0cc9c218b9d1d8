"""Who is starved, and of what: the resource that keeps its jobs waiting, and only jobs that could
run.
"""

from __future__ import annotations

import pytest

from dashboard.present.queues import present_queues
from dashboard.present.starvation import starved
from dashboard.views.overview import cluster_bars
from scheduler.selectors.queues.listing import queue_rows
from scheduler.services.jobs.submit import submit_job
from scheduler.services.sessions.policies import replace_policy
from scheduler.services.sessions.runner import SessionRunner
from tests.worlds import manifest, node, pass_time, queue, run_session

pytestmark = pytest.mark.django_db

GPU = "nvidia.com/gpu"
WITHOUT_RECLAIM = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: predicates
  - {name: capacity, enabledHierarchy: true}
  - name: nodeorder
"""


def submit(name: str, in_queue: str, *, replicas: int, cpu: str, gpu: str) -> None:
    asked = manifest(name, in_queue, replicas=replicas, cpu=cpu, seconds=100_000)
    asked["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"]["requests"][GPU] = (
        gpu
    )
    submit_job(asked)


@pytest.fixture
def runner() -> SessionRunner:
    """hungry and greedy deserve half of a machine each; greedy has all its gpus and little else."""
    replace_policy(WITHOUT_RECLAIM)
    node("n1", cpu="64", gpu="8")
    for name in ("hungry", "greedy"):
        queue(name, deserved={"cpu": "32", GPU: "4"})
    runner = SessionRunner("test")
    submit("hog", "greedy", replicas=8, cpu="1", gpu="1")
    run_session(runner)
    pass_time(10)
    return runner


def test_the_resource_that_keeps_jobs_waiting_is_named_and_no_other(runner: SessionRunner):
    """It has none of the 32 cores that it deserves either, and a gap there is as wide: but cores
    are free.
    """
    submit("train", "hungry", replicas=2, cpu="16", gpu="1")
    run_session(runner)

    (line,) = starved(queue_rows())

    assert (line["name"], line["gap"], line["text"]) == ("hungry", "2 GPU", "0 of 4 GPU deserved")
    assert present_queues(queue_rows())["hungry"]["starved"]


def test_jobs_that_can_never_run_starve_nobody_and_ask_for_nothing(runner: SessionRunner):
    submit("absurd", "hungry", replicas=1, cpu="1", gpu="100")
    submit("too-many", "hungry", replicas=9, cpu="16", gpu="1")
    run_session(runner)

    assert starved(queue_rows()) == []
    asked = {bar["name"]: bar["pending"] for bar in cluster_bars(queue_rows())}
    assert (asked["cpu"], asked[GPU]) == ("0", "0")
