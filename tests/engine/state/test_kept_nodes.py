"""What sessions leave to the next one about nodes: never anything but what it would find itself."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.engine import open_session, run_session
from scheduler.engine.plugins.binpack import Binpack
from scheduler.engine.presets import FUMAROLE, VOLCANO
from scheduler.engine.state import kept_nodes
from scheduler.engine.state.kept_nodes import KeptNodes
from tests.engine.builders import binds, cluster, job, node, policy, queue
from tests.engine.changing import ChangingCluster

PACK = policy("allocate", ["predicates", "binpack"])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("preset", [FUMAROLE, VOLCANO], ids=["fumarole", "volcano"])
def test_sessions_after_random_changes_decide_what_one_that_knows_nothing_decides(seed, preset):
    changing = ChangingCluster(seed)

    for _ in range(12):
        outcome = changing.session(preset)
        changing.change(outcome)


def test_another_policy_in_between_is_not_given_the_scores_of_the_first():
    changing = ChangingCluster(1)

    for turn in range(12):
        outcome = changing.session((FUMAROLE, PACK, VOLCANO)[turn % 3])
        changing.change(outcome)


def test_scores_that_are_kept_for_few_classes_are_still_right(monkeypatch):
    monkeypatch.setattr(kept_nodes, "MOST_SCORES", 16)  # two classes on eight nodes
    changing = ChangingCluster(2)

    for _ in range(12):
        outcome = changing.session(VOLCANO)
        changing.change(outcome)


@pytest.mark.parametrize("seed", range(10))
def test_the_scores_of_every_class_are_those_of_a_first_look(seed):
    changing = ChangingCluster(seed)

    for _ in range(10):
        session = open_session(changing.snapshot, VOLCANO)
        naive = open_session(changing.snapshot.copy(), VOLCANO)
        for pod_class in range(len(changing.snapshot.classes)):
            kept = session.node_scores(pod_class)
            fresh = naive.node_scores(pod_class)
            assert kept.by_node.tolist() == fresh.by_node.tolist()
            assert kept.suitable.tolist() == fresh.suitable.tolist()
            assert kept.fits_an_empty_node == fresh.fits_an_empty_node
        changing.change()


def test_only_nodes_where_something_else_is_used_are_scored_again(monkeypatch):
    nodes = [node(f"n{number}", cpu=8) for number in range(6)]
    works = [job("runs", cpu=1, on="n2"), job("new", cpu=1)]
    snapshot = cluster(nodes, [queue("default")], works)
    run_session(snapshot, PACK)
    scored = []
    score = Binpack.score

    def noting(self, pod_class, used, nodes):
        scored.append(nodes.tolist())
        return score(self, pod_class, used, nodes)

    monkeypatch.setattr(Binpack, "score", noting)
    snapshot.change_pods(np.array([0]), node=4)

    outcome = run_session(snapshot, PACK)

    assert binds(outcome) == {"new-0": "n4"}
    assert scored[0] == [2, 4]


def test_a_session_is_not_given_what_a_later_one_began_with():
    nodes = [node("n0", cpu=4), node("n1", cpu=4)]
    snapshot = cluster(nodes, [queue("default")], [job("runs", cpu=2, on="n0"), job("new", cpu=1)])
    first = open_session(snapshot, PACK)
    snapshot.change_pods(np.array([0]), node=1)
    second = open_session(snapshot, PACK)
    new = int(snapshot.pods.pod_class[1])

    assert second.node_scores(new).best_node() == 1
    assert first.node_scores(new).best_node() == 0


def test_a_plugin_that_fails_once_leaves_no_scores(monkeypatch):
    snapshot = cluster([node("n0")], [queue("default")], [job("new", cpu=1)])

    def failing(self, pod_class, used, nodes):
        raise RuntimeError("once")

    with monkeypatch.context() as patched:
        patched.setattr(Binpack, "score", failing)
        with pytest.raises(RuntimeError):
            run_session(snapshot, PACK)

    assert binds(run_session(snapshot, PACK)) == {"new-0": "n0"}


class ByHour(Binpack):
    """Made from a plugin that says so, and says nothing itself: scores may depend on the hour."""

    name = "by-hour"


def test_nothing_is_kept_where_a_plugin_does_not_say_that_its_answers_last():
    snapshot = cluster([node("n0")], [queue("default")], [job("new", cpu=1)])

    run_session(snapshot, policy("allocate", [f"{__name__}.ByHour"]))

    assert KeptNodes not in snapshot.found_of_nodes
