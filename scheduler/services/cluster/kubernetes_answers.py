"""What the API server said to orders, brought into the database.

A pod that was to be bound goes on waiting only if the server was asked and says that it has no
node. What a dispatcher says that was overtaken by another counts only where it is a fact that
stays true.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet

from scheduler import notify
from scheduler.clusters.kubernetes.binding import BindAnswer, BindResult
from scheduler.clusters.kubernetes.eviction import EvictAnswer, EvictResult
from scheduler.models import Decision, Node, Pod
from scheduler.models.bulk import as_parameter, execute, values_table
from scheduler.models.clock import database_now
from scheduler.services.cluster.decision_claims import LONGEST_PAUSE_SECONDS, still_claimed
from scheduler.services.cluster.half_bound import note_half_bound
from scheduler.services.locks import alone_with_pods
from scheduler.services.records.events import EventNote, record_events
from scheduler.services.sessions.requests import want_session

Answer = BindAnswer | EvictAnswer
Answers = Sequence[tuple[Decision, Answer]]

ATTEMPTS_AT_ONE_NODE = 4
"""So often a pod is offered to the same node, before another is looked for."""
PATIENCE_WITH_BUDGET = timedelta(minutes=10)
"""For so long an eviction is tried again that a disruption budget holds back."""
_HELD_SECONDS = 10.0
_LONGEST_MESSAGE = 512
_MOST_SECONDS = 30.0

_DOUBTS = (BindResult.UNKNOWN, EvictResult.FAILED)
_LASTING_FACTS = (
    BindResult.BOUND,
    BindResult.ELSEWHERE,
    BindResult.GONE,
    EvictResult.LEAVING,
    EvictResult.GONE,
)
"""The others may be old news by the time that they are written."""


def is_doubt(answer: Answer) -> bool:
    """Whether nobody knows what became of the order."""
    return answer.result in _DOUBTS


@transaction.atomic
def write_answers(answers: Answers) -> None:
    if not answers:
        return
    alone_with_pods()
    answers = _that_count(answers)
    now = database_now()
    later = []
    settled = []
    for decision, answer in answers:
        if _is_for_later(decision, answer, now):
            later.append((decision, answer))
        else:
            settled.append((decision, answer))
    _write_bound(settled)
    _write_elsewhere(settled)
    _write_waiting(settled)
    _write_kept(settled)
    _remove_gone(settled)
    _write_held(later)
    _put_off(later, now)
    _finish(settled, now)
    note_half_bound(_broken_gangs(settled), now)
    _record(answers, now)
    _tell(settled)


def _that_count(answers: Answers) -> Answers:
    ours = still_claimed(decision for decision, _ in answers)
    found = []
    for decision, answer in answers:
        if decision.pk in ours:
            found.append((decision, answer))
        elif answer.result in _LASTING_FACTS:
            found.append((decision, _as_a_fact(answer)))
    return found


def _as_a_fact(answer: Answer) -> Answer:
    """The pod may have been given to another node here meanwhile: it is where the server says."""
    if isinstance(answer, BindAnswer) and answer.result is BindResult.BOUND:
        return replace(answer, result=BindResult.ELSEWHERE)
    return answer


def _is_for_later(decision: Decision, answer: Answer, now: datetime) -> bool:
    """Asked again, with the room kept meanwhile."""
    match answer.result:
        case BindResult.UNKNOWN | EvictResult.FAILED:
            return True
        case BindResult.NOT_BOUND:
            return decision.attempts < ATTEMPTS_AT_ONE_NODE and not _is_lost_node(decision)
        case EvictResult.HELD:
            return now - decision.created_at < PATIENCE_WITH_BUDGET
    return False


def _is_lost_node(decision: Decision) -> bool:
    pod = decision.pod
    if pod is None or pod.node is None:
        return True
    return not pod.node.ready or pod.node.unschedulable


# Pods


def _pods_with(answers: Answers, *results: BindResult | EvictResult) -> list[int]:
    found = []
    for decision, answer in answers:
        if answer.result in results and decision.pod_id is not None:
            found.append(decision.pod_id)
    return found


def _write_bound(answers: Answers) -> None:
    bound = _pods_with(answers, BindResult.BOUND)
    Pod.objects.filter(pk__in=bound, phase="Binding").update(phase="Bound")


def _write_elsewhere(answers: Answers) -> None:
    """Another scheduler was first. That is a fact as any that the mirror brings."""
    for decision, answer in answers:
        if isinstance(answer, BindAnswer) and answer.result is BindResult.ELSEWHERE:
            node = Node.objects.filter(name=answer.node).first()
            pods = Pod.objects.filter(pk=decision.pod_id or 0, phase="Binding")
            pods.update(phase="Bound", node=node, borrowed=False)


def _write_waiting(answers: Answers) -> None:
    refused = _pods_with(answers, BindResult.NOT_BOUND)
    _wait_again(Pod.objects.filter(pk__in=refused, phase="Binding"))
    never_bound = _pods_with(answers, EvictResult.NOT_PLACED)
    _wait_again(Pod.objects.filter(pk__in=never_bound, phase="Releasing"))


def _wait_again(pods: QuerySet[Pod]) -> None:
    pods.update(phase="Pending", node=None, borrowed=False, bound_at=None)


def _write_kept(answers: Answers) -> None:
    """A budget held it for too long: it stays where it is."""
    kept = Pod.objects.filter(pk__in=_pods_with(answers, EvictResult.HELD), phase="Releasing")
    kept.filter(started_at=None).update(phase="Bound", message="")
    kept.exclude(started_at=None).update(phase="Running", message="")


def _write_held(answers: Answers) -> None:
    """Pages show it beside the pod."""
    for decision, answer in answers:
        if answer.result is EvictResult.HELD and answer.message[:512] != decision.error:
            message = f"Its eviction waits: {answer.message}"[:_LONGEST_MESSAGE]
            Pod.objects.filter(pk=decision.pod_id or 0, phase="Releasing").update(message=message)


def _remove_gone(answers: Answers) -> None:
    gone = _pods_with(answers, BindResult.GONE, EvictResult.GONE)
    Pod.objects.filter(pk__in=gone, phase__in=("Binding", "Releasing")).delete()


def _broken_gangs(answers: Answers) -> set[int]:
    """Podgroups that did not get a pod which they were to get."""
    lost = (BindResult.NOT_BOUND, BindResult.GONE)
    found = set()
    for decision, answer in answers:
        if answer.result in lost and decision.pod is not None:
            found.add(decision.pod.podgroup_id)
    return found


# Decisions


def finish_decisions(decisions: Iterable[Decision]) -> None:
    """They are no longer true, or carried out."""
    ids = [decision.pk for decision in decisions]
    if ids:
        Decision.objects.filter(pk__in=ids).update(done_at=database_now(), retry_at=None)


def _finish(answers: Answers, now: datetime) -> None:
    finish_decisions(decision for decision, _ in answers)
    _write_errors([(decision, answer.message, None) for decision, answer in answers], now)


def put_off(decisions: Iterable[Decision], error: str, pause: float | None = None) -> None:
    """They were not begun. The pause is the usual one, unless the server asked for another."""
    rows: list[tuple[Decision, str, float | None]] = []
    for decision in decisions:
        seconds = _usual_pause(decision)
        if pause is not None:
            seconds = min(pause, LONGEST_PAUSE_SECONDS / 2)
        rows.append((decision, error, seconds))
    _write_errors(rows, database_now())


def _put_off(answers: Answers, now: datetime) -> None:
    rows = [(decision, answer.message, _pause(decision, answer)) for decision, answer in answers]
    _write_errors(rows, now)


def _pause(decision: Decision, answer: Answer) -> float:
    """As the server says; else longer and longer."""
    if answer.retry_after is not None:
        return min(answer.retry_after, LONGEST_PAUSE_SECONDS / 2)
    if answer.result is EvictResult.HELD:
        return _HELD_SECONDS
    return _usual_pause(decision)


def _usual_pause(decision: Decision) -> float:
    return float(min(2.0 ** min(decision.attempts - 1, 10), _MOST_SECONDS))


def _write_errors(rows: Sequence[tuple[Decision, str, float | None]], now: datetime) -> None:
    """With a pause, the decision is free again after it."""
    changes = []
    for decision, error, pause in rows:
        if pause is None and not error:
            continue
        retry_at = None
        if pause is not None:
            retry_at = now + timedelta(seconds=pause)
        changes.append({"id": decision.pk, "error": error[:512], "retry_at": retry_at})
    if not changes:
        return
    table = values_table("d", {"id": "bigint", "error": "text", "retry_at": "timestamptz"})
    execute(
        "UPDATE scheduler_decision SET error = d.error, retry_at = d.retry_at, "
        "claimed_at = CASE WHEN d.retry_at IS NULL THEN claimed_at ELSE NULL END "
        f"FROM {table} WHERE scheduler_decision.id = d.id",
        [as_parameter(changes)],
    )


# News


def _record(answers: Answers, now: datetime) -> None:
    """Once, however often it is tried."""
    notes = []
    for decision, answer in answers:
        reason = _EVENTS.get(answer.result)
        if reason is None or answer.message[:512] == decision.error:
            continue
        namespace, _, name = decision.pod_name.rpartition("/")
        notes.append(
            EventNote(
                kind="Pod",
                name=name,
                namespace=namespace,
                reason=reason,
                message=answer.message,
                queue=decision.queue_name,
                warning=True,
            )
        )
    record_events(notes, now)


_EVENTS = {
    BindResult.NOT_BOUND: "FailedBinding",
    BindResult.ELSEWHERE: "FailedBinding",
    BindResult.UNKNOWN: "FailedBinding",
    EvictResult.HELD: "EvictionHeld",
    EvictResult.FAILED: "EvictionFailed",
}


def _tell(answers: Answers) -> None:
    if not answers:
        return
    notify.jobs_changed({decision.podgroup_name for decision, _ in answers})
    nodes = {decision.node_name for decision, _ in answers if decision.node_name}
    if nodes:
        notify.nodes_changed(nodes)
    if _pods_with(answers, *_CHANGE_ROOM):
        want_session()


_CHANGE_ROOM = (
    BindResult.NOT_BOUND,
    BindResult.GONE,
    BindResult.ELSEWHERE,
    EvictResult.GONE,
    EvictResult.NOT_PLACED,
)
