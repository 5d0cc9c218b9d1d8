"""A subtree that is held while it is changed."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from scheduler.domain.queues import QueueState
from scheduler.domain.safe_windows import StatesBefore, WindowState, states_from_json
from scheduler.models.change_set import ChangeSet
from scheduler.models.fields import one_of


class SafeWindow(models.Model):
    """Which queue it holds with all below it, who began it, and what they had before.

    How far it is follows from the queue and from its change set. The queue is a name: the window
    outlives it.
    """

    queue = models.CharField(max_length=253)
    queue_uid = models.CharField(max_length=36)
    change_set = models.ForeignKey(ChangeSet, on_delete=models.PROTECT, related_name="windows")
    state = models.CharField(
        max_length=10, choices=one_of(WindowState), default=WindowState.OPEN.value, db_index=True
    )
    author = models.CharField(max_length=150, blank=True, default="")
    reason = models.CharField(max_length=1024, blank=True, default="")
    # queue -> requested and derived state, of all that it holds
    before = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        ordering = ("-id",)
        constraints = [
            models.UniqueConstraint(
                fields=["queue"],
                condition=Q(state=WindowState.OPEN.value),
                name="one_open_window_of_a_queue",
            )
        ]

    def __str__(self) -> str:
        return f"{self.pk}: {self.queue}"

    @property
    def is_open(self) -> bool:
        return self.state == WindowState.OPEN.value

    @property
    def states_before(self) -> StatesBefore:
        return states_from_json(self.before)

    @property
    def requested_before(self) -> QueueState:
        return self.states_before[self.queue].requested
