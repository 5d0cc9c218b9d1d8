"""What a pod takes and which nodes it may run on, from the JSON of Kubernetes' objects.

Written from Kubernetes' documentation of the fields. It imports nothing of the product, and knows
whole numbers only, so that a mistake in the product is not made here again.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
Amounts = dict[str, int]
_HARD_EFFECTS = {"NoSchedule", "NoExecute"}
_CORDONED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


# What it takes


def requests_of(pod: Json) -> Amounts:
    """The most that it takes at any moment of its life: it runs in steps, one after the other."""
    spec = pod["spec"]
    moments: list[Amounts] = []
    beside: list[Amounts] = []  # sidecars that run already
    for container in spec.get("initContainers", []):
        is_sidecar = container.get("restartPolicy") == "Always"
        takes = _of_container(pod, container, may_be_resized=is_sidecar)
        moments.append(_sum([*beside, takes]))
        if is_sidecar:
            beside.append(takes)
    containers = [
        _of_container(pod, container, may_be_resized=True) for container in spec["containers"]
    ]
    moments.append(_sum([*containers, *beside]))
    takes = _most(moments)
    takes.update(_of_whole_pod(pod))
    return _sum([takes, _whole(spec.get("overhead"))])


def _of_container(pod: Json, container: Json, *, may_be_resized: bool) -> Amounts:
    asked = _whole(container.get("resources", {}).get("requests"))
    status = _status_of(pod, container["name"])
    if not may_be_resized or "resources" not in status:
        return asked
    granted = [
        _whole(status["resources"].get("requests")),
        _whole(status.get("allocatedResources")),
    ]
    if _will_not_come(pod):
        return _most(granted)
    return _most([asked, *granted])


def _of_whole_pod(pod: Json) -> Amounts:
    """What is asked for the pod as a whole stands in place of what its containers ask for."""
    asked = _whole(pod["spec"].get("resources", {}).get("requests"))
    status = pod.get("status", {})
    if "resources" in status:
        granted = [
            _whole(status["resources"].get("requests")),
            _whole(status.get("allocatedResources")),
        ]
        if not _will_not_come(pod):
            granted.append(asked)
        most = _most(granted)
        return {name: most.get(name, 0) for name in asked}
    return asked


def _status_of(pod: Json, name: str) -> Json:
    status = pod.get("status", {})
    for kind in ("containerStatuses", "initContainerStatuses"):
        for each in status.get(kind, []):
            if each["name"] == name:
                return dict(each)
    return {}


def _will_not_come(pod: Json) -> bool:
    """The kubelet has said that the resize cannot be done."""
    for condition in pod.get("status", {}).get("conditions", []):
        if condition["type"] == "PodResizePending":
            return bool(condition["reason"] == "Infeasible")
    return False


def _whole(quantities: Json | None) -> Amounts:
    return {name: int(text) for name, text in (quantities or {}).items()}


def _sum(parts: list[Amounts]) -> Amounts:
    found: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            found[name] = found.get(name, 0) + amount
    return found


def _most(parts: list[Amounts]) -> Amounts:
    found: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            found[name] = max(found.get(name, 0), amount)
    return found


# Where it may run


def may_run(pod: Json, node: Json, volumes: list[Json]) -> bool:
    """Whatever is free there. `volumes` are those that it mounts."""
    spec = pod["spec"]
    labels = node["metadata"]["labels"]
    for key, value in spec.get("nodeSelector", {}).items():
        if labels.get(key) != value:
            return False
    affinity = spec.get("affinity", {}).get("nodeAffinity", {})
    wanted = [affinity.get("requiredDuringSchedulingIgnoredDuringExecution")]
    wanted += [volume["spec"].get("nodeAffinity", {}).get("required") for volume in volumes]
    for selector in wanted:
        if selector is not None and not _any_term(selector["nodeSelectorTerms"], node):
            return False
    taints = list(node["spec"].get("taints", []))
    if node["spec"].get("unschedulable"):
        taints.append(_CORDONED)
    hard = [taint for taint in taints if taint["effect"] in _HARD_EFFECTS]
    return all(_is_tolerated(taint, spec.get("tolerations", [])) for taint in hard)


def _any_term(terms: list[Json], node: Json) -> bool:
    for term in terms:
        expressions = term.get("matchExpressions", [])
        fields = term.get("matchFields", [])
        if not expressions and not fields:
            continue  # an empty term selects nothing
        fits = [_holds(each, node["metadata"]["labels"]) for each in expressions]
        fits += [_holds(each, {"metadata.name": node["metadata"]["name"]}) for each in fields]
        if all(fits):
            return True
    return False


def _holds(expression: Json, labels: dict[str, str]) -> bool:
    key, values = expression["key"], expression.get("values", [])
    is_there = key in labels
    match expression["operator"]:
        case "In":
            return is_there and labels[key] in values
        case "NotIn":
            return not is_there or labels[key] not in values
        case "Exists":
            return is_there
        case "DoesNotExist":
            return not is_there
        case "Gt":
            return is_there and _compare(labels[key], values[0]) > 0
        case "Lt":
            return is_there and _compare(labels[key], values[0]) < 0
    raise AssertionError(expression)


def _compare(left: str, right: str) -> int:
    """0 where one of them is no number."""
    try:
        return int(left) - int(right)
    except ValueError:
        return 0


def _is_tolerated(taint: Json, tolerations: list[Json]) -> bool:
    return any(_covers(each, taint) for each in tolerations)


def _covers(toleration: Json, taint: Json) -> bool:
    """Numbers are compared only if they are written without zeros in front."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    value = taint.get("value", "")
    match toleration.get("operator", "Equal"):
        case "Exists":
            return True
        case "Equal":
            return bool(toleration.get("value", "") == value)
        case "Gt":
            return value[:1] != "0" and _compare(value, toleration["value"]) > 0
        case "Lt":
            return value[:1] != "0" and _compare(value, toleration["value"]) < 0
    raise AssertionError(toleration)
