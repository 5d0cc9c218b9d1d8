"""What a pod takes on its node: Kubernetes' own rules, by example and for random pods."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.domain.pod_requests import InitContainer, pod_requests
from scheduler.domain.resources import NOTHING, Resources


def cpu(amount: int) -> Resources:
    return Resources({"cpu": amount})


def step(amount: int) -> InitContainer:
    return InitContainer(cpu(amount))


def sidecar(amount: int) -> InitContainer:
    return InitContainer(cpu(amount), stays=True)


@pytest.mark.parametrize(
    ("containers", "init_containers", "expected"),
    [
        pytest.param([], [], None, id="nothing"),
        pytest.param([1, 2], [], 3, id="containers run together"),
        pytest.param([1], [step(3), step(2)], 3, id="init containers run one after the other"),
        pytest.param([4], [step(3)], 4, id="the containers need more"),
        pytest.param([3], [sidecar(4)], 7, id="a sidecar runs on beside the containers"),
        pytest.param([1], [sidecar(2), step(5)], 7, id="a step beside an earlier sidecar"),
        pytest.param([1], [step(5), sidecar(2)], 5, id="a step before the sidecar"),
        pytest.param([1], [sidecar(2), sidecar(2)], 5, id="all sidecars and the container"),
    ],
)
def test_a_pod_takes_the_most_that_runs_at_one_time(containers, init_containers, expected):
    found = pod_requests([cpu(amount) for amount in containers], init_containers)

    assert found.get("cpu") == expected


def test_each_resource_is_counted_by_itself():
    found = pod_requests(
        [Resources({"cpu": 1, "memory": 9})], [InitContainer(Resources({"cpu": 5, "memory": 2}))]
    )

    assert found == Resources({"cpu": 5, "memory": 9})


def test_what_the_whole_pod_asks_for_replaces_what_its_containers_ask_for():
    found = pod_requests([cpu(1), cpu(1)], [step(9)], of_pod=cpu(4))

    assert found == cpu(4)


def test_a_device_is_asked_for_by_containers_only():
    gpu = Resources({"nvidia.com/gpu": 1000})

    assert pod_requests([gpu], of_pod=gpu + gpu) == gpu


def test_the_limit_of_the_whole_pod_counts_where_nobody_asks():
    limits = Resources({"cpu": 8, "memory": 16})

    assert pod_requests([cpu(1)], limits_of_pod=limits) == Resources({"cpu": 1, "memory": 16})


def test_overhead_comes_on_top_of_everything():
    found = pod_requests([cpu(1)], of_pod=cpu(4), overhead=Resources({"cpu": 1, "memory": 5}))

    assert found == Resources({"cpu": 5, "memory": 5})


AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "hugepages-2Mi", "nvidia.com/gpu"]), st.integers(0, 9)
).map(Resources)
STEADY = settings(  # no example by chance, and a busy machine is no failure
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
INIT_CONTAINERS = st.lists(st.builds(InitContainer, AMOUNTS, st.booleans()), max_size=5)


def most_at_any_time(containers, init_containers) -> dict[str, int]:
    """The pod's life written down moment by moment: who runs, and what they take together."""
    moments = [
        [item for item in init_containers[:number] if item.stays] + [init_containers[number]]
        for number in range(len(init_containers))
    ]
    running = [[item.requests for item in moment] for moment in moments]
    running.append([*containers, *(item.requests for item in init_containers if item.stays)])
    names = {name for moment in running for part in moment for name in part}
    return {
        name: max(sum(part.amount(name) for part in moment) for moment in running) for name in names
    }


@STEADY
@given(st.lists(AMOUNTS, max_size=4), INIT_CONTAINERS)
def test_a_random_pod_takes_the_most_of_any_moment_of_its_life(containers, init_containers):
    found = pod_requests(containers, init_containers)

    assert dict(found) == most_at_any_time(containers, init_containers)


@STEADY
@given(st.lists(AMOUNTS, max_size=4), INIT_CONTAINERS, AMOUNTS, AMOUNTS)
def test_overhead_is_the_only_thing_that_adds_to_a_random_pod(
    containers,
    init_containers,
    of_pod,
    overhead,
):
    without = pod_requests(containers, init_containers, of_pod=of_pod)
    found = pod_requests(containers, init_containers, of_pod=of_pod, overhead=overhead)

    assert found == without + overhead


@STEADY
@given(st.lists(AMOUNTS, max_size=4), INIT_CONTAINERS, AMOUNTS)
def test_the_order_of_containers_does_not_matter(containers, init_containers, limits):
    found = pod_requests(containers, init_containers, limits_of_pod=limits)

    assert found == pod_requests(containers[::-1], init_containers, limits_of_pod=limits)


def test_nothing_asked_is_nothing_taken():
    assert pod_requests([NOTHING, NOTHING]) == NOTHING
