"""The machines that pods run on."""

from __future__ import annotations

from django.db import models

from scheduler.models.fields import Named, ResourcesField


class Node(Named):
    name = models.CharField(max_length=253, unique=True)
    allocatable = ResourcesField()
    # what pods of others hold on it: other schedulers, daemon sets. They have no rows here.
    taken = ResourcesField()
    # those pods once more, by namespace and labels, while rules between pods look at them
    foreign_pods = models.JSONField(default=list, blank=True)
    taints = models.JSONField(default=list, blank=True)
    unschedulable = models.BooleanField(default=False)
    ready = models.BooleanField(default=True)
    # when `ready` last changed; unset: since it was made
    ready_since = models.DateTimeField(null=True, blank=True, editable=False)
    kind = models.CharField(max_length=63, blank=True, default="")

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name
