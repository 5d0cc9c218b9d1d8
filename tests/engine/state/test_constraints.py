"""Node selectors, node affinity, taints and tolerations: Kubernetes' own rules, as a table."""

from __future__ import annotations

import pytest

from scheduler.domain.nodes import Node, NodeTable, Taint
from scheduler.domain.requirements import Requirement
from scheduler.domain.workloads import Constraint, NodeTerm, Toleration
from scheduler.engine.state.constraints import suitable_nodes, untolerated_preferences


def is_suitable(constraint: Constraint, **node: object) -> bool:
    table = NodeTable.build([Node("n1", **node)], ("cpu", "memory", "pods"))
    return bool(suitable_nodes(constraint, table)[0])


LABELS = {"zone": "a", "cores": "16", "empty": "", "word": "many"}


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("zone", "In", ("a", "b"), True),
        ("zone", "In", ("b",), False),
        ("absent", "In", ("a",), False),
        ("empty", "In", ("",), True),
        ("zone", "NotIn", ("b",), True),
        ("zone", "NotIn", ("a",), False),
        ("absent", "NotIn", ("a",), True),
        ("empty", "Exists", (), True),
        ("absent", "Exists", (), False),
        ("absent", "DoesNotExist", (), True),
        ("zone", "DoesNotExist", (), False),
        ("cores", "Gt", ("15",), True),
        ("cores", "Gt", ("16",), False),
        ("cores", "Gt", ("-1",), True),
        ("cores", "Lt", ("17",), True),
        ("cores", "Lt", ("16",), False),
        ("word", "Gt", ("1",), False),
        ("word", "Lt", ("1",), False),
        ("absent", "Gt", ("1",), False),
        ("cores", "Gt", ("1", "2"), False),
    ],
)
def test_every_operator_of_node_affinity(key, operator, values, expected):
    term = NodeTerm((Requirement(key, operator, values),))

    assert is_suitable(Constraint(required=(term,)), labels=LABELS) is expected


YES = Requirement("zone", "In", ("a",))
NO = Requirement("zone", "In", ("b",))
HERE = Requirement("metadata.name", "In", ("n1",))
ELSEWHERE = Requirement("metadata.name", "NotIn", ("n1",))


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param([NodeTerm((YES, NO))], False, id="all expressions of a term"),
        pytest.param([NodeTerm((NO,)), NodeTerm((YES,))], True, id="any of the terms"),
        pytest.param([NodeTerm()], False, id="an empty term matches nothing"),
        pytest.param([NodeTerm(), NodeTerm((YES,))], True, id="beside one that matches"),
        pytest.param([NodeTerm((), (HERE,))], True, id="by the name of the node"),
        pytest.param([NodeTerm((YES,), (ELSEWHERE,))], False, id="name and labels"),
    ],
)
def test_terms_are_alternatives_and_expressions_hold_together(terms, expected):
    assert is_suitable(Constraint(required=tuple(terms)), labels=LABELS) is expected


def test_the_node_selector_holds_beside_the_affinity():
    both = Constraint(node_selector=(("zone", "b"),), required=(NodeTerm((YES,)),))

    assert not is_suitable(both, labels=LABELS)
    assert is_suitable(Constraint(node_selector=(("zone", "a"),)), labels=LABELS)


TAINT = Taint("gpu", "950", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration("gpu", "Equal", "950"), True),
        (Toleration("gpu", "Equal", "950", "NoSchedule"), True),
        (Toleration("gpu", "Equal", "950", "NoExecute"), False),
        (Toleration("gpu", "Equal", "1"), False),
        (Toleration("gpu", "Equal"), False),
        (Toleration("other", "Equal", "950"), False),
        (Toleration("gpu", "Exists"), True),
        (Toleration("other", "Exists"), False),
        (Toleration("", "Exists"), True),
        (Toleration("", "Exists", effect="NoExecute"), False),
        (Toleration("gpu", "Gt", "900"), True),
        (Toleration("gpu", "Gt", "950"), False),
        (Toleration("gpu", "Lt", "1000"), True),
        (Toleration("gpu", "Lt", "many"), False),
        (Toleration("other", "Gt", "900"), False),
    ],
)
def test_every_operator_of_tolerations(toleration, expected):
    assert is_suitable(Constraint(tolerations=(toleration,)), taints=(TAINT,)) is expected


@pytest.mark.parametrize(
    ("effect", "expected"),
    [("NoSchedule", False), ("NoExecute", False), ("PreferNoSchedule", True)],
)
def test_only_hard_taints_keep_pods_away(effect, expected):
    assert is_suitable(Constraint(), taints=(Taint("a", "", effect),)) is expected


def test_every_hard_taint_must_be_tolerated():
    tolerant = Constraint(tolerations=(Toleration("a", "Exists"),))

    assert not is_suitable(tolerant, taints=(Taint("a"), Taint("b")))


def test_taints_that_only_discourage_are_counted_unless_tolerated():
    taints = (Taint("a", "", "PreferNoSchedule"), Taint("b", "", "PreferNoSchedule"), Taint("c"))

    assert untolerated_preferences(taints, ()) == 2
    assert untolerated_preferences(taints, (Toleration("a", "Exists"),)) == 1


def test_a_cordoned_node_takes_only_who_tolerates_its_taint():
    mark = "node.kubernetes.io/unschedulable"
    tolerant = Constraint(tolerations=(Toleration(mark, "Exists", "", "NoSchedule"),))

    assert not is_suitable(Constraint(), unschedulable=True)
    assert is_suitable(tolerant, unschedulable=True)


def test_a_pod_that_asks_for_what_is_not_supported_suits_no_node():
    assert not is_suitable(Constraint(unsupported=("host ports",)))
