"""What only a mirrored Kubernetes cluster has: how well it is heard, and disruption budgets."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class Mirror(models.Model):
    """One row, written by the watcher alone. There is none where the cluster is simulated.

    `positions` holds the resourceVersion of each resource up to which the mirror was written, in
    the transaction that wrote it. `queue_fields` are the keys that a queue's `spec` may have there,
    `queue_controller` is who opens and closes queues and writes their status, `job_controller` who
    makes the pods of jobs; nobody in a cluster that is only watched, if Volcano's do not run.
    `taken_over` names the namespaces and queues whose new work is ours, `other_schedulers` the
    `schedulerName`s of the pods that a scheduler beside us places.
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
    taken_over = models.JSONField(default=dict, blank=True)
    other_schedulers = models.JSONField(default=list, blank=True)
    job_controller = models.CharField(max_length=16, blank=True, default="", db_default="")
    heard_at = models.DateTimeField(null=True, blank=True)  # the API server answered, or told news
    # since when everything is mirrored; unset while it is read for the first time, or again
    synced_at = models.DateTimeField(null=True, blank=True)
    problem = models.CharField(max_length=512, blank=True, default="")  # why it is not heard

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="one_mirror")]

    def __str__(self) -> str:
        return self.server


class DisruptionBudget(models.Model):
    """A PodDisruptionBudget of the cluster. `Pod.budgets` names those that protect a pod.

    `healthy_pods` and `needed_pods` are as the controller of the cluster counts them.
    """

    uid = models.UUIDField(unique=True, editable=False)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    selector = models.JSONField(null=True, blank=True)
    min_available = models.CharField(max_length=16, blank=True, default="")
    max_unavailable = models.CharField(max_length=16, blank=True, default="")
    disruptions_allowed = models.IntegerField(default=0)
    healthy_pods = models.IntegerField(default=0)
    needed_pods = models.IntegerField(default=0)

    class Meta:
        ordering = ("namespace", "name")
        constraints = [
            models.UniqueConstraint(
                fields=["namespace", "name"], name="budget_name_is_unique_in_its_namespace"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
