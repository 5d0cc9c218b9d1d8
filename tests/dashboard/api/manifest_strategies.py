"""Manifests of every kind, drawn: fields left out, added, and spelled differently."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

LEFT_OUT = object()

# Spellings of one amount each.
CPU = ("1", "1000m", 1, "1.0", "1e0", "1000000u")

MEMORY = ("1Gi", "1024Mi", "1048576Ki", "1073741824", 1073741824, "1073741824000m")

GPU = ("2", 2, "2000m", "2e0")

# Whatever Kubernetes or an older export of ours writes beside what was asked for.
SERVER_SIDE = {
    "uid": "0f6c1b0e-0000-4000-8000-000000000000",
    "resourceVersion": "123456",
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "generation": 4,
    "selfLink": "/apis/x",
    "managedFields": [{"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {}}}],
    "finalizers": ["a/b"],
    "ownerReferences": [{"kind": "Thing", "name": "x", "uid": "y"}],
    "deletionTimestamp": None,
}


def some_of(**fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    """An object with any of these fields, left out, null, or as one of the values given for it."""
    drawn = st.fixed_dictionaries(
        {key: st.one_of(st.just(LEFT_OUT), values) for key, values in fields.items()}
    )
    return drawn.map(
        lambda found: {key: value for key, value in found.items() if value is not LEFT_OUT}
    )


def of(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


AMOUNTS = some_of(**{"cpu": of(*CPU), "memory": of(*MEMORY), "nvidia.com/gpu": of(*GPU)})

MAYBE_AMOUNTS = AMOUNTS | of(None, {})

TEXTS = of(None, {}, {"team": "a"}, {"team": "a", "x.io/y": ""})

JUNK = of(None, 0, "text", [1], {"a": {"b": None}}, False)

TOPOLOGY = of(
    None,
    {},
    {"mode": "soft"},
    {"mode": "hard", "highestTierAllowed": 2},
    {"highestTierName": "rack", "junk": 1},
)

POLICIES = of(
    None,
    [],
    [{"event": "PodFailed", "action": "RestartJob"}],
    [{"events": ["PodEvicted"], "action": "AbortJob", "junk": 1}],
)


def metadata(namespaced: bool = False) -> st.SearchStrategy[dict[str, Any]]:
    server = st.sets(of(*SERVER_SIDE)).map(
        lambda names: {name: SERVER_SIDE[name] for name in names}
    )
    own = some_of(
        labels=TEXTS,
        annotations=TEXTS,
        junkField=JUNK,
        **({"namespace": of("default", "lab", "", None)} if namespaced else {}),
    )
    return st.builds(lambda *parts: {"name": "fresh", **parts[0], **parts[1]}, own, server)


CONTAINERS = st.lists(
    some_of(
        name=of("main"),
        image=of("busybox"),
        junkField=JUNK,
        resources=some_of(requests=MAYBE_AMOUNTS, limits=MAYBE_AMOUNTS),
    ),
    max_size=2,
) | of(None)

POD_SPEC = some_of(
    containers=CONTAINERS,
    initContainers=CONTAINERS,
    overhead=MAYBE_AMOUNTS,
    nodeSelector=of(None, {}, {"zone": "a"}),
    tolerations=of(
        None,
        [],
        [{"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 3}],
    ),
    affinity=of(None, {}, {"nodeAffinity": {"junk": [None]}}),
    priorityClassName=of(None, "", "high"),
    junkField=JUNK,
)

TASK = some_of(
    replicas=of(None, 1, 3),
    minAvailable=of(None, 0, 1),
    maxRetry=of(None, 3, 5),
    policies=POLICIES,
    dependsOn=of(None, {}),
    topologyPolicy=of(None, "", "best-effort"),
    partitionPolicy=of(None, {}, {"totalPartitions": 1, "partitionSize": 1}),
    template=of(None, {})
    | some_of(metadata=of(None, {}, {"labels": {"a": "b"}}), spec=POD_SPEC, junkField=JUNK),
    junkField=JUNK,
)

NAMED_TASKS = st.lists(TASK, min_size=1, max_size=3).map(
    lambda tasks: [{"name": f"t{index}", **task} for index, task in enumerate(tasks)]
)

NAMELESS_TASKS = st.lists(TASK, min_size=1, max_size=2)

KINDS: dict[str, tuple[str, bool, st.SearchStrategy[dict[str, Any]], st.SearchStrategy[Any]]] = {
    "Queue": (
        "scheduling.volcano.sh/v1beta1",
        False,
        some_of(
            weight=of(None, 0, 1, 7),
            capability=MAYBE_AMOUNTS,
            deserved=MAYBE_AMOUNTS,
            guarantee=AMOUNTS
            | of(None, {}, {"resource": None})
            | AMOUNTS.map(lambda amounts: {"resource": amounts}),
            reclaimable=of(None, True, False),
            parent=of(None, "", "root", "team"),
            priority=of(None, 0, 3),
            dequeueStrategy=of(None, "", "fifo", "traverse"),
            state=of(None, "", "Open", "Closed", "Suspended"),
            type=of(None, "", "batch"),
            affinity=of(None, {"nodeGroupAffinity": {}}),
            extendClusters=of(None, [], [{"name": "a"}]),
            junkField=JUNK,
        ),
        some_of(
            state=of(None, "", "Open", "Closing", "Closed", "Suspended", "Unknown"),
            allocated=of({"cpu": "1"}),
            junkField=JUNK,
        ),
    ),
    "Job": (
        "batch.volcano.sh/v1alpha1",
        True,
        some_of(
            queue=of(None, "", "default", "leaf"),
            schedulerName=of(None, "", "volcano"),
            minAvailable=of(None, 0, 1),
            maxRetry=of(None, 3, 0),
            ttlSecondsAfterFinished=of(None, 0, 60),
            priorityClassName=of(None, "", "high"),
            minSuccess=of(None, 1),
            policies=POLICIES,
            plugins=of(None, {}, {"svc": [], "env": ["a"]}),
            volumes=of(
                None,
                [],
                [
                    {
                        "mountPath": "/x",
                        "volumeClaim": {"resources": {"requests": {"storage": "1024Mi"}}},
                    }
                ],
            ),
            networkTopology=TOPOLOGY,
            runningEstimate=of(None, "1h"),
            tasks=NAMED_TASKS | NAMELESS_TASKS,
            junkField=JUNK,
        ),
        some_of(state=of({"phase": "Running"}), minAvailable=of(2), junkField=JUNK),
    ),
    "PodGroup": (
        "scheduling.volcano.sh/v1beta1",
        True,
        some_of(
            queue=of(None, "", "default", "leaf"),
            minMember=of(None, 0, 2),
            minTaskMember=of(None, {}, {"a": 1}),
            priorityClassName=of(None, "", "high"),
            minResources=MAYBE_AMOUNTS,
            networkTopology=TOPOLOGY,
            subGroupPolicy=of(None, [], [{"name": "a", "subGroupSize": 1}]),
            junkField=JUNK,
        ),
        some_of(phase=of("Running"), junkField=JUNK),
    ),
    "Pod": ("v1", True, POD_SPEC, some_of(phase=of("Running"), junkField=JUNK)),
    "Node": (
        "v1",
        False,
        some_of(
            unschedulable=of(None, True, False),
            taints=of(
                None,
                [],
                [{"key": "a"}],
                [{"key": "a", "value": "b", "effect": "NoExecute", "timeAdded": "x"}],
            ),
            podCIDR=of("10.0.0.0/8"),
            junkField=JUNK,
        ),
        of(None)
        | some_of(
            allocatable=MAYBE_AMOUNTS,
            capacity=MAYBE_AMOUNTS,
            conditions=of(None, [{"type": "Ready", "status": "False"}]),
        ),
    ),
    "Namespace": (
        "v1",
        False,
        some_of(finalizers=of(["kubernetes"]), junkField=JUNK),
        some_of(phase=of("Active")),
    ),
    "PriorityClass": (
        "scheduling.k8s.io/v1",
        False,
        st.builds(
            lambda value, rest: {"value": value, **rest},
            of(0, -5, 1000),
            some_of(
                globalDefault=of(None, False, True),
                preemptionPolicy=of(None, "", "Never"),
                description=of(None, "", "text"),
                junkField=JUNK,
            ),
        ),
        of(None, {}),
    ),
}


def manifests(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    version, namespaced, spec, status = KINDS[kind]

    def whole(meta: Any, given_spec: Any, given_status: Any, flat: bool) -> dict[str, Any]:
        parts = given_spec if flat and kind == "PriorityClass" else {"spec": given_spec}
        found = {"apiVersion": version, "kind": kind, "metadata": meta, **parts}
        return found if given_status is LEFT_OUT else {**found, "status": given_status}

    return st.builds(whole, metadata(namespaced), spec, status | st.just(LEFT_OUT), st.booleans())
