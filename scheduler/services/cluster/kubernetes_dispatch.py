"""Decisions carried out on a Kubernetes cluster: pods are bound to nodes and evicted from them.

A chunk at a time, by many threads. What the server says is written as it comes. A doubt is settled
by a look at the pod, and as long as nobody knows, the pod keeps its room: it is never taken for
waiting because an answer got lost. A decision that is no longer true is left out, and nothing is
begun long after it was claimed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial

from scheduler.clusters.kubernetes.binding import (
    BINDING_THREADS,
    BindOrder,
    bind_pod,
    look_at_pod,
)
from scheduler.clusters.kubernetes.client import Client
from scheduler.clusters.kubernetes.eviction import EvictOrder, delete_pod, evict_pod
from scheduler.conf import DELETE, conf
from scheduler.models import Decision, Pod
from scheduler.selectors.cluster.mirror import may_decide
from scheduler.selectors.records.feeds import evictions_decided
from scheduler.services.cluster.api_client import client_of_process
from scheduler.services.cluster.decision_claims import (
    claim_decisions,
    give_back,
    renew_claims,
)
from scheduler.services.cluster.kubernetes_answers import (
    Answer,
    finish_decisions,
    is_doubt,
    put_off,
    write_answers,
)
from scheduler.services.cluster.turns import Turn

CHUNK = 500
RENEW_SECONDS = 5.0
"""So often answers are written, and claims renewed, while a chunk is under way."""
_BIND_FIRST_SECONDS = 1.0

Order = Callable[[Client], Answer]


def dispatch_to_cluster() -> int:
    """Everything that is open, oldest first. How many decisions were carried out."""
    done = 0
    while may_decide():
        turn = Turn()
        decisions = claim_decisions(CHUNK)
        if not decisions:
            break
        done += carry_out(client_of_process(), decisions, turn)
        if turn.is_in_trouble:
            break
    return done


def carry_out(client: Client, decisions: Sequence[Decision], turn: Turn) -> int:
    """How many of them are not in doubt any more."""
    decisions = _without_those_that_wait(decisions)
    orders = _orders(decisions)
    finish_decisions([each for each in decisions if each.pk not in orders])
    answered = len(decisions) - len(orders)
    if not orders:
        return answered
    with ThreadPoolExecutor(min(BINDING_THREADS, len(orders)), "dispatch") as pool:
        asked: dict[Future[Answer | None], Decision] = {}
        for decision in decisions:
            if decision.pk in orders:
                asked[pool.submit(_ask, client, orders[decision.pk], turn)] = decision
        return answered + _await_answers(asked, turn)


def _without_those_that_wait(decisions: Sequence[Decision]) -> list[Decision]:
    """A pod that is to be stopped while another dispatcher binds it: that comes first."""
    starting = []
    for each in decisions:
        if each.pod_id is not None and _is_eviction_to_do(each) and _is_starting(each):
            starting.append(each.pod_id)
    if not starting:
        return list(decisions)
    ours = [each.pk for each in decisions]
    binds = Decision.objects.filter(kind=Decision.BIND, done_at=None, pod_id__in=starting)
    others = binds.exclude(claimed_at=None).exclude(pk__in=ours)
    under_way = set(others.values_list("pod_id", flat=True))
    waiting = [each for each in decisions if each.pod_id in under_way and _is_eviction_to_do(each)]
    put_off(waiting, "the pod is just being bound", _BIND_FIRST_SECONDS)
    return [each for each in decisions if each not in waiting]


def _is_starting(decision: Decision) -> bool:
    return decision.pod is not None and decision.pod.started_at is None


def _ask(client: Client, order: Order, turn: Turn) -> Answer | None:
    """None if it was not begun."""
    if not turn.may_begin():
        return None
    answer = order(client)
    turn.note(answer, is_doubt=is_doubt(answer))
    return answer


def _await_answers(asked: Mapping[Future[Answer | None], Decision], turn: Turn) -> int:
    waiting = set(asked)
    settled = 0
    while waiting:
        ready, waiting = wait(waiting, timeout=RENEW_SECONDS)
        answers = []
        not_begun = []
        for each in ready:
            answer = each.result()
            if answer is None:
                not_begun.append(asked[each])
            else:
                answers.append((asked[each], answer))
        write_answers(answers)
        _leave_for_later(not_begun, turn)
        settled += sum(1 for _, answer in answers if not is_doubt(answer))
        renew_claims(asked[each] for each in waiting)
    return settled


def _leave_for_later(decisions: Sequence[Decision], turn: Turn) -> None:
    """A server in trouble is left alone for a while. Else the next turn looks at nodes again."""
    if turn.is_in_trouble:
        put_off(decisions, "the API server does not answer", turn.pause)
    else:
        give_back(decisions)


# Orders


def _orders(decisions: Sequence[Decision]) -> dict[int, Order]:
    """By the number of the decision. Those that are no longer true have none."""
    grounds = _grounds(decisions)
    orders: dict[int, Order] = {}
    for decision in decisions:
        if _is_bind_to_do(decision):
            orders[decision.pk] = _bind_order(decision)
        elif _is_eviction_to_do(decision):
            orders[decision.pk] = _evict_order(decision, grounds.get(decision.pk, ""))
    return orders


def _grounds(decisions: Sequence[Decision]) -> dict[int, str]:
    """Why a pod is evicted, in the words of the pages."""
    records = evictions_decided(decisions)
    found: dict[int, str] = {}
    for decision in decisions:
        record = records.get((decision.session_id, decision.pod_name))
        if record is not None:
            found[decision.pk] = record.reason
    return found


def _is_bind_to_do(decision: Decision) -> bool:
    """The pod waits for just this node, or for one that has gone meanwhile."""
    pod = decision.pod
    if decision.kind != Decision.BIND or pod is None or pod.phase != "Binding":
        return False
    return pod.node is None or pod.node.name == decision.node_name


def _is_eviction_to_do(decision: Decision) -> bool:
    pod = decision.pod
    return decision.kind == Decision.EVICT and pod is not None and pod.phase == "Releasing"


def _bind_order(decision: Decision) -> Order:
    """The server checks neither the node nor its room: a node that is lost is not asked for."""
    pod = decision.pod
    assert pod is not None
    order = BindOrder(str(pod.uid), pod.namespace, pod.name, decision.node_name)
    problem = _problem_of_node(pod)
    if problem:
        return partial(look_at_pod, order=order, why=f"node {decision.node_name} {problem}")
    return partial(bind_pod, order=order)


def _problem_of_node(pod: Pod) -> str:
    node = pod.node
    if node is None:
        return "is gone"
    if not node.ready:
        return "is not ready"
    if node.unschedulable:
        return "is cordoned"
    return ""


def _evict_order(decision: Decision, grounds: str) -> Order:
    pod = decision.pod
    assert pod is not None
    order = EvictOrder(
        uid=str(pod.uid),
        namespace=pod.namespace,
        name=pod.name,
        reason=_REASONS.get(decision.action, "PreemptionByScheduler"),
        message=grounds or pod.message or f"evicted by Fumarole ({decision.action})",
        may_have_no_node=_is_starting(decision),
    )
    if conf().kubernetes.evicts_by == DELETE:
        return partial(delete_pod, order=order)
    return partial(evict_pod, order=order)


_REASONS = {
    "reclaim": "ReclaimByScheduler",
    "shed": "ReclaimByScheduler",
    "release": "GangReleasedByScheduler",
}
"""Of the condition DisruptionTarget, by the action. For preemption Kubernetes has a word."""
