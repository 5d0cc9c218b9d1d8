"""What is to run: namespaces, priority classes, jobs, podgroups (gangs) and pods."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q

from scheduler.domain.native_groups import native_name
from scheduler.models.fields import Named, ResourcesField
from scheduler.models.queue import Queue

LIVE_PHASES = ("Pending", "Inqueue", "Running", "Unknown")
PODGROUP_PHASES = (*LIVE_PHASES, "Completed")
JOB_PHASES = (
    "Pending",
    "Running",
    "Restarting",
    "Aborting",
    "Aborted",
    "Completing",
    "Completed",
    "Terminating",
    "Terminated",
    "Failed",
)
FINISHED_JOB_PHASES = ("Aborted", "Completed", "Terminated", "Failed")
POD_PHASES = (
    "Pending",
    "Binding",
    "Bound",
    "Running",
    "Releasing",
    "Succeeded",
    "Failed",
    "Unknown",
)


def _choice_pairs(values: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(value, value) for value in values]


class Namespace(Named):
    name = models.CharField(max_length=63, unique=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class PriorityClass(Named):
    name = models.CharField(max_length=253, unique=True)
    value = models.IntegerField()
    global_default = models.BooleanField(default=False)
    preemption_policy = models.CharField(max_length=32, default="PreemptLowerPriority")
    description = models.CharField(max_length=1024, blank=True, default="")

    class Meta:
        ordering = ("name",)
        verbose_name_plural = "priority classes"
        constraints = [
            models.UniqueConstraint(
                fields=["global_default"],
                condition=Q(global_default=True),
                name="one_default_priority_class",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Job(Named):
    """A batch job: tasks with replicas that become the pods of one podgroup."""

    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    queue = models.ForeignKey(Queue, on_delete=models.PROTECT, related_name="jobs")
    owner = models.CharField(max_length=150, blank=True, default="", db_index=True)
    owner_user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    min_available = models.PositiveIntegerField()
    min_success = models.PositiveIntegerField(null=True, blank=True)
    priority_class = models.CharField(max_length=253, blank=True, default="")
    max_retry = models.PositiveIntegerField(default=3)
    ttl_seconds_after_finished = models.PositiveIntegerField(null=True, blank=True)
    tasks = models.JSONField(default=list)
    policies = models.JSONField(default=list, blank=True)
    # what a real cluster needs and scheduling does not: plugins, volumes
    extra = models.JSONField(default=dict, blank=True)

    phase = models.CharField(max_length=16, choices=_choice_pairs(JOB_PHASES), default="Pending")
    phase_since = models.DateTimeField(null=True, blank=True)
    # see domain/jobs/running_time.py; the second only where a queue limits running times
    run_begun_at = models.DateTimeField(null=True, blank=True)
    run_paused_at = models.DateTimeField(null=True, blank=True)
    message = models.CharField(max_length=1024, blank=True, default="")
    retry_count = models.PositiveIntegerField(default=0)
    # by task: how often it alone was started anew since its pods were made
    task_retries = models.JSONField(default=dict, blank=True)
    # grows with each restart; pods of an older version are leftovers
    version = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    # when it was ended because it ran for longer than its queue allows, and the sentence about it
    overran_at = models.DateTimeField(null=True, blank=True)
    overran = models.CharField(max_length=512, blank=True, default="", db_default="")

    class Meta:
        ordering = ("-id",)
        constraints = [
            models.UniqueConstraint(
                fields=["namespace", "name"], name="job_name_is_unique_in_its_namespace"
            ),
            models.CheckConstraint(condition=Q(phase__in=JOB_PHASES), name="job_phase_is_known"),
        ]
        indexes = [
            models.Index(fields=["queue", "phase"]),
            models.Index(fields=["phase", "finished_at"]),
            models.Index(fields=["id"], condition=Q(overran_at__isnull=False), name="job_overran"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def was_ended_for_time(self) -> bool:
        """It was told to end, and ends or has ended, because its queue allows no longer."""
        return self.overran_at is not None and self.phase in ("Terminating", "Terminated")

    @property
    def shown_message(self) -> str:
        if self.was_ended_for_time:
            return self.overran
        return self.message


class PodGroup(Named):
    """A gang: starts with at least `min_member` of its pods, or not at all.

    One with no job came from outside.
    """

    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    # of the PodGroup object, where a real cluster calls it otherwise: one that a job made bears
    # the name of the job here
    object_name = models.CharField(max_length=320, blank=True, default="", db_index=True)
    object_uid = models.UUIDField(null=True, blank=True)
    queue = models.ForeignKey(Queue, on_delete=models.PROTECT, related_name="podgroups")
    job = models.OneToOneField(
        Job,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="podgroup",
    )
    owner = models.CharField(max_length=150, blank=True, default="")
    min_member = models.PositiveIntegerField(default=1)
    min_task_member = models.JSONField(default=dict, blank=True)
    min_resources = ResourcesField(null=True, default=None)
    priority_class = models.CharField(max_length=253, blank=True, default="")
    priority = models.IntegerField(default=0)  # resolved from the class when it was submitted
    sla_waiting_seconds = models.PositiveIntegerField(null=True, blank=True)
    network_topology = models.JSONField(default=dict, blank=True)
    # at least as many pods as it has or will have: see selectors/queues/backlogs.py
    size = models.PositiveIntegerField(default=0)

    phase = models.CharField(
        max_length=16, choices=_choice_pairs(PODGROUP_PHASES), default="Pending"
    )
    # Its pods are being stopped in steps: no session places those that wait.
    stopping = models.BooleanField(default=False)
    conditions = models.JSONField(default=list, blank=True)
    # of the pods that wait, packed: see domain/pod_conditions.py
    pod_conditions = models.JSONField(default=list, blank=True)
    reason_code = models.CharField(max_length=32, blank=True, default="", db_index=True)
    reason_message = models.TextField(blank=True, default="")
    reason_figures = models.JSONField(default=dict, blank=True)
    reason_checks = models.JSONField(default=list, blank=True)
    reason_session = models.PositiveBigIntegerField(null=True, blank=True)
    # the session in which it was first seen starving
    starving_since = models.PositiveBigIntegerField(null=True, blank=True)
    # in how many sessions pods of it were evicted: each makes it safe for longer
    evictions = models.PositiveIntegerField(default=0)
    # since when a real cluster has only a part of it, because it did not take the other pods
    half_bound_since = models.DateTimeField(null=True, blank=True)
    # how long its pods are declared to run, at most; unset where one of them does not say
    expected_seconds = models.FloatField(null=True, blank=True)
    enqueued_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        constraints = [
            models.UniqueConstraint(
                fields=["namespace", "name"], name="podgroup_name_is_unique_in_its_namespace"
            ),
            models.CheckConstraint(
                condition=Q(phase__in=PODGROUP_PHASES), name="podgroup_phase_is_known"
            ),
        ]
        indexes = [
            # With the size, so that a submit adds up what waits without reading the rows.
            models.Index(fields=["queue", "phase", "size"], name="podgroup_backlog_of_queue"),
            models.Index(fields=["owner", "phase", "size"], name="podgroup_backlog_of_owner"),
            # for counts of all gangs, which read these and no rows
            models.Index(fields=["phase", "reason_code"], name="podgroup_waits_by_reason"),
            models.Index(fields=["priority"], name="podgroup_by_priority"),
            models.Index(fields=["id"], condition=Q(stopping=True), name="podgroup_stopping"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def cluster_name(self) -> str:
        """What the cluster calls it. A native one is found by the name that it has here."""
        if self.is_native:
            return self.name
        return self.object_name or self.name

    @property
    def is_native(self) -> bool:
        """It is a PodGroup of Kubernetes itself, not of Volcano."""
        return bool(native_name(self.object_name))


class PodClass(models.Model):
    """What pods ask of a node, kept once for all that ask the same: the session thinks in classes,
    not in pods.
    """

    digest = models.CharField(max_length=64, unique=True)
    requests = ResourcesField()
    node_selector = models.JSONField(default=dict, blank=True)
    affinity = models.JSONField(default=dict, blank=True)
    tolerations = models.JSONField(default=list, blank=True)
    # topology spread constraints that must hold
    spread = models.JSONField(default=list, blank=True)
    # of mirrored pods only the labels that rules between pods look at
    labels = models.JSONField(default=dict, blank=True)
    # what they ask for and no session can honour, by name
    unsupported = models.JSONField(default=list, blank=True)
    priority = models.IntegerField(default=0)
    preemption_policy = models.CharField(max_length=32, default="PreemptLowerPriority")
    preemptable = models.BooleanField(default=True)
    critical = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"{self.digest[:8]} {self.requests.to_quantities()}"


class Pod(models.Model):
    """One member of a gang.

    Only what the cluster reports makes it Running; a session makes it Binding or Releasing.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    podgroup = models.ForeignKey(PodGroup, on_delete=models.CASCADE, related_name="pods")
    pod_class = models.ForeignKey(PodClass, on_delete=models.PROTECT, related_name="+")
    task = models.CharField(max_length=63, blank=True, default="")
    index = models.PositiveIntegerField(default=0)
    job_version = models.PositiveIntegerField(default=0)
    # No constraint and no index of their own: a session writes both for thousands of pods, and has
    # checked the nodes in the same statement.
    node = models.ForeignKey(
        "scheduler.Node",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="pods",
        db_constraint=False,
        db_index=False,
    )
    phase = models.CharField(max_length=12, choices=_choice_pairs(POD_PHASES), default="Pending")
    borrowed = models.BooleanField(default=False)
    reserved_node = models.ForeignKey(
        "scheduler.Node",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="reservations",
        db_constraint=False,
        db_index=False,
    )
    # the last session that keeps the place
    reserved_until = models.PositiveBigIntegerField(null=True, blank=True)
    # how long it is declared to run, and a simulated cluster runs it; unset: its own usual time
    run_seconds = models.FloatField(null=True, blank=True)
    planned_exit_code = models.IntegerField(default=0)  # how it ends there
    exit_code = models.IntegerField(null=True, blank=True)
    message = models.CharField(max_length=512, blank=True, default="")
    # somebody took it away: once it has left it does not come back
    unwanted = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    bound_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    # names of the disruption budgets that protect it, with commas between them
    budgets = models.TextField(blank=True, default="", db_default="")

    class Meta:
        ordering = ("podgroup_id", "index", "id")
        constraints = [
            models.UniqueConstraint(
                fields=["namespace", "name"], name="pod_name_is_unique_in_its_namespace"
            ),
            models.CheckConstraint(condition=Q(phase__in=POD_PHASES), name="pod_phase_is_known"),
            models.CheckConstraint(
                condition=~Q(phase="Pending") | Q(node__isnull=True),
                name="a_pending_pod_has_no_node",
            ),
        ]
        # None that holds a phase or a node: a pod that moves is then rewritten in its place, and no
        # index is touched (PostgreSQL's HOT updates; see models/triggers.py for the room it needs).
        # Placing 10,000 pods is several times faster for it.

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class UnmadePods(models.Model):
    """Pods of one task that are still to be made: a large job's come a few at a time, so that
    nobody waits for all of them.
    """

    podgroup = models.ForeignKey(PodGroup, on_delete=models.CASCADE, related_name="unmade_pods")
    task = models.CharField(max_length=63, blank=True, default="")
    next_index = models.PositiveIntegerField(default=0)
    end_index = models.PositiveIntegerField()  # the first that is not to be made any more

    class Meta:
        ordering = ("id",)
        constraints = [
            models.UniqueConstraint(fields=["podgroup", "task"], name="unmade_pods_once_a_task")
        ]

    def __str__(self) -> str:
        return f"{self.podgroup_id} {self.task} {self.next_index}..{self.end_index}"
