"""Scheduling sessions, what they decided, the policy they follow and the lease that keeps them one
at a time.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from scheduler.models.fields import ResourcesField


class SchedulingSession(models.Model):
    """One run of the engine. `number` is what people read; at most one is running."""

    RUNNING = "Running"
    DONE = "Done"
    FAILED = "Failed"
    TAKEN_OVER = "TakenOver"
    STATES = (RUNNING, DONE, FAILED, TAKEN_OVER)

    number = models.PositiveBigIntegerField(unique=True)
    state = models.CharField(
        max_length=12,
        choices=[(state, state) for state in STATES],
        default=RUNNING,
    )
    worker = models.CharField(max_length=128, blank=True, default="")
    fencing_token = models.PositiveBigIntegerField(default=0)
    policy = models.ForeignKey(
        "scheduler.PolicyVersion",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    durations = models.JSONField(default=dict, blank=True)  # milliseconds by part and by action
    counts = models.JSONField(default=dict, blank=True)
    message = models.TextField(blank=True, default="")
    trigger = models.CharField(max_length=32, blank=True, default="")

    class Meta:
        ordering = ("-number",)
        constraints = [
            models.UniqueConstraint(
                fields=["state"], condition=Q(state="Running"), name="one_session_at_a_time"
            ),
        ]
        indexes = [models.Index(fields=["started_at"])]

    def __str__(self) -> str:
        return f"session {self.number}"


class Decision(models.Model):
    """A work item: one placement or eviction that the dispatcher carries out on the cluster.

    Claimed by conditional update.
    """

    BIND = "Bind"
    EVICT = "Evict"

    # None for what no session decided: the pods of a cancelled job, of a drained node.
    session = models.ForeignKey(
        SchedulingSession,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="decisions",
        db_constraint=False,
    )
    kind = models.CharField(max_length=8, choices=[(BIND, BIND), (EVICT, EVICT)])
    # No constraint and no index: thousands are written at once. The number of a pod that is gone
    # stays, and is never given again.
    pod = models.ForeignKey(
        "scheduler.Pod",
        null=True,
        blank=True,
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    pod_name = models.CharField(max_length=320)  # namespace/name, kept when the pod is gone
    podgroup_name = models.CharField(max_length=320, blank=True, default="")
    queue_name = models.CharField(max_length=253, blank=True, default="")
    node_name = models.CharField(max_length=253, blank=True, default="")
    action = models.CharField(max_length=32)  # allocate, backfill, preempt, reclaim, shed, …
    created_at = models.DateTimeField()
    claimed_at = models.DateTimeField(null=True, blank=True)
    done_at = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveIntegerField(default=0)
    # not before: the cluster could not be asked, or said when to ask again
    retry_at = models.DateTimeField(null=True, blank=True)
    error = models.CharField(max_length=512, blank=True, default="")

    class Meta:
        ordering = ("-id",)
        indexes = [models.Index(fields=["id"], condition=Q(done_at=None), name="decision_open")]

    def __str__(self) -> str:
        return f"{self.kind} {self.pod_name}"


class Eviction(models.Model):
    """The record of one victim: whom it made room for, at which level of the tree, and the figures
    before and after.
    """

    session = models.ForeignKey(
        SchedulingSession,
        null=True,
        on_delete=models.SET_NULL,
        related_name="evictions",
    )
    session_number = models.PositiveBigIntegerField()
    pod_name = models.CharField(max_length=320)
    podgroup_name = models.CharField(max_length=320, db_index=True)
    queue_name = models.CharField(max_length=253, db_index=True)
    node_name = models.CharField(max_length=253, blank=True, default="")
    beneficiary = models.CharField(max_length=320, blank=True, default="", db_index=True)
    beneficiary_queue = models.CharField(max_length=253, blank=True, default="")
    action = models.CharField(max_length=32)
    reason = models.CharField(max_length=512, blank=True, default="")
    common_ancestor = models.CharField(max_length=253, blank=True, default="")
    level = models.PositiveIntegerField(null=True, blank=True)
    before = models.JSONField(default=dict, blank=True)
    after = models.JSONField(default=dict, blank=True)
    # the rule that allowed it, and what it was decided by (`engine.decisions.Grounds`)
    rule = models.CharField(max_length=32, blank=True, default="")
    grounds = models.JSONField(default=dict, blank=True)
    # how long the pod had run, and that times its accelerators and its cores: work that is lost
    ran_seconds = models.FloatField(default=0.0)
    accelerator_seconds = models.FloatField(default=0.0)
    core_seconds = models.FloatField(default=0.0)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("-id",)
        indexes = [
            # all that the overview asks about the last hour
            models.Index(
                fields=[
                    "created_at",
                    "podgroup_name",
                    "session_number",
                    "queue_name",
                    "accelerator_seconds",
                    "core_seconds",
                ],
                name="eviction_lately",
            )
        ]

    def __str__(self) -> str:
        return f"{self.pod_name} for {self.beneficiary}"


class PolicyVersion(models.Model):
    """Every policy that was ever in force, newest last; the text as written."""

    text = models.TextField()
    author = models.CharField(max_length=150, blank=True, default="")
    reason = models.CharField(max_length=1024, blank=True, default="")
    warnings = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"policy {self.pk}"


class ClusterState(models.Model):
    """One row: the period of sessions, the pause, the cluster's totals as the last session saw
    them.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    name = models.CharField(max_length=63, default="simulated")
    period_seconds = models.FloatField(default=1.0)
    paused = models.BooleanField(default=False)
    paused_by = models.CharField(max_length=150, blank=True, default="")
    paused_at = models.DateTimeField(null=True, blank=True)
    pause_reason = models.CharField(max_length=1024, blank=True, default="")
    policy = models.ForeignKey(
        PolicyVersion,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    last_session = models.PositiveBigIntegerField(default=0)
    last_session_at = models.DateTimeField(null=True, blank=True)
    # somebody asked for the next session to come forward
    session_wanted_at = models.DateTimeField(null=True, blank=True)
    # how many of the next ones are to be kept for replay
    keep_sessions = models.PositiveSmallIntegerField(default=0)
    total = ResourcesField()
    allocated = ResourcesField()
    promised = ResourcesField()
    warnings = models.JSONField(default=list, blank=True)
    # by part of what is looked after at each tick: the problem, and since when
    failing = models.JSONField(default=dict, blank=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="one_cluster_state")]

    def __str__(self) -> str:
        return self.name


class Lease(models.Model):
    """Who may run sessions, until when.

    The token grows with each holder; a write with an old one is refused.
    """

    name = models.CharField(max_length=63, primary_key=True)
    holder = models.CharField(max_length=128, blank=True, default="")
    token = models.PositiveBigIntegerField(default=0)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} held by {self.holder}"
