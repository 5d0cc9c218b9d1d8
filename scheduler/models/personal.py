"""What belongs to one person: how pages look, the views of tables that were kept, and actions on
many jobs at once.
"""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models


class Preference(models.Model):
    """How one person wants pages to look. An empty time zone is the cluster's own, UTC."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="preference",
    )
    time_zone = models.CharField(max_length=63, blank=True, default="")
    theme = models.CharField(max_length=8, blank=True, default="")
    # the queues whose children the tree does not show
    folded = models.JSONField(default=list, blank=True)
    # those whose children it shows although they lie deep
    unfolded = models.JSONField(default=list, blank=True)
    # how many it shows: 0 all, None what fits
    tree_levels = models.PositiveSmallIntegerField(null=True, default=None, blank=True)
    # the queues that come first on the page of queues, in this order
    pinned_queues = models.JSONField(default=list, blank=True)
    # the numbers of the views that are tiles of the overview, in this order
    pinned_views = models.JSONField(default=list, blank=True)
    # whether planned changes of their own, and of queues that they own, come to the inbox
    calendar_notices = models.BooleanField(default=True, db_default=True)

    def __str__(self) -> str:
        return f"preferences of {self.user_id}"


class SavedView(models.Model):
    """A table with its filter and columns, under a name.

    A shared one is offered to everybody, who each see only what they may.
    """

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views"
    )
    page = models.CharField(max_length=16)
    name = models.CharField(max_length=80)
    # the query string of the page
    query = models.CharField(max_length=1024, blank=True, default="")
    shared = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name", "id")
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "page", "name"], name="view_name_once_a_person"
            )
        ]

    def __str__(self) -> str:
        return self.name


class BulkRun(models.Model):
    """One action on many jobs, carried out in the background.

    The page of it can be left and found again.
    """

    WAITING = "Waiting"
    RUNNING = "Running"
    DONE = "Done"
    STATES = (WAITING, RUNNING, DONE)

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="bulk_runs"
    )
    action = models.CharField(max_length=32)
    reason = models.CharField(max_length=1024, blank=True, default="")
    door = models.CharField(max_length=16, default="UI")
    # of the token that it was begun with, which it can do no more than
    scopes = models.JSONField(null=True, blank=True)
    address = models.CharField(max_length=64, blank=True, default="")
    request_id = models.CharField(max_length=64, blank=True, default="")
    query = models.CharField(max_length=1024, blank=True, default="")
    state = models.CharField(
        max_length=8,
        choices=[(state, state) for state in STATES],
        default=WAITING,
    )
    claimed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.action} by {self.owner_id}"


class BulkItem(models.Model):
    """One job of it, and what came of it; the result is empty until its turn has come."""

    run = models.ForeignKey(BulkRun, on_delete=models.CASCADE, related_name="items")
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    # as of a Command: Done, NoOp, Refused
    result = models.CharField(max_length=8, blank=True, default="")
    message = models.CharField(max_length=1024, blank=True, default="")

    class Meta:
        ordering = ("id",)
        constraints = [
            models.UniqueConstraint(fields=["run", "namespace", "name"], name="job_once_a_bulk_run")
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
