"""Which of several reasons is given, and when."""

from __future__ import annotations

from scheduler.domain.queues import QueueState
from scheduler.domain.reasons import ReasonCode
from scheduler.domain.workloads import Phase
from scheduler.engine import open_session
from scheduler.engine.presets import VOLCANO
from scheduler.engine.report.explain import explain
from tests.engine.builders import (
    CAPACITY,
    cluster,
    job,
    node,
    queue,
)
from tests.engine.report.explaining import explained


def test_a_job_that_has_to_go_says_so():
    broken = job("old", "q1", tasks=2, cpu=4, on="n1")
    given = {
        "nodes": [node("n1", cpu=8)],
        "queues": [queue("q1", deserved=4), queue("q2", deserved=4)],
    }
    found = explained(CAPACITY, "old", jobs=[broken, job("new", "q2", cpu=4)], **given)

    assert (found.code, found.figures) == (ReasonCode.AWAITING_EVALUATION, {"leaving": 2})
    assert (
        found.message
        == "2 of its pods are still leaving; it is looked at again when they are gone."
    )


def test_every_code_has_its_place_in_the_order_of_precedence():
    """A held job in a closed queue is on hold first of all."""
    given = {"nodes": [node("n1")], "queues": [queue("default", state=QueueState.CLOSED)]}

    assert explained(**given, jobs=[job("new", cpu=1, on_hold="x")]).code is ReasonCode.ON_HOLD
    assert (
        explained(**given, jobs=[job("new", tasks=1, min=9, cpu=1)]).code is ReasonCode.QUEUE_CLOSED
    )


def test_a_gang_that_has_no_pod_left_to_place_waits_for_its_own_pods_to_leave():
    """It was promised room for its fifth pod, and then lost the other four and was shed."""
    gang = job("a", tasks=5, gpu=1, on=[*["n1"] * 4, ""], phase=Phase.RUNNING)
    snapshot = cluster(nodes=[node("n1", gpu=4)], queues=[queue("default")], jobs=[gang])
    session = open_session(snapshot, VOLCANO)
    found = session.gang(0)
    with session.statement() as statement:
        for pod in range(4):
            statement.evict(found, pod, "shed", None)
        statement.pipeline(found, int(session.pod_classes[4]), [4], [0])
        statement.commit()
    found.phase = Phase.PENDING
    found.failed = "room"
    found.placeable = 4

    assert explain(session, found).code is ReasonCode.AWAITING_EVALUATION
