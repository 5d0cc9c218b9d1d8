"""What a pod asks of a node, out of a pod template: requests, selectors, tolerations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.admission.reading import known_fields
from scheduler.admission.reading.placement import KEPT, read_affinity, read_toleration
from scheduler.admission.reading.pod_rules import read_spread
from scheduler.admission.reading.reader import Reader, shown
from scheduler.domain.pod_requests import InitContainer, pod_requests
from scheduler.domain.resources import NOTHING, Resources, format_quantity
from scheduler.domain.unsupported import unsupported_parts

RUN_SECONDS = "fumarole.io/run-seconds"
EXIT_CODE = "fumarole.io/exit-code"
_LONGEST_RUN = 10 * 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """`requests` is what all containers ask for together, without the one of `pods`.

    `raw` is the template as it came. `spread` are its topology spread constraints, `unsupported`
    names what it asks for and no session can honour.

    `run_seconds` and `exit_code` tell a simulated cluster how long it runs and how it ends; None is
    up to the cluster.
    """

    requests: Resources = NOTHING
    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: Mapping[str, object] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, str], ...] = ()
    spread: tuple[Mapping[str, object], ...] = ()
    unsupported: tuple[str, ...] = ()
    priority_class: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    run_seconds: float | None = None
    exit_code: int = 0
    raw: Mapping[str, object] = field(default_factory=dict)


def read_template(reader: Reader, value: object, path: str) -> PodTemplate:
    """`path` is "" for a pod, whose spec stands at the top."""
    template = reader.mapping(value, path or "the object")
    if path:
        here = f"{path}."
    else:
        here = ""
    metadata = reader.mapping(template.get("metadata"), f"{here}metadata")
    spec = reader.mapping(template.get("spec"), f"{here}spec")
    at = f"{here}spec"
    reader.unknown_fields(template, known_fields.TEMPLATE, path, KEPT)
    reader.unknown_fields(spec, known_fields.POD_SPEC, at, KEPT)
    if path:  # a pod's own is looked at with the other things that all objects have
        reader.unknown_fields(metadata, known_fields.METADATA, f"{here}metadata", KEPT)
    labels = reader.texts(metadata.get("labels"), f"{here}metadata.labels")
    annotations = reader.texts(metadata.get("annotations"), f"{here}metadata.annotations")
    marks = {**labels, **annotations}
    return PodTemplate(
        requests=_read_requests(reader, spec, at),
        node_selector=reader.texts(spec.get("nodeSelector"), f"{at}.nodeSelector"),
        affinity=read_affinity(reader, spec.get("affinity"), f"{at}.affinity"),
        tolerations=tuple(
            read_toleration(reader, item, f"{at}.tolerations[{index}]")
            for index, item in _entries_of(reader, spec, at, "tolerations")
        ),
        spread=read_spread(
            reader, spec.get("topologySpreadConstraints"), f"{at}.topologySpreadConstraints"
        ),
        unsupported=unsupported_parts(spec),
        priority_class=reader.name(
            spec.get("priorityClassName"), f"{at}.priorityClassName", required=False
        ),
        labels=labels,
        annotations=annotations,
        run_seconds=_read_mark(reader, marks, RUN_SECONDS, _LONGEST_RUN, here),
        exit_code=int(_read_mark(reader, marks, EXIT_CODE, 255, here) or 0),
        raw=template,
    )


def _read_mark(
    reader: Reader,
    marks: Mapping[str, str],
    key: str,
    most: int,
    here: str,
) -> float | None:
    """A number that stands in an annotation or, there being none, in a label."""
    text = marks.get(key)
    if not text:
        return None
    number = _read_number(text)
    if number is None or not 0 <= number <= most:
        message = f"{key} is {shown(text)}; it must be a number from 0 to {most}."
        reader.refuse(
            "invalid_value",
            f"{here}metadata.annotations[{key}]",
            message,
            "write a number such as 60",
        )
        return None
    return number


def _read_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _entries_of(
    reader: Reader,
    spec: Mapping[str, object],
    path: str,
    key: str,
) -> list[tuple[int, object]]:
    return list(enumerate(reader.items(spec.get(key), f"{path}.{key}")))


def _read_requests(reader: Reader, spec: Mapping[str, object], path: str) -> Resources:
    """What it takes on a node; see `pod_requests`."""
    containers: list[Resources] = []
    for index, item in _entries_of(reader, spec, path, "containers"):
        containers.append(_of_container(reader, item, f"{path}.containers[{index}]"))
    init_containers: list[InitContainer] = []
    for index, item in _entries_of(reader, spec, path, "initContainers"):
        requests = _of_container(reader, item, f"{path}.initContainers[{index}]")
        init_containers.append(InitContainer(requests, is_sidecar(item)))
    whole = reader.mapping(spec.get("resources"), f"{path}.resources")
    return pod_requests(
        containers,
        init_containers,
        of_pod=_amounts_at_least_zero(reader, whole, "requests", f"{path}.resources"),
        limits_of_pod=_amounts_at_least_zero(reader, whole, "limits", f"{path}.resources"),
        overhead=reader.resources(spec.get("overhead"), f"{path}.overhead"),
    )


def is_sidecar(container: object) -> bool:
    """Of an init container: whether it runs on beside the others."""
    return isinstance(container, Mapping) and container.get("restartPolicy") == "Always"


def _amounts_at_least_zero(
    reader: Reader,
    resources: Mapping[str, object],
    key: str,
    path: str,
) -> Resources:
    amounts = reader.resources(resources.get(key), f"{path}.{key}")
    for name, amount in amounts.items():
        if amount < 0:
            where = f"{path}.{key}.{name}"
            reader.refuse(
                "negative_quantity", where, f"{where} must be 0 or more.", "write 0 or more"
            )
    return amounts.clamped_at_zero()


def _of_container(reader: Reader, value: object, path: str) -> Resources:
    """A limit without a request is the request."""
    container = reader.mapping(value, path)
    reader.unknown_fields(container, known_fields.CONTAINER, path, KEPT)
    resources = reader.mapping(container.get("resources"), f"{path}.resources")
    reader.unknown_fields(resources, known_fields.CONTAINER_RESOURCES, f"{path}.resources", KEPT)
    limits = reader.resources(resources.get("limits"), f"{path}.resources.limits")
    requests = reader.resources(resources.get("requests"), f"{path}.resources.requests")
    asked = Resources({**limits, **requests})
    for name, amount in asked.items():
        if amount < 0:
            where = f"{path}.resources.requests.{name}"
            reader.refuse(
                "negative_quantity", where, f"{where} must be 0 or more.", "write 0 or more"
            )
    _refuse_above_limits(reader, requests, limits, f"{path}.resources.requests")
    return asked.clamped_at_zero()


def _refuse_above_limits(reader: Reader, requests: Resources, limits: Resources, path: str) -> None:
    for name, amount in requests.items():
        if name in limits and amount > limits[name]:
            asked = format_quantity(name, amount)
            most = format_quantity(name, limits[name])
            message = f"{path}.{name} is {asked}, more than the container's limit of {most}."
            reader.refuse(
                "request_exceeds_limit",
                f"{path}.{name}",
                message,
                f"ask for {most} at most, or raise the limit",
            )
