"""What may stand in a policy file: our plugins with their arguments, and what Volcano knows and we
do not use.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from scheduler.engine.policy import Flag
from scheduler.scenarios.fields import FieldError, read_flag, read_whole, shown
from scheduler.scenarios.objects import read_duration

Reader = Callable[[object, str], object]

FLAGS: Final = {flag.value: flag for flag in Flag}
UNUSED_FLAGS: Final = frozenset(
    {
        "bestNode",
        "clusterOrder",
        "hyperNodeGradient",
        "hyperNodeOrder",
        "namespaceOrder",
        "reservedNodes",
        "simulateAddTask",
        "simulateAllocatable",
        "simulatePredicate",
        "simulateRemoveTask",
        "subJobOrder",
        "subJobPipelined",
        "subJobReady",
        "targetJob",
        "unifiedEvictable",
        "victim",
    }
)
UNUSED_PLUGINS: Final = frozenset(
    {
        "cdp",
        "crossquota",
        "datadependency",
        "deviceshare",
        "extender",
        "network-topology-aware",
        "nodegroup",
        "numaaware",
        "pdb",
        "rescheduling",
        "resource-strategy-fit",
        "resourcequota",
        "task-topology",
        "tdm",
        "usage",
    }
)
UNUSED_SECTIONS: Final = frozenset({"metrics"})
VOLCANO_OVERCOMMIT: Final = 1.2


def read_weight(value: object, place: str) -> int:
    return read_whole(value, place, least=0, most=1_000_000)


def read_factor(value: object, place: str) -> float:
    """Any number; what is below 1 is dealt with where the warning is given."""
    try:
        if isinstance(value, (int, str)) and not isinstance(value, bool):
            factor = float(value)
        else:
            factor = math.nan
    except (ValueError, OverflowError):
        factor = math.nan
    if not math.isfinite(factor) or factor > 1e6:
        raise FieldError(place, f"must be a number such as 1.2, not {shown(value)}")
    return factor


def read_waiting_time(value: object, place: str) -> str:
    """Kept as written; only checked."""
    if isinstance(value, (int, str)) and not isinstance(value, bool):
        text = str(value)
    else:
        text = ""
    read_duration(text, place)
    return text


def read_names(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise FieldError(place, f"must be names with commas between them, not {shown(value)}")
    return value


def one_of(*choices: str) -> Reader:
    def read(value: object, place: str) -> object:
        if value not in choices:
            raise FieldError(place, f"must be one of {', '.join(choices)}, not {shown(value)}")
        return value

    return read


def read_level(value: object, place: str) -> int:
    return read_whole(value, place, least=0, most=100)


def read_gain(value: object, place: str) -> int:
    """In percent of a loss, of which it may be several times."""
    return read_whole(value, place, least=0, most=10_000)


def read_seconds(value: object, place: str) -> int:
    return read_whole(value, place, least=0, most=31_536_000)


ARGUMENTS: Final[Mapping[str, Mapping[str, Reader]]] = {
    "gang": {},
    "priority": {},
    "conformance": {},
    "drf": {},
    "proportion": {},
    "predicates": {},
    "overcommit": {"overcommit-factor": read_factor},
    "sla": {"sla-waiting-time": read_waiting_time},
    "capacity": {
        "hierarchyViolation": one_of("subtree", "session", "warn"),
        "ancestorReclaimLevel": read_level,
        "fillByWeight": read_flag,
        "reserveGuarantees": read_flag,
        "admission": one_of("room", "possible"),
    },
    "scarcity": {"scarcity.weight": read_weight},
    "nodeorder": {
        "leastrequested.weight": read_weight,
        "mostrequested.weight": read_weight,
        "balancedresource.weight": read_weight,
        "nodeaffinity.weight": read_weight,
        "tainttoleration.weight": read_weight,
    },
    "binpack": {
        "binpack.weight": read_weight,
        "binpack.cpu": read_weight,
        "binpack.memory": read_weight,
        "binpack.resources": read_names,
        "binpack.resources.*": read_weight,
    },
}

UNUSED_ARGUMENTS: Final[Mapping[str, frozenset[str]]] = {
    "nodeorder": frozenset(
        {
            "podaffinity.weight",
            "imagelocality.weight",
            "podtopologyspread.weight",
            "selectorspread.weight",
        }
    ),
    "predicates": frozenset({"predicate.*"}),
}

SETTINGS: Final[Mapping[str, Mapping[str, Reader]]] = {
    "enqueue": {},
    "allocate": {"setAside": read_level},
    "preempt": {
        "wholeGangs": read_flag,
        "minRunSeconds": read_seconds,
        "patienceSeconds": read_seconds,
        "gainPercent": read_gain,
    },
    "reclaim": {
        "breakGangs": read_flag,
        "strictDeserved": read_flag,
        "suspendedVictims": one_of("protect", "allow"),
        "wholeGangs": read_flag,
        "waitSeconds": read_seconds,
        "waitPercent": read_level,
        "shortRunWaitSeconds": read_seconds,
        "minRunSeconds": read_seconds,
        "patienceSeconds": read_seconds,
        "patiencePercent": read_level,
        "gainPercent": read_gain,
    },
    "shed": {"graceSessions": read_level},
    "backfill": {"beyondDeserved": read_flag},
}

UNUSED_SETTINGS: Final[Mapping[str, frozenset[str]]] = {
    "enqueue": frozenset({"overcommit-factor"}),
    "allocate": frozenset({"enablePredicateErrorCache", "predicateErrorCacheEnable"}),
    "preempt": frozenset(
        {
            "enablePredicateErrorCache",
            "predicateErrorCacheEnable",
            "enableTopologyAwarePreemption",
            "topologyAwarePreemptWorkerNum",
            "minCandidateNodesPercentage",
            "minCandidateNodesAbsolute",
            "maxCandidateNodesAbsolute",
        }
    ),
    "reclaim": frozenset({"enablePredicateErrorCache", "predicateErrorCacheEnable"}),
    "backfill": frozenset({"enablePredicateErrorCache", "predicateErrorCacheEnable"}),
}
UNUSED_CONFIGURATIONS: Final = frozenset({"shuffle", "gangpreempt", "gangreclaim"})


def reader_of(name: str, readers: Mapping[str, Reader]) -> Reader | None:
    """The reader of an argument; `x.*` stands for every name below x."""
    return readers.get(name) or readers.get(_plugin_family(name))


def is_unused(name: str, known: frozenset[str]) -> bool:
    families = [argument.removesuffix("*") for argument in known if argument.endswith("*")]
    return name in known or name.startswith(tuple(families))


def _plugin_family(name: str) -> str:
    if name.startswith("binpack.resources."):
        return "binpack.resources.*"
    return "*"
