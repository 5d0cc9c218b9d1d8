"""Edits that are collected under a name, and applied together."""

from __future__ import annotations

from django.db import models

from scheduler.domain.change_sets import ChangeItem, SetState, as_json, from_json
from scheduler.models.fields import one_of


class ChangeSet(models.Model):
    """A draft, or one that was applied or discarded.

    The objects are kept as JSON: a set is read and written whole. `queues` are the names that a
    reader must be allowed to see.
    """

    name = models.CharField(max_length=100)
    description = models.CharField(max_length=1024, blank=True, default="")
    state = models.CharField(
        max_length=10, choices=one_of(SetState), default=SetState.DRAFT.value, db_index=True
    )
    author = models.CharField(max_length=150, blank=True, default="")
    items = models.JSONField(default=list)
    queues = models.JSONField(default=list)
    resource_version = models.PositiveBigIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    # applied or discarded
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.CharField(max_length=150, blank=True, default="")
    reverts = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="reverted_by"
    )

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.pk}: {self.name}"

    @property
    def changes(self) -> tuple[ChangeItem, ...]:
        return from_json(self.items)

    def keep(self, items: tuple[ChangeItem, ...]) -> None:
        """To be saved by the caller."""
        self.items = as_json(items)

    @property
    def is_draft(self) -> bool:
        return self.state == SetState.DRAFT.value
