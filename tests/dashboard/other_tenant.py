"""Another tenant with something in every table, and where each of it would be found.

A route that takes an argument and is missing here fails `test_tenants.py`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.utils import timezone

from scheduler.models import (
    AuditEntry,
    BulkRun,
    ChangePlan,
    ChangeSet,
    Command,
    Decision,
    Event,
    Eviction,
    Grant,
    GroupMapping,
    Namespace,
    Notice,
    NoticeChannel,
    NoticeDelivery,
    NoticeRule,
    Occurrence,
    Preview,
    Queue,
    SafeWindow,
    SavedView,
    SchedulingSession,
)
from scheduler.services.accounts.actors import SYSTEM, Actor, Door
from scheduler.services.accounts.tokens import create_token
from scheduler.services.change_sets.drafts import create_change_set
from scheduler.services.demo.setup import ensure_builtin_objects
from scheduler.services.queues.create_update import update_queue
from scheduler.services.queues.states import refresh_states
from tests.dashboard.work import people, submitted
from tests.worlds import node, queue

SECRET = "zzsecret"
VAULT = "zzsecret-vault"
HEIST = "zzsecret-heist"
MALLORY = "zzsecret-mallory"
GANG = "zzsecret-gang"
SPACE = "zzsecret-space"

MISSING = "zzmissing-thing"
NOBODY = 10**9


def two_tenants() -> dict[str, Any]:
    """Ruth administers research. Mallory has the vault. What Mallory has, by kind."""
    ensure_builtin_objects()
    node("n1", cpu="8", memory="32Gi")
    queue("research", deserved={"cpu": "4"})
    queue("vision", "research", deserved={"cpu": "2"})
    queue(VAULT, deserved={"cpu": "4"})
    refresh_states()
    people()
    submitted("train-1", "vision", "sam")
    submitted(HEIST, VAULT, MALLORY)
    return _belongings()


def _belongings() -> dict[str, Any]:
    vault = Queue.objects.get(name=VAULT)
    user = get_user_model().objects.create(username=MALLORY)
    group = Group.objects.create(name=GANG)
    user.groups.add(group)
    grant = Grant.objects.create(user=user, role="admin", queue=vault)
    Grant.objects.create(group=group, role="viewer", queue=vault)
    mapping = GroupMapping.objects.create(provider_group=GANG, role="viewer", queue=vault)
    update_queue(VAULT, {"spec": {"namespaces": [SPACE, "default"]}}, merge=True, by=SYSTEM)
    Namespace.objects.create(name=SPACE)
    home = {"scheduling.volcano.sh/queue-name": VAULT}
    Namespace.objects.create(name=f"{SECRET}-home", annotations=home)
    mallory = Actor(MALLORY, Door.UI, user)
    view = SavedView.objects.create(owner=user, page="jobs", name=f"{SECRET} view", shared=True)
    return {
        "view": view.pk,
        "grant": grant.pk,
        "mapping": mapping.pk,
        "token": create_token(user, "cli", ["admin"], by=SYSTEM).token.pk,
        "bulk": str(BulkRun.objects.create(owner=user, action="cancel", uid=uuid4()).uid),
        **_planned(vault, mallory),
        **_told(vault, user),
        **_recorded(),
    }


def _planned(vault: Queue, mallory: Actor) -> dict[str, int]:
    asked = {"kind": "Queue", "metadata": {"name": VAULT}, "spec": {"description": "x"}}
    drawn = create_change_set(f"{SECRET} plan", [asked], by=mallory)
    plan = planned(drawn)
    window = SafeWindow.objects.create(
        queue=VAULT, queue_uid=vault.uid, change_set=drawn, author=MALLORY
    )
    preview = Preview.objects.create(owner=mallory.user, message=f"{VAULT} wins")
    return {
        "change-set": drawn.pk,
        "plan": plan.pk,
        "occurrence": plan.occurrences.get().pk,
        "window": window.pk,
        "preview": preview.pk,
    }


def planned(change_set: ChangeSet, trouble: str = "") -> ChangePlan:
    """A plan of it that could not begin."""
    begin = timezone.now() + timedelta(days=2)
    plan = ChangePlan.objects.create(
        change_set=change_set,
        begins=f"{begin:%Y-%m-%dT%H:%M}",
        zone="UTC",
        planned_by=change_set.author,
    )
    if trouble:
        problem = {"at": begin.isoformat(), "begins": True, "message": trouble}
        ChangePlan.objects.filter(pk=plan.pk).update(outlook=[problem])
    Occurrence.objects.create(
        plan=plan, number=0, begins_at=begin, state="BeginConflict", message=trouble
    )
    return plan


def _told(vault: Queue, user: Any) -> dict[str, Any]:
    channel = NoticeChannel.objects.create(
        user=user, kind="Webhook", name=f"{SECRET} hook", target="https://example.com/"
    )
    notice = Notice.objects.create(
        user=user, kind="QueueStateChanged", title=VAULT, queue=vault, path="/", at=timezone.now()
    )
    delivery = NoticeDelivery.objects.create(channel=channel, due_at=timezone.now())
    delivery.notices.add(notice)
    rule = NoticeRule.objects.create(user=user, kind="JobFailed", queue=vault)
    return {
        "channel": channel.pk,
        "notice": notice.pk,
        "delivery": delivery.pk,
        "rule": rule.pk,
    }


def _recorded() -> dict[str, int]:
    now = timezone.now()
    session = SchedulingSession.objects.create(number=1, state="Done", started_at=now)
    pod = {"pod_name": f"default/{HEIST}-worker-0", "podgroup_name": f"default/{HEIST}"}
    place = {"queue_name": VAULT, "session": session, "created_at": now}
    eviction = Eviction.objects.create(
        **pod, **place, session_number=1, action="reclaim", node_name="n1", level=0
    )
    decision = Decision.objects.create(**pod, **place, kind="Bind", node_name="n1")
    event = Event.objects.create(
        kind="Queue", name=VAULT, queue_name=VAULT, reason="X", first_at=now, last_at=now
    )
    command = Command.objects.create(
        action="CloseQueue", target_kind="Queue", target_name=VAULT, result="Done"
    )
    entry = AuditEntry.objects.filter(queue_name=VAULT).first()
    assert entry is not None
    return {
        "eviction": eviction.pk,
        "decision": decision.pk,
        "event": event.pk,
        "command": command.pk,
        "audit": entry.pk,
    }


# Where they are: a path with a place for what is asked for, and what of the above it is.

PAGES = {
    "queue": ("/queues/{}/", VAULT),
    "queue-edit": ("/queues/{}/edit/", VAULT),
    "queue-delete": ("/queues/{}/delete/", VAULT),
    "queue-close-first": ("/queues/{}/farewell/", VAULT),
    "queue-keep": ("/queues/{}/keep/", VAULT),
    "queue-actions": ("/queues/{}/actions/", VAULT),
    "queue-history": ("/queues/{}/history.json", VAULT),
    "queue-history-csv": ("/queues/{}/history.csv", VAULT),
    "queue-tab": ("/queues/{}/access/", VAULT),
    "queue-command": ("/queues/{}/close/", VAULT),
    "job": ("/jobs/default/{}/", HEIST),
    "job-tab": ("/jobs/default/{}/events/", HEIST),
    "job-command": ("/jobs/default/{}/cancel/", HEIST),
    "pod": ("/jobs/default/{0}/pods/{0}-worker-0/", HEIST),
    "pod-log": ("/jobs/default/{0}/pods/{0}-worker-0/log/", HEIST),
    "user": ("/users/{}/", MALLORY),
    "job-view-forget": ("/jobs/-/views/{}/forget/", "view"),
    "job-view-pin": ("/jobs/-/views/{}/pin/", "view"),
    "bulk-run": ("/jobs/-/bulk/{}/", "bulk"),
    "change-set": ("/changes/{}/", "change-set"),
    "change-set-command": ("/changes/{}/apply/", "change-set"),
    "occurrence-command": ("/changes/occurrences/{}/skip/", "occurrence"),
    "preview": ("/previews/{}/", "preview"),
    "preview-cancel": ("/previews/{}/cancel/", "preview"),
    "window": ("/changes/windows/{}/", "window"),
    "window-abandon": ("/changes/windows/{}/abandon/", "window"),
    "window-command": ("/changes/windows/{}/resume/", "window"),
    "audit-entry": ("/audit/{}/", "audit"),
    "audit-revert": ("/audit/{}/revert/", "audit"),
    "token-forget": ("/account/tokens/{}/revoke/", "token"),
    "notice-rule-forget": ("/account/notices/rules/{}/forget/", "rule"),
    "notice-channel-command": ("/account/notices/channels/{}/test/", "channel"),
    "revoke": ("/users/-/grants/{}/revoke/", "grant"),
    "mapping-forget": ("/users/-/sign-on/{}/forget/", "mapping"),
    "second-factor-reset": ("/users/{}/second-factor/", MALLORY),
}
COLLECTIONS = {
    "queues": ("{}", VAULT),
    "jobs": ("default/{}", HEIST),
    "podgroups": ("default/{}", HEIST),
    "pods": ("default/{}-worker-0", HEIST),
    "namespaces": ("{}", SPACE),
    "users": ("{}", MALLORY),
    "groups": ("{}", GANG),
    "commands": ("{}", "command"),
    "decisions": ("{}", "decision"),
    "evictions": ("{}", "eviction"),
    "events": ("{}", "event"),
    "audit": ("{}", "audit"),
    "grants": ("{}", "grant"),
    "groupmappings": ("{}", "mapping"),
    "tokens": ("{}", "token"),
    "views": ("{}", "view"),
    "bulkruns": ("{}", "bulk"),
    "changes": ("{}", "change-set"),
    "previews": ("{}", "preview"),
    "notices": ("{}", "notice"),
    "noticerules": ("{}", "rule"),
    "noticechannels": ("{}", "channel"),
    "noticedeliveries": ("{}", "delivery"),
    "windows": ("{}", "window"),
    "plans": ("{}", "plan"),
    "occurrences": ("{}", "occurrence"),
}
OF_THE_CLUSTER = {
    # belong to no tenant
    "node",
    "node-waiting",
    "node-yaml",
    "node-command",
    "session",
    "session-scenario",
    "scheduling-command",
    "policy-version",
    "admission-validate",
    "admission-mutate",
    "api-elsewhere",
    "nodes",
    "priorityclasses",
    "sessions",
    "policyversions",
    # only where another scheduler places the pods: tests/dashboard/views/test_comparison.py
    "comparisons",
}


def both(place: tuple[str, str], have: dict[str, Any]) -> tuple[str, str]:
    """The address of something of Mallory's, and of the same kind of thing that never was."""
    path, what = place
    if what not in have:
        return path.format(what), path.format(MISSING)
    missing: object = NOBODY
    if what == "bulk":
        missing = uuid4()
    return path.format(have[what]), path.format(missing)
