"""May work of this namespace go into that queue? See docs/decisions/0047-namespaces.md."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.admission.facts import Facts
from scheduler.admission.violations import Violation
from scheduler.domain.queues import DEFAULT


def check_namespace(queue: str, namespace: str, facts: Facts) -> Iterator[Violation]:
    """Every namespace may, until one is granted on the queue or above it: then only those may."""
    granting = [above for above in facts.queue_limits.get(queue, ()) if above.namespaces]
    named = namespace or DEFAULT
    if not granting or any(named in above.namespaces for above in granting):
        return
    source = granting[0].queue
    message = (
        f"Work of the namespace {named} may not go to {queue}: "
        f"only namespaces that were granted on {source} may, and {named} was not."
    )
    fix = f"use a namespace that may, or ask an admin of {source} to add {named}"
    yield Violation("namespace_not_granted", queue, "metadata.namespace", message, fix)
