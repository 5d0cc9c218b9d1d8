"""Change sets that begin and end at set times."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import models

from scheduler.domain.calendar import CONFLICTS, OccurrenceState, PlanState, Timetable
from scheduler.domain.change_sets import ChangeItem, as_json, from_json
from scheduler.models.change_set import ChangeSet
from scheduler.models.fields import one_of

WALL = "%Y-%m-%dT%H:%M"
"""A wall time as it is stored, and as a browser's field has it."""


class ChangePlan(models.Model):
    """When a change set is applied and taken back. A set has one active plan at most.

    Wall times are text: they belong to `zone`, and are no moments by themselves. `outlook` says
    what stands against the turns to come, as far as it is known by now.
    """

    change_set = models.ForeignKey(ChangeSet, on_delete=models.CASCADE, related_name="plans")
    begins = models.CharField(max_length=16)
    ends = models.CharField(max_length=16, blank=True, default="")
    zone = models.CharField(max_length=64)
    weekly = models.BooleanField(default=False)
    last_date = models.DateField(null=True, blank=True)
    state = models.CharField(
        max_length=10, choices=one_of(PlanState), default=PlanState.ACTIVE.value, db_index=True
    )
    # it is begun with the rights of who planned it
    planner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    planned_by = models.CharField(max_length=150, blank=True, default="")
    scopes = models.JSONField(null=True, blank=True)
    outlook = models.JSONField(default=list)
    judged_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(
                fields=("change_set",),
                condition=models.Q(state=PlanState.ACTIVE.value),
                name="one_active_plan_of_a_set",
            ),
        )

    def __str__(self) -> str:
        return f"plan {self.pk}"

    @property
    def timetable(self) -> Timetable:
        ends = None
        if self.ends:
            ends = datetime.fromisoformat(self.ends)
        begins = datetime.fromisoformat(self.begins)
        return Timetable(begins, ends, self.zone, self.weekly, self.last_date)

    @property
    def is_active(self) -> bool:
        return self.state == PlanState.ACTIVE.value


class Occurrence(models.Model):
    """One turn of a plan: what became of it. There is one row for each, whoever makes it.

    `items` is what was applied, to be taken back at the end.
    """

    plan = models.ForeignKey(ChangePlan, on_delete=models.CASCADE, related_name="occurrences")
    number = models.PositiveIntegerField()
    begins_at = models.DateTimeField()
    ends_at = models.DateTimeField(null=True, blank=True)
    state = models.CharField(
        max_length=16,
        choices=one_of(OccurrenceState),
        default=OccurrenceState.PLANNED.value,
        db_index=True,
    )
    items = models.JSONField(null=True, default=None)
    message = models.TextField(blank=True, default="")
    claimed_at = models.DateTimeField(null=True, blank=True)
    began_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    decided_by = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        ordering = ("begins_at", "id")
        constraints = (
            models.UniqueConstraint(fields=("plan", "number"), name="one_occurrence_of_a_turn"),
        )

    def __str__(self) -> str:
        return f"turn {self.number} of {self.plan_id}"

    @property
    def applied(self) -> tuple[ChangeItem, ...]:
        return from_json(self.items or [])

    def keep(self, items: tuple[ChangeItem, ...]) -> None:
        """To be saved by the caller."""
        self.items = as_json(items)

    @property
    def is_conflict(self) -> bool:
        return self.state in CONFLICTS
