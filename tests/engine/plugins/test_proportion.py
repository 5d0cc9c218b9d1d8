"""Proportion: what queues deserve by their weights, guarantees and capabilities."""

from __future__ import annotations

from tests.engine.builders import BASIC, cluster, cores, job, node, policy, queue, run

ONLY_SHARES = policy("", BASIC, ["proportion"])


def shares(total, *queues):
    """`queues` as (weight, request) with optional guarantee and capability: what each deserves,
    guarantees of all set aside first.
    """
    rows = [(*row, *(0, None)[len(row) - 2 :]) for row in queues]
    snapshot = cluster(
        nodes=[node("n1", cpu=total, memory="1Gi")],
        queues=[
            queue(f"q{i}", weight=row[0], guarantee=row[2] or None, capability=row[3])
            for i, row in enumerate(rows)
        ],
        jobs=[job(f"j{i}", f"q{i}", cpu=row[1]) for i, row in enumerate(rows) if row[1]],
    )
    return list(cores(run(snapshot, ONLY_SHARES)).values())


def test_e1_weights_divide_the_cluster():
    assert shares(100, (1, 100), (3, 100)) == [25, 75]


def test_e2_what_one_queue_does_not_ask_for_goes_to_the_others_by_weight():
    assert shares(100, (1, 10), (1, 60), (2, 100)) == [10, 30, 60]


def test_e4_a_capability_is_a_ceiling_and_the_rest_goes_to_the_others():
    assert shares(100, (1, 100, 0, 20), (1, 100)) == [20, 80]


def test_e5_the_guarantee_of_an_idle_queue_is_kept_from_all_others_together():
    assert shares(10, (1, 0, 4), (1, 100), (1, 100)) == [4, 3, 3]


def test_e6_a_guarantee_above_the_fair_share_is_taken_from_the_others():
    assert shares(10, (1, 10, 6), (1, 10), (1, 10)) == [6, 2, 2]


def test_e6b_a_guarantee_stays_whole_although_less_is_asked_for():
    assert shares(10, (1, 1, 6), (1, 100)) == [6, 4]


def gpus(*queues):
    """(name, weight, guarantee, capability, used): 30 GPUs on one node."""
    return cluster(
        nodes=[node("n1", cpu=100, gpu=30)],
        queues=[
            queue(
                name,
                weight,
                guarantee={"gpu": guarantee} if guarantee else None,
                capability={"gpu": most} if most else None,
            )
            for name, weight, guarantee, most, _ in queues
        ],
        jobs=[
            job(f"j-{name}", name, tasks=used, gpu=1, on="n1" if name != "q4" else None)
            for name, _, _, _, used in queues
        ],
    )


def test_e7_three_queues_share_thirty_gpus_evenly():
    outcome = run(
        gpus(("q1", 1, 5, None, 10), ("q2", 1, None, None, 10), ("q3", 1, None, 10, 10)),
        ONLY_SHARES,
    )

    assert cores(outcome, "real_capability", resource="nvidia.com/gpu") == {
        "q1": 30,
        "q2": 25,
        "q3": 10,
    }
    assert cores(outcome, resource="nvidia.com/gpu") == {"q1": 10, "q2": 10, "q3": 10}


def test_e7_a_fourth_queue_with_a_guarantee_puts_the_others_above_their_share():
    outcome = run(
        gpus(
            ("q1", 1, 5, None, 10),
            ("q2", 1, None, None, 10),
            ("q3", 1, None, 10, 10),
            ("q4", 2, 10, None, 12),
        ),
        ONLY_SHARES,
    )

    assert cores(outcome, "real_capability", resource="nvidia.com/gpu") == {
        "q1": 20,
        "q2": 15,
        "q3": 10,
        "q4": 25,
    }
    assert cores(outcome, resource="nvidia.com/gpu") == {"q1": 6, "q2": 6, "q3": 6, "q4": 12}
    assert [outcome.queues[name].overused for name in ("q1", "q2", "q3", "q4")] == [
        True,
        True,
        True,
        False,
    ]
