"""All configuration as manifests, for an export: applied to an empty installation, it gives the
same configuration there, byte for byte.

Work is no configuration, and neither are the channels of notices: they hold secrets of their
owners. A new kind of object that admins set goes into `EXPORTED`, and its writer into
`services/files/configuration.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

from scheduler.admission.reading.queue import queue_manifest
from scheduler.conf import is_kubernetes
from scheduler.domain.calendar import WEEK, PlanState, Timetable
from scheduler.domain.change_sets import POLICY, POLICY_TEXT, THE_POLICY, SetState
from scheduler.models import (
    ChangePlan,
    ChangeSet,
    ClusterState,
    Grant,
    GroupMapping,
    Namespace,
    NoticeRule,
    PriceList,
    PriorityClass,
    Queue,
)
from scheduler.models.calendar import WALL
from scheduler.models.clock import database_now
from scheduler.selectors.change_sets.objects import policy_text_now
from scheduler.selectors.files.manifests import stored_namespace, stored_priority_class
from scheduler.selectors.queues.facts import spec_of

OURS: Final = "fumarole.io/v1"
THE_CLUSTER: Final = "cluster"
Manifest = dict[str, Any]


def configuration() -> list[Manifest]:
    """Everything, in the order in which it is applied."""
    found: list[Manifest] = []
    for kind, read in EXPORTED.items():
        if kind not in MIRRORED or not is_kubernetes():
            found += read()
    return found


def manifest_of(kind: str, name: str, spec: Manifest) -> Manifest:
    return {"apiVersion": OURS, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _namespaces() -> list[Manifest]:
    return [stored_namespace(row) for row in Namespace.objects.order_by("name")]


def _priority_classes() -> list[Manifest]:
    return [stored_priority_class(row) for row in PriorityClass.objects.order_by("name")]


def _queues() -> list[Manifest]:
    """Those above before those below."""
    rows = {queue.pk: queue for queue in Queue.objects.select_related("parent").order_by("name")}
    below: dict[int | None, list[Queue]] = {}
    for queue in rows.values():
        below.setdefault(queue.parent_id, []).append(queue)
    ordered: list[Queue] = []
    waiting = list(below.get(None, []))
    while waiting:
        queue = waiting.pop(0)
        ordered.append(queue)
        waiting += below.get(queue.pk, [])
    return [dict(queue_manifest(spec_of(queue))) for queue in ordered]


def _groups() -> list[Manifest]:
    """Their members are named with the users."""
    return [group_manifest(group) for group in Group.objects.order_by("name")]


def group_manifest(group: Group) -> Manifest:
    return manifest_of("Group", group.name, {})


def _users() -> list[Manifest]:
    users = get_user_model().objects.prefetch_related("groups").order_by("username")
    return [user_manifest(user) for user in users]


def user_manifest(user: Any) -> Manifest:
    """Without the password: whoever is imported gets one from an admin."""
    spec = {
        "email": user.email,
        "firstName": user.first_name,
        "lastName": user.last_name,
        "isActive": user.is_active,
        "isClusterAdmin": user.is_superuser,
        "groups": sorted(group.name for group in user.groups.all()),
    }
    return manifest_of("User", user.get_username(), spec)


def _grants() -> list[Manifest]:
    """Those that were given by hand: the others follow from the mappings at each sign-on."""
    rows = Grant.objects.select_related("user", "group", "queue").filter(
        queue__deleted_at=None, mapping=None
    )
    return sorted((grant_manifest(row) for row in rows), key=lambda one: one["metadata"]["name"])


def grant_manifest(grant: Grant) -> Manifest:
    if grant.user is not None:
        spec = {"user": grant.user.get_username()}
    else:
        assert grant.group is not None
        spec = {"group": grant.group.name}
    spec |= {"role": grant.role, "queue": grant.queue.name}
    return manifest_of("Grant", grant_name(spec), spec)


def grant_name(spec: Manifest) -> str:
    """It follows from what the grant says: there is only one of each."""
    if spec.get("user"):
        who = f"user:{spec['user']}"
    else:
        who = f"group:{spec.get('group', '')}"
    return f"{who}:{spec.get('role', '')}:{spec.get('queue', '')}"


def _group_mappings() -> list[Manifest]:
    rows = GroupMapping.objects.select_related("queue").filter(queue__deleted_at=None)
    found = (group_mapping_manifest(row) for row in rows)
    return sorted(found, key=lambda one: one["metadata"]["name"])


def group_mapping_manifest(mapping: GroupMapping) -> Manifest:
    spec = {
        "providerGroup": mapping.provider_group,
        "role": mapping.role,
        "queue": mapping.queue.name,
    }
    return manifest_of("GroupMapping", group_mapping_name(spec), spec)


def group_mapping_name(spec: Manifest) -> str:
    """There is only one of each."""
    return f"{spec.get('providerGroup', '')}:{spec.get('role', '')}:{spec.get('queue', '')}"


def _cluster() -> list[Manifest]:
    return [cluster_manifest()]


def cluster_manifest() -> Manifest:
    state = ClusterState.objects.get(pk=1)
    return manifest_of("Cluster", THE_CLUSTER, {"periodSeconds": state.period_seconds})


def _policy() -> list[Manifest]:
    return [policy_manifest()]


def policy_manifest() -> Manifest:
    return manifest_of(POLICY, THE_POLICY, {POLICY_TEXT: policy_text_now()})


def _price_lists() -> list[Manifest]:
    return [price_list_manifest(row) for row in PriceList.objects.order_by("valid_from")]


def price_list_manifest(row: PriceList) -> Manifest:
    """Its name is the day that it counts from."""
    spec = {"currency": row.currency, "prices": dict(row.prices)}
    return manifest_of("PriceList", row.valid_from.isoformat(), spec)


def _notice_rules() -> list[Manifest]:
    rows = NoticeRule.objects.select_related("user", "queue")
    found = (notice_rule_manifest(row) for row in rows)
    return sorted(found, key=lambda one: one["metadata"]["name"])


def notice_rule_manifest(rule: NoticeRule) -> Manifest:
    """Without its channels. Whoever has the rule finds the notices in their inbox."""
    queue = ""
    if rule.queue is not None:
        queue = rule.queue.name
    spec = {
        "user": rule.user.get_username(),
        "kind": rule.kind,
        "queue": queue,
        "timesUsual": rule.times_usual,
    }
    return manifest_of("NoticeRule", notice_rule_name(spec), spec)


def notice_rule_name(spec: Manifest) -> str:
    """There is only one of each."""
    return f"{spec.get('user', '')}:{spec.get('kind', '')}:{spec.get('queue', '')}"


def _change_sets() -> list[Manifest]:
    return [change_set_manifest(row, name) for name, row in named_sets().items()]


def named_sets() -> dict[str, ChangeSet]:
    """Change sets that are drafts or planned, by the name that they have in a file.

    What was applied or discarded is a record. So is a plan without a turn to come.
    """
    open_states = (SetState.DRAFT.value, SetState.PLANNED.value)
    planned = active_plans()
    found: dict[str, ChangeSet] = {}
    for row in ChangeSet.objects.filter(state__in=open_states).order_by("id"):
        if row.is_draft or row.pk in planned:
            found[_free_name(row.name, set(found))] = row
    return found


def active_plans() -> dict[int, Manifest]:
    """What is to come of each plan, by the number of its change set."""
    now = database_now()
    found = {}
    rows = ChangePlan.objects.filter(state=PlanState.ACTIVE.value).select_related("planner")
    for plan in rows:
        timetable = plan.timetable
        turns = (timetable.turn(number) for number in count())
        following = next(turn for turn in turns if turn is None or turn.begins_at > now)
        if following is not None:
            found[plan.change_set_id] = _plan_spec(plan, timetable, following.number)
    return found


def _plan_spec(plan: ChangePlan, timetable: Timetable, number: int) -> Manifest:
    """It begins with the turn of that number: those before it are records."""
    later = number * WEEK
    spec: Manifest = {"begin": (timetable.begins + later).strftime(WALL), "end": ""}
    if timetable.ends is not None:
        spec["end"] = (timetable.ends + later).strftime(WALL)
    spec |= {"timeZone": plan.zone, "weekly": plan.weekly, "lastDate": ""}
    if plan.last_date is not None:
        spec["lastDate"] = plan.last_date.isoformat()
    return spec | {"plannedBy": plan.planned_by, "scopes": plan.scopes}


def _plans() -> list[Manifest]:
    planned = active_plans()
    return [
        manifest_of("ChangePlan", name, planned[row.pk])
        for name, row in named_sets().items()
        if row.pk in planned
    ]


def _free_name(name: str, taken: set[str]) -> str:
    """Two drafts may have the same name, two objects of a file cannot."""
    free = name
    number = 1
    while free in taken:
        number += 1
        free = f"{name} ({number})"
    return free


def change_set_manifest(row: ChangeSet, name: str = "") -> Manifest:
    spec = {"description": row.description, "author": row.author, "items": row.items}
    return manifest_of("ChangeSet", name or row.name, spec)


EXPORTED: Final[dict[str, Callable[[], Iterable[Manifest]]]] = {
    "Namespace": _namespaces,
    "PriorityClass": _priority_classes,
    "Group": _groups,
    "User": _users,
    "Queue": _queues,
    "Grant": _grants,
    "GroupMapping": _group_mappings,
    "Cluster": _cluster,
    "Policy": _policy,
    "PriceList": _price_lists,
    "NoticeRule": _notice_rules,
    "ChangeSet": _change_sets,
    "ChangePlan": _plans,
}
"""The kinds of an export, in its order, and how each is read."""

MIRRORED: Final = ("Namespace", "PriorityClass", "Queue")
"""What belongs to a real cluster where there is one: it is exported with kubectl."""
