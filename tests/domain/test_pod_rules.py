"""Rules between pods as Kubernetes writes them."""

from __future__ import annotations

import pytest

from scheduler.domain.pod_rules import (
    NO_RULES,
    affinity_of,
    read_rules,
    spread_of,
    unsupported_rules,
    watched_keys,
    watched_labels,
)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def affinity(kind="podAntiAffinity", **term):
    return {kind: {REQUIRED: [{"topologyKey": "zone", **term}]}}


def test_preferences_are_no_rules():
    preferred = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}}
    anyway = [{"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]

    assert read_rules(preferred, anyway) is NO_RULES


@pytest.mark.parametrize(
    ("term", "namespace", "labels", "expected"),
    [
        ({"labelSelector": {"matchLabels": {"a": "1"}}}, "own", {"a": "1", "b": "2"}, True),
        ({"labelSelector": {"matchLabels": {"a": "1", "b": "1"}}}, "own", {"a": "1"}, False),
        ({"labelSelector": {"matchLabels": {"a": "1"}}}, "other", {"a": "1"}, False),
        ({"labelSelector": {}, "namespaces": ["other"]}, "other", {}, True),
        ({"labelSelector": {}, "namespaces": ["other"]}, "own", {}, False),
        ({"labelSelector": {}, "namespaceSelector": {}}, "anywhere", {}, True),
        ({}, "own", {"a": "1"}, False),
        ({"labelSelector": {}}, "own", {}, True),
    ],
)
def test_whom_a_term_selects(term, namespace, labels, expected):
    (found,) = read_rules(affinity(**term), ()).anti_affinity

    assert found.selector.of("own").matches(namespace, labels) is expected


def test_the_order_of_labels_does_not_matter():
    first = read_rules(affinity(labelSelector={"matchLabels": {"a": "1", "b": "2"}}), ())
    second = read_rules(affinity(labelSelector={"matchLabels": {"b": "2", "a": "1"}}), ())

    assert first == second
    assert hash(first) == hash(second)


def test_keys_of_the_pod_itself_become_expressions():
    given = affinity(
        labelSelector={"matchLabels": {"app": "db"}},
        matchLabelKeys=["version"],
        mismatchLabelKeys=["tenant", "absent"],
    )

    (term,) = affinity_of(given, {"version": "2", "tenant": "x"})["podAntiAffinity"][REQUIRED]

    assert term["labelSelector"]["matchExpressions"] == [
        {"key": "version", "operator": "In", "values": ["2"]},
        {"key": "tenant", "operator": "NotIn", "values": ["x"]},
    ]
    assert "matchLabelKeys" not in term


def test_only_the_spread_that_must_hold_is_kept():
    hard = {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    soft = {"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}

    assert spread_of([soft, hard], {}) == [hard]


def test_a_spread_over_all_pods_counts_none_as_in_kubernetes():
    hard = {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}

    (found,) = read_rules({}, [hard]).spread

    assert not found.selector.of("own").matches("own", {})


def test_labels_that_rules_look_at():
    rules = read_rules(affinity(labelSelector={"matchLabels": {"app": "db"}}), ())
    keys = watched_keys(rules.selectors)

    assert keys == {"app"}
    assert watched_labels({"b": "1", "app": "x"}, keys) == (("app", "x"),)
    assert watched_keys(NO_RULES.selectors) is None


def test_a_selector_of_namespaces_by_their_labels_is_named():
    given = affinity("podAffinity", namespaceSelector={"matchLabels": {"team": "a"}})

    assert unsupported_rules(given) == ["namespaceSelector in podAffinity"]
    assert unsupported_rules(affinity("podAffinity", namespaceSelector={})) == []


def test_rules_have_words():
    given = {
        "matchLabels": {"app": "db"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["a", "b"]},
            {"key": "old", "operator": "DoesNotExist"},
            {"key": "x", "operator": "Exists"},
            {"key": "y", "operator": "NotIn", "values": ["1"]},
        ],
    }
    (term,) = read_rules(affinity(labelSelector=given), ()).anti_affinity

    assert term.selector.words == "app=db, !old, tier in (a, b), x, y not in (1)"
