"""What a change would do, worked out in the background."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from scheduler.domain.previews import PreviewState
from scheduler.models.change_set import ChangeSet
from scheduler.models.fields import one_of


class Preview(models.Model):
    """A run ahead that somebody asked for: its question, how far it is, and its answer."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="previews"
    )
    change_set = models.ForeignKey(
        ChangeSet, on_delete=models.CASCADE, null=True, blank=True, related_name="previews"
    )
    items = models.JSONField(default=list)
    # manifests, tried out as if they were submitted now
    jobs = models.JSONField(default=list)
    lost_nodes = models.JSONField(default=list)
    minutes = models.PositiveIntegerField(default=60)
    # the moment that the set would be applied at; None is now
    begins_at = models.DateTimeField(null=True, blank=True)
    # of the token that it was asked for with, which it can see no more than
    scopes = models.JSONField(null=True, blank=True)
    state = models.CharField(
        max_length=10, choices=one_of(PreviewState), default=PreviewState.WAITING.value
    )
    progress = models.FloatField(default=0.0)  # from 0 to 1
    message = models.TextField(blank=True, default="")
    result = models.JSONField(null=True, default=None)
    created_at = models.DateTimeField(auto_now_add=True)
    claimed_at = models.DateTimeField(null=True, blank=True)
    # the moment that it is about
    taken_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"preview {self.pk}"

    @property
    def is_open(self) -> bool:
        return self.state in (PreviewState.WAITING.value, PreviewState.RUNNING.value)
