"""The Kubernetes cluster that is mirrored: which one it is, and how well it is heard."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class Mirror(models.Model):
    """One row, written by the watcher alone. There is none where the cluster is simulated.

    `positions` holds the resourceVersion of each resource up to which the mirror was written, in
    the transaction that wrote it. `queue_fields` are the keys that a queue's `spec` may have there,
    `queue_controller` is who opens and closes queues and writes their status.
    """

    VOLCANO = "volcano"
    FUMAROLE = "fumarole"

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    # the uid of the namespace kube-system: a cluster has no other name of its own
    cluster_uid = models.CharField(max_length=64, blank=True, default="")
    server = models.CharField(max_length=255, blank=True, default="")
    version = models.CharField(max_length=64, blank=True, default="")
    positions = models.JSONField(default=dict, blank=True)
    queue_fields = models.JSONField(default=list, blank=True)
    queue_controller = models.CharField(max_length=16, blank=True, default=FUMAROLE)
    heard_at = models.DateTimeField(null=True, blank=True)  # the API server answered, or told news
    # since when everything is mirrored; unset while it is read for the first time, or again
    synced_at = models.DateTimeField(null=True, blank=True)
    problem = models.CharField(max_length=512, blank=True, default="")  # why it is not heard

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="one_mirror")]

    def __str__(self) -> str:
        return self.server
