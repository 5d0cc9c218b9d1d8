"""One question for every door: may this operation on this object happen?

Answered from the manifests, the tree and the facts alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from scheduler.admission.defaults import Defaults, job_defaults, podgroup_defaults, queue_defaults
from scheduler.admission.facts import Facts
from scheduler.admission.reading.queue import name_of, read_queue, state_of
from scheduler.admission.reading.reader import shown
from scheduler.admission.rules.queue_deletion import check_delete
from scheduler.admission.rules.queues import verdict_on
from scheduler.admission.rules.workloads import (
    admit_job,
    admit_job_change,
    admit_pod,
    admit_podgroup,
    admit_podgroup_change,
)
from scheduler.admission.violations import Verdict, Violation
from scheduler.domain.queues import QueueTree


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked, and by whom.

    `name` is the one in the request, which a DELETE has instead of an object.
    """

    operation: str
    name: str = ""
    new: object = None
    old: object = None
    namespace: str = ""
    user: str = ""
    groups: frozenset[str] = frozenset()

    def completed(self) -> Request:
        """The object with what stands only in the request.

        That is its namespace, and a whole name where it gives only the start of one (generateName).
        """
        if isinstance(self.new, Mapping):
            metadata = self.new.get("metadata")
        else:
            metadata = None
        if not isinstance(self.new, Mapping) or not isinstance(metadata, Mapping):
            return self
        filled = dict(metadata)
        begun = metadata.get("generateName")
        if not metadata.get("name") and (self.name or isinstance(begun, str)):
            filled["name"] = self.name or f"{begun}x"
        if metadata.get("namespace") is None and self.namespace:
            filled["namespace"] = self.namespace
        return replace(self, new={**self.new, "metadata": filled})


_Review = Callable[[Request, QueueTree, Facts], Verdict]


def review(kind: str, request: Request, tree: QueueTree, facts: Facts) -> Verdict:
    """`kind` is the plural: queues, jobs, podgroups, pods.

    An operation that is not reviewed is refused.
    """
    answer = _REVIEWS[kind].get(request.operation)
    if answer and request.operation == "UPDATE" and _is_leaving(request.new):
        # it is being deleted and only its finalizers change: whatever is wrong with it goes with it
        return Verdict()
    if answer:
        return answer(request.completed(), tree, facts)
    return _invalid_operation(kind, request, tuple(_REVIEWS[kind]))


def _is_leaving(manifest: object) -> bool:
    if isinstance(manifest, Mapping):
        metadata = manifest.get("metadata")
    else:
        metadata = None
    return isinstance(metadata, Mapping) and bool(metadata.get("deletionTimestamp"))


def _invalid_operation(kind: str, request: Request, known: tuple[str, ...]) -> Verdict:
    message = (
        f"{shown(request.operation)} is not an operation on {kind} that is reviewed here; it must "
        f"be {' or '.join(known)}."
    )
    return Verdict((Violation("invalid_operation", "", "operation", message),))


def review_defaults(kind: str, request: Request, facts: Facts) -> tuple[Verdict, Defaults]:
    """What is filled in when the object is created; any other operation is refused."""
    if request.operation != "CREATE":
        return _invalid_operation(kind, request, ("CREATE",)), []
    return Verdict(), _DEFAULTS[kind](request.completed().new, facts)


def _create_queue(request: Request, tree: QueueTree, facts: Facts) -> Verdict:
    # what asks may have stored it already: it is judged as if it were new
    known = tree.without(name_of(request.new))
    return verdict_on(read_queue(request.new), known, facts, None)


def _update_queue(request: Request, tree: QueueTree, facts: Facts) -> Verdict:
    if request.old is not None:
        before = read_queue(request.old, imported=True).value
    else:
        before = None
    name = name_of(request.new)
    old = tree.queues.get(name)
    if before:
        old = before.spec
    if old is None:
        return Verdict(
            (
                Violation(
                    "queue_not_found",
                    name,
                    "metadata.name",
                    f"There is no queue {shown(name)} to change.",
                ),
            )
        )
    if old.name in tree:
        known = tree
    else:
        known = tree.with_queue(old)
    return verdict_on(
        read_queue(request.new, old, stored_state=state_of(request.old)),
        known,
        facts,
        old,
    )


def _delete_queue(request: Request, tree: QueueTree, facts: Facts) -> Verdict:
    name = request.name or name_of(request.old) or name_of(request.new)
    if not name:
        return Verdict(
            (
                Violation(
                    "name_required",
                    "",
                    "name",
                    "The request names no queue to delete: it has neither name nor oldObject.",
                ),
            )
        )
    return check_delete(name, tree, facts)


_REVIEWS: dict[str, dict[str, _Review]] = {
    "queues": {"CREATE": _create_queue, "UPDATE": _update_queue, "DELETE": _delete_queue},
    "jobs": {
        "CREATE": lambda request, tree, facts: admit_job(request.new, tree, facts),
        "UPDATE": lambda request, _, facts: admit_job_change(request.new, request.old, facts),
    },
    "podgroups": {
        "CREATE": lambda request, tree, facts: admit_podgroup(request.new, tree, facts),
        "UPDATE": lambda request, _, facts: admit_podgroup_change(request.new, request.old, facts),
    },
    "pods": {"CREATE": lambda request, tree, facts: admit_pod(request.new, tree, facts)},
}

_DEFAULTS: dict[str, Callable[[object, Facts], Defaults]] = {
    "queues": lambda manifest, _: queue_defaults(manifest),
    "jobs": job_defaults,
    "podgroups": podgroup_defaults,
}
