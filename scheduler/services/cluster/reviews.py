"""Admission as the API server asks for it. Reads only.

A mirrored cluster is judged by its mirror, which is a moment behind. So the mirror alone refuses
nothing: before a refusal, and while the cluster is not heard, the queues are read from the API
server, once. What was allowed by a mirror that was behind becomes a warning on the queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from scheduler.admission.defaults import Defaults
from scheduler.admission.facts import Facts
from scheduler.admission.reading.queue import name_of, state_of
from scheduler.admission.reviews import Request
from scheduler.admission.rules.queue_deletion import PROTECTED
from scheduler.admission.violations import Notice, Verdict, Violation
from scheduler.clusters.kubernetes.queue_definition import ANNOTATIONS, STATE, value_of
from scheduler.clusters.kubernetes.values import QueueObject
from scheduler.conf import conf, is_kubernetes
from scheduler.domain.lifecycle import REQUESTABLE_STATES, derive
from scheduler.domain.queues import QueueSpec, QueueState, QueueTree
from scheduler.selectors.cluster.mirror import is_volcano_opening_queues, mirror_facts
from scheduler.selectors.files import reviews
from scheduler.selectors.queues.facts import live_podgroups
from scheduler.services.cluster.live import live_queues, own_account, readable_queue
from scheduler.services.cluster.mirror.membership import BUILT_IN_QUEUES

OWNER = ANNOTATIONS["owner"]
OWNER_FIELD = f"metadata.annotations[{OWNER}]"
LONGEST_OWNER = 150
_OWNER_STAYS = Verdict(
    (
        Violation(
            "owner_is_fixed",
            "",
            OWNER_FIELD,
            f"The annotation {OWNER} says whose work it is, and does not change.",
            "leave it as it is, or delete the job and create it as its new owner",
        ),
    )
)
_MASTERS = "system:masters"  # may do everything in the cluster anyway
_QUEUE_RULES_OF_WORK = frozenset({"queue_not_found", "queue_not_leaf", "queue_not_open"})


def review_now(kind: str, request: Request) -> Verdict:
    """May this happen? `kind` is queues, jobs, podgroups or pods."""
    if not is_kubernetes():
        return reviews.review_now(kind, request)
    if kind != "queues" and _gives_away(request):
        return _OWNER_STAYS
    asked = _as_meant(kind, request)
    tree, facts = reviews.scene_for(kind, asked)
    facts = replace(facts, scheduler_names=frozenset(conf().kubernetes.scheduler_names))
    verdict = _judge(kind, asked, tree, facts)
    if _stands(kind, verdict) and _is_mirror_heard():
        return verdict
    queues = live_queues()
    if queues is None:
        return verdict
    return _judge(kind, asked, *_with_live_queues(tree, facts, queues))


def defaults_now(kind: str, request: Request) -> tuple[Verdict, Defaults]:
    """What would be filled in; `kind` is queues, jobs or podgroups."""
    if not is_kubernetes():
        return reviews.defaults_now(kind, request)
    verdict, defaults = reviews.defaults_now(kind, _as_meant(kind, request))
    if kind == "queues" and verdict.allowed:
        defaults = [*defaults, *_state_kept(request.new)]
    if kind in ("jobs", "podgroups") and verdict.allowed:
        defaults = [*defaults, *_owner_noted(kind, request)]
        verdict = replace(verdict, notices=(*verdict.notices, *_owner_notices(request)))
    return verdict, defaults


def _owner_noted(kind: str, request: Request) -> Defaults:
    """Whose job it is, for the limits of each user. The console has noted it itself."""
    named = _owner_in(request.new)
    owner = _owner_of(request)[:LONGEST_OWNER]
    if not owner or owner == named or (not named and _is_for_others(kind, request)):
        return []
    return [(("metadata", "annotations", OWNER), owner)]


def _is_for_others(kind: str, request: Request) -> bool:
    """Made by a program for work whose owner, if any, is noted elsewhere.

    Whoever else leaves the owner out is the owner, or their work would count for nobody.
    """
    if kind != "podgroups":
        return False
    return _is_controller(request) or _is_by_console(request)


def _owner_notices(request: Request) -> Iterable[Notice]:
    """A controller that is not known as one would lose the owners of its jobs without a word."""
    named = _owner_in(request.new)
    owner = _owner_of(request)
    if named and owner != named:
        message = (
            f"The owner is noted as {owner}, not {named}. Only controllers whose accounts "
            "KUBERNETES_CONTROLLER_ACCOUNTS names may create work for others."
        )
        yield Notice("owner_is_creator", "", message, OWNER_FIELD)


def _owner_of(request: Request) -> str:
    """Whoever creates it. Only the console, and controllers for parts of jobs, name others."""
    named = _owner_in(request.new)
    if not named or not request.user:
        return named or request.user
    if _may_name_others(request):
        return named
    return request.user


def _may_name_others(request: Request) -> bool:
    return _is_by_console(request) or (_is_part(request.new) and _is_controller(request))


def _is_part(manifest: object) -> bool:
    """A podgroup or a pod of something else has the annotations of that."""
    return bool(_mapping_at(manifest, "metadata").get("ownerReferences"))


def _is_controller(request: Request) -> bool:
    """Owner references alone prove nothing: anybody can write them."""
    if _MASTERS in request.groups:
        return True
    for account in conf().kubernetes.controller_accounts:
        if account == request.user:
            return True
        if account.endswith("*") and request.user.startswith(account[:-1]):
            return True
    return False


def _is_by_console(request: Request) -> bool:
    return own_account() in ("", request.user)


def _gives_away(request: Request) -> bool:
    """A change of the owner by somebody who may not name others.

    Work without an owner can be taken, but not be given to somebody else.
    """
    if request.operation != "UPDATE" or not request.user:
        return False
    before = _owner_in(request.old)
    after = _owner_in(request.new)
    if before == after or (not before and after == request.user):
        return False
    return not _may_name_others(request)


def _owner_in(manifest: object) -> str:
    owner = _annotations_of(manifest).get(OWNER)
    if isinstance(owner, str) and owner.isprintable():
        return owner
    return ""


def _state_kept(manifest: object) -> Defaults:
    """Volcano's vcctl gives a new queue its state in the status, which the API server drops."""
    state = state_of(manifest)
    if state not in [each.value for each in REQUESTABLE_STATES] or _names_state(manifest):
        return []
    return [(("spec", "state"), state)]


def _stands(kind: str, verdict: Verdict) -> bool:
    """Whether other queues than those of the mirror could not change it."""
    if kind == "queues":
        return verdict.allowed
    return not any(found.rule_id in _QUEUE_RULES_OF_WORK for found in verdict.violations)


def _is_mirror_heard() -> bool:
    mirror = mirror_facts()
    return mirror is not None and mirror.synced and mirror.is_heard


def _judge(kind: str, request: Request, tree: QueueTree, facts: Facts) -> Verdict:
    if kind != "queues":
        return reviews.review_in(kind, request, tree, facts)
    name = request.name or name_of(request.old)
    if request.operation == "DELETE" and name and name not in tree and name not in PROTECTED:
        return Verdict()  # whatever it is, we do not count on it
    stored = readable_queue(request.old)
    if stored is not None:
        # the request has it as it is stored now; the mirror may have it as it was
        tree, facts = _with_queue(tree, facts, stored)
    return reviews.review_in(kind, request, tree, facts)


def _with_queue(tree: QueueTree, facts: Facts, queue: QueueObject) -> tuple[QueueTree, Facts]:
    newer = tree.with_queue(_spec_now(queue, follows_status=is_volcano_opening_queues()))
    unknown = facts.unknown - {queue.meta.name} | _unknown_among([queue])
    return newer, _with_derived_states(newer, replace(facts, unknown=unknown))


def _with_live_queues(
    tree: QueueTree, facts: Facts, queues: Iterable[QueueObject]
) -> tuple[QueueTree, Facts]:
    """All queues of the cluster in place of the mirrored ones."""
    specs: dict[str, QueueSpec] = {}
    for name in BUILT_IN_QUEUES:
        if name in tree:
            specs[name] = tree[name]
    found = list(queues)
    follows_status = is_volcano_opening_queues()
    for queue in found:
        specs[queue.meta.name] = _spec_now(queue, follows_status=follows_status)
    now = replace(facts, live_podgroups=live_podgroups(), unknown=_unknown_among(found))
    live = QueueTree(specs.values())
    return live, _with_derived_states(live, now)


def _spec_now(queue: QueueObject, *, follows_status: bool) -> QueueSpec:
    """With the state that counts, as the mirror has it: Volcano keeps it in the status."""
    return replace(queue.spec, state=queue.requested_state(follows_status=follows_status))


def _unknown_among(queues: Iterable[QueueObject]) -> frozenset[str]:
    unknown = QueueState.UNKNOWN.value
    return frozenset(queue.meta.name for queue in queues if queue.state == unknown)


def _with_derived_states(tree: QueueTree, facts: Facts) -> Facts:
    states = {}
    for name, standing in derive(tree, facts.live_podgroups, facts.unknown).items():
        states[name] = standing.state
    return replace(facts, states=states)


def _as_meant(kind: str, request: Request) -> Request:
    """Annotations count as the fields that Volcano's definition of queues lacks.

    Work is its owner's, whoever's account has sent it here.
    """
    if kind != "queues":
        return replace(request, user=_owner_of(request))
    new = _with_named_fields(request.new)
    return replace(request, new=new, old=_with_named_fields(request.old))


def _with_named_fields(manifest: object) -> object:
    """Unlike the mirror it takes every value, so that a wrong one is refused."""
    annotations = _annotations_of(manifest)
    spec = dict(_spec_of(manifest))
    for key, name in ANNOTATIONS.items():
        text = annotations.get(name)
        if isinstance(text, str) and text and not spec.get(key):
            spec[key] = value_of(key, text)
    if not isinstance(manifest, Mapping) or spec == _spec_of(manifest):
        return manifest
    return {**manifest, "spec": spec}


def _names_state(manifest: object) -> bool:
    named = _annotations_of(manifest).get(ANNOTATIONS[STATE])
    return bool(_spec_of(manifest).get(STATE) or named)


def _spec_of(manifest: object) -> Mapping[str, object]:
    return _mapping_at(manifest, "spec")


def _annotations_of(manifest: object) -> Mapping[str, object]:
    return _mapping_at(_mapping_at(manifest, "metadata"), "annotations")


def _mapping_at(value: object, key: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        return {}
    part = value.get(key)
    if isinstance(part, Mapping):
        return part
    return {}
