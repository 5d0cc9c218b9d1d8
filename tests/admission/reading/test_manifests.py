"""Reading manifests that anybody may have written, and the defaults."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.admission.defaults import json_patch, queue_defaults, with_defaults
from scheduler.admission.facts import Facts
from scheduler.admission.reading.queue import queue_manifest, read_queue
from scheduler.admission.reviews import Request, review, review_defaults
from scheduler.domain.queues import DequeueStrategy, QueueSpec, QueueState, QueueTree
from scheduler.domain.resources import Resources

TREE = QueueTree([QueueSpec("root", parent=""), QueueSpec("default"), QueueSpec("q")])
FACTS = Facts(
    states={"default": QueueState.OPEN, "q": QueueState.OPEN}, total=Resources.parse({"cpu": "8"})
)


def spec(manifest: dict[str, Any], **options: Any) -> QueueSpec:
    value = read_queue(manifest, **options).value
    assert value
    return value.spec


def rules(manifest: object, **options: Any) -> list[str]:
    return [violation.rule_id for violation in read_queue(manifest, **options).violations]


def test_what_is_left_out_is_filled_in():
    assert spec({"metadata": {"name": "a"}}) == QueueSpec(
        "a",
        parent="root",
        weight=1,
        reclaimable=True,
        state=QueueState.OPEN,
    )


def test_a_whole_queue_is_read_and_written_back():
    queue = QueueSpec(
        "team.a",
        parent="p",
        weight=7,
        capability=Resources.parse({"cpu": "8", "nvidia.com/gpu": "2"}),
        deserved=Resources.parse({"cpu": "500m"}),
        guarantee=Resources.parse({"memory": "4Gi"}),
        reclaimable=False,
        priority=10,
        dequeue_strategy=DequeueStrategy.FIFO,
        state=QueueState.SUSPENDED,
        type="batch",
        labels={"team": "a"},
        annotations={"note": "x"},
    )

    assert spec(queue_manifest(queue)) == queue


@pytest.mark.parametrize(
    "guarantee", [{"resource": {"cpu": "2", "memory": "4G"}}, {"cpu": 2, "memory": 4_000_000_000}]
)
def test_a_guarantee_may_be_nested_or_flat(guarantee: dict[str, Any]):
    assert spec(
        {"metadata": {"name": "a"}, "spec": {"guarantee": guarantee}}
    ).guarantee == Resources({"cpu": 2000, "memory": 4_000_000_000})


@pytest.mark.parametrize(
    "version", ["scheduling.volcano.sh/v1beta1", "scheduling.sigs.dev/v1alpha2"]
)
def test_both_api_groups_are_read(version: str):
    assert rules({"apiVersion": version, "kind": "Queue", "metadata": {"name": "a"}}) == []


def test_another_kind_or_version_is_refused():
    assert rules({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}) == [
        "invalid_kind",
        "invalid_api_version",
    ]


@pytest.mark.parametrize(
    ("body", "options", "wish"),
    [
        ({"spec": {"state": "Closed"}, "status": {"state": "Suspended"}}, {}, QueueState.CLOSED),
        ({"status": {"state": "Suspended"}}, {}, QueueState.SUSPENDED),
        ({"status": {"state": "Closed"}}, {}, QueueState.CLOSED),
        ({"status": {"state": "Closing"}}, {"imported": True}, QueueState.CLOSED),
        (
            {"status": {"state": "Closed"}},
            {"old": QueueSpec("a", state=QueueState.SUSPENDED)},
            QueueState.SUSPENDED,
        ),
    ],
)
def test_the_wish_comes_from_spec_or_at_creation_from_status(
    body: dict[str, Any],
    options: dict[str, Any],
    wish: QueueState,
):
    assert spec({"metadata": {"name": "a"}, **body}, **options).state is wish


@pytest.mark.parametrize("state", ["Closing", "Unknown", "wrong", 3])
def test_a_state_that_can_not_be_set_is_refused(state: object):
    assert rules({"metadata": {"name": "a"}, "spec": {"state": state}}) == ["invalid_state"]


def test_unknown_comes_only_with_imported_data():
    manifest = {"metadata": {"name": "a"}, "status": {"state": "Unknown"}}

    assert rules(manifest) == ["invalid_state"]
    reading = read_queue(manifest, imported=True)
    assert reading.value
    assert reading.value.is_unknown


def test_on_update_a_status_is_ignored_but_not_when_it_is_no_state_at_all():
    old = QueueSpec("a")

    assert rules({"metadata": {"name": "a"}, "status": {"state": "Closing"}}, old=old) == []
    for spec in ({}, {"state": "Open"}):
        assert rules(
            {"metadata": {"name": "a"}, "spec": spec, "status": {"state": "wrong"}}, old=old
        ) == ["invalid_state"]


@pytest.mark.parametrize(
    ("weight", "refused"), [(0, True), (1, False), (65535, False), (65536, True)]
)
def test_the_weight_has_a_range(weight: int, refused: bool):
    assert (
        bool(rules({"metadata": {"name": "a"}, "spec": {"weight": weight}}, old=QueueSpec("a")))
        is refused
    )


def test_a_weight_of_zero_is_filled_in_at_creation():
    assert spec({"metadata": {"name": "a"}, "spec": {"weight": 0}}).weight == 1


def test_unknown_fields_are_told_with_a_guess():
    reading = read_queue({"metadata": {"name": "a"}, "spec": {"wieght": 3}, "extra": 1})

    assert [notice.message for notice in reading.notices] == [
        "extra is not known and was ignored",
        "spec.wieght is not known and was ignored; did you mean weight?",
    ]


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("testQueue", "write testqueue"),
        ("a_b", "write a-b"),
        ("-a", "write a"),
        ("a..b", "write a.b"),
        ("x" * 254, ""),
        ("ä", ""),
    ],
)
def test_a_name_is_a_dns_subdomain(name: str, fix: str):
    (violation,) = read_queue({"metadata": {"name": name}}).violations

    assert violation.rule_id == "invalid_name"
    assert violation.fix == fix


@pytest.mark.parametrize("name", ["a", "team.a", "0-9.x", "x" * 253])
def test_a_good_name_is_taken(name: str):
    assert rules({"metadata": {"name": name}}) == []


def test_text_that_no_database_keeps_is_refused():
    manifest = {
        "metadata": {"name": "a", "annotations": {"note": "a\x00b", "\ud800": "x"}},
        "spec": {"type": "\udfff"},
    }

    assert rules(manifest) == ["invalid_value"] * 3


def test_an_update_is_not_defaulted_but_keeps_what_it_does_not_say():
    old = QueueSpec("a", reclaimable=False, state=QueueState.CLOSED)

    changed = spec({"metadata": {"name": "a"}, "spec": {"weight": 2}}, old=old)

    assert (changed.reclaimable, changed.state, changed.weight) == (False, QueueState.CLOSED, 2)


# Hostile shapes.

_JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.just("cpu")
    | st.sampled_from(["Open", "root", "4Gi", "-1", "2c"]),
    lambda children: (
        st.lists(children, max_size=4)
        | st.dictionaries(st.text() | st.integers(), children, max_size=4)
    ),
    max_leaves=12,
)
_KEYS = [
    "metadata",
    "spec",
    "status",
    "name",
    "namespace",
    "annotations",
    "labels",
    "weight",
    "capability",
    "deserved",
    "guarantee",
    "resource",
    "parent",
    "state",
    "priority",
    "reclaimable",
    "dequeueStrategy",
    "type",
    "cpu",
    "queue",
    "tasks",
    "replicas",
    "minAvailable",
    "template",
    "containers",
    "resources",
    "requests",
    "tolerations",
    "nodeSelector",
    "networkTopology",
    "highestTierAllowed",
    "schedulerName",
    "policies",
    "minMember",
    "minResources",
    "minTaskMember",
    "subGroupPolicy",
    "volcano.sh/hierarchy",
    "volcano.sh/hierarchy-weights",
    "generateName",
]
_SHAPED = st.recursive(
    _JUNK,
    lambda children: (
        st.lists(children, max_size=3)
        | st.dictionaries(st.sampled_from(_KEYS), children, max_size=6)
    ),
    max_leaves=30,
)


@settings(max_examples=300, deadline=None)
@given(
    kind=st.sampled_from(["queues", "jobs", "podgroups", "pods"]),
    operation=st.sampled_from(["CREATE", "UPDATE", "DELETE"]),
    new=_SHAPED,
    old=_SHAPED,
)
def test_whatever_is_sent_the_answer_is_a_verdict(
    kind: str,
    operation: str,
    new: object,
    old: object,
):
    request = Request(operation, "q", new, old)

    verdict = review(kind, request, TREE, FACTS)
    _, patch = review_defaults(kind, request, FACTS) if kind != "pods" else (None, [])

    assert all(violation.message.isprintable() for violation in verdict.violations)
    if isinstance(new, dict):
        json_patch(new, patch)
        with_defaults(new, patch)


@settings(max_examples=200, deadline=None)
@given(
    spec=st.dictionaries(st.sampled_from(_KEYS), _JUNK, max_size=8),
    metadata=st.dictionaries(st.sampled_from(_KEYS), _JUNK, max_size=4),
)
def test_junk_in_the_right_places_is_refused_not_raised(
    spec: dict[str, Any], metadata: dict[str, Any]
):
    for kind in ("queues", "jobs", "podgroups"):
        for operation in ("CREATE", "UPDATE"):
            manifest = {"metadata": {"name": "q", **metadata}, "spec": spec}
            review(kind, Request(operation, "q", manifest, manifest), TREE, FACTS)


# Defaults as a patch.


def patched(manifest: dict[str, Any], operations: list[dict[str, Any]]) -> dict[str, Any]:
    result = json.loads(json.dumps(manifest))
    for operation in operations:
        *way, last = [
            step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:]
        ]
        holder = result
        for step in way:
            holder = holder[int(step)] if isinstance(holder, list) else holder[step]
        assert (last in holder) is (operation["op"] == "replace")
        holder[last] = operation["value"]
    return result


@pytest.mark.parametrize(
    "manifest",
    [
        {"metadata": {"name": "a"}},
        {"metadata": {"name": "a"}, "spec": None},
        {"metadata": {"name": "a"}, "spec": {"weight": 0, "parent": ""}},
        {
            "metadata": {
                "name": "a",
                "annotations": {
                    "volcano.sh/hierarchy": "x/y",
                    "volcano.sh/hierarchy-weights": "2/3",
                },
            },
            "spec": {},
        },
    ],
)
def test_the_patch_and_the_filled_manifest_are_the_same(manifest: dict[str, Any]):
    defaults = queue_defaults(manifest)
    untouched = json.dumps(manifest)

    given_spec = (
        manifest
        if manifest.get("spec") is not None
        else {key: value for key, value in manifest.items() if key != "spec"}
    )
    assert patched(given_spec, json_patch(manifest, defaults)) == with_defaults(manifest, defaults)
    assert json.dumps(manifest) == untouched
    assert base64.b64encode(json.dumps(json_patch(manifest, defaults)).encode())


def test_the_defaults_of_a_job_fill_its_tasks():
    job = {
        "metadata": {"name": "j", "namespace": "ns"},
        "spec": {"tasks": [{"replicas": 2}, {"name": "w", "replicas": 3, "minAvailable": 1}]},
    }

    filled = with_defaults(job, review_defaults("jobs", Request("CREATE", new=job), FACTS)[1])

    assert filled["spec"] == {
        "queue": "default",
        "schedulerName": "volcano",
        "maxRetry": 3,
        "minAvailable": 3,
        "tasks": [
            {"replicas": 2, "name": "default0", "minAvailable": 2, "maxRetry": 3},
            {"name": "w", "replicas": 3, "minAvailable": 1, "maxRetry": 3},
        ],
    }
