"""Volcano's objects: queues, podgroups, jobs and commands."""

from __future__ import annotations

from typing import Any

from scheduler.admission.defaults import gang_defaults, with_defaults
from scheduler.admission.facts import Facts
from scheduler.admission.reading import queue as queue_reading
from scheduler.admission.reading import workload as workload_reading
from scheduler.admission.violations import Violation
from scheduler.clusters.kubernetes.queue_definition import STATE, with_fields_from_annotations
from scheduler.clusters.kubernetes.read.common import (
    Raw,
    read_amounts,
    read_conditions,
    read_meta,
    read_moment,
    section,
)
from scheduler.clusters.kubernetes.values import (
    CommandObject,
    JobObject,
    PodGroupObject,
    QueueObject,
)
from scheduler.domain.lifecycle import REQUESTABLE_STATES
from scheduler.domain.queues import DEFAULT
from scheduler.domain.resources import Resources

_QUOTA_NAMES = ("count/", "requests.", "limits.")
"""Volcano's controller also writes minimums under the names that a ResourceQuota has for them."""


def read_queue(raw: Raw) -> QueueObject:
    """As admission reads it, but nothing is refused."""
    meta = read_meta(raw)
    reading = queue_reading.read_queue(with_fields_from_annotations(raw), imported=True)
    if reading.value is None:
        raise ValueError("; ".join(_flaws(reading.violations)))
    status = section(raw, "status")
    return QueueObject(
        meta=meta,
        spec=reading.value.spec,
        named_state=_named_state(raw),
        is_state_annotated=_named_state(raw) is not None and not section(raw, "spec").get(STATE),
        state=status.get("state", ""),
        status=status,
        flaws=_flaws(reading.violations),
    )


def _named_state(raw: Raw) -> str | None:
    """The state that the queue itself asks for, in `spec.state` or else in the annotation."""
    state = with_fields_from_annotations(raw).get("spec", {}).get(STATE)
    if state in [each.value for each in REQUESTABLE_STATES]:
        return str(state)
    return None


def _flaws(violations: tuple[Violation, ...]) -> tuple[str, ...]:
    return tuple(violation.message for violation in violations)


def read_podgroup(raw: Raw) -> PodGroupObject:
    spec = section(raw, "spec")
    status = section(raw, "status")
    return PodGroupObject(
        meta=read_meta(raw),
        queue=spec.get("queue") or DEFAULT,
        min_member=spec.get("minMember", 1),
        min_task_member=section(spec, "minTaskMember"),
        min_resources=_read_minimum(spec),
        priority_class=spec.get("priorityClassName", ""),
        network_topology=section(spec, "networkTopology"),
        phase=status.get("phase", ""),
        conditions=read_conditions(status),
        running=status.get("running", 0),
        succeeded=status.get("succeeded", 0),
        failed=status.get("failed", 0),
    )


def _read_minimum(spec: Raw) -> Resources | None:
    """None where it is not set, which is not the same as nothing."""
    given = spec.get("minResources")
    if given is None:
        return None
    amounts = {}
    for name, amount in given.items():
        if not name.startswith(_QUOTA_NAMES):
            amounts[name] = amount
    return read_amounts(amounts)


def read_job(raw: Raw) -> JobObject:
    """As admission reads it.

    Usually a webhook has written the defaults into the object. Without one the size of the gang and
    the names of tasks may be missing.
    """
    filled = with_defaults(raw, gang_defaults(raw))
    reading = workload_reading.read_job(filled, Facts(), is_new=False)
    if reading.value is None:
        raise ValueError("; ".join(_flaws(reading.violations)))
    status = section(raw, "status")
    state: Any = section(status, "state")
    return JobObject(
        meta=read_meta(raw),
        job=reading.value,
        phase=state.get("phase", ""),
        phase_since=read_moment(state.get("lastTransitionTime")),
        message=state.get("message", ""),
        retry_count=status.get("retryCount", 0),
        version=status.get("version", 0),
        status=status,
        flaws=_flaws(reading.violations),
    )


def read_command(raw: Raw) -> CommandObject:
    """A command has its fields at the top. Its target is in the namespace of the command."""
    meta = read_meta(raw)
    target = section(raw, "target")
    return CommandObject(
        meta=meta,
        action=raw.get("action", ""),
        target_kind=target.get("kind", ""),
        target_name=target.get("name", ""),
        target_namespace=meta.namespace,
        target_uid=target.get("uid", ""),
        reason=raw.get("reason") or raw.get("message") or "",
    )
