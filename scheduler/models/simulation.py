"""The state of the simulated cluster: what a real one would keep in its own machines."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class SimulatedCluster(models.Model):
    """One row: the simulated clock (in its own seconds), how fast it runs, and the seed of its
    chances.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    clock = models.FloatField(default=0.0)
    speed = models.FloatField(default=1.0)
    seed = models.PositiveBigIntegerField(default=1)
    advanced_at = models.DateTimeField(null=True, blank=True)
    # see clusters.simulated.SimulationSettings
    settings = models.JSONField(default=dict, blank=True)
    # the demo's stream of jobs: mix, rate, seed, how far it got
    workload = models.JSONField(default=dict, blank=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="one_simulated_cluster")]

    def __str__(self) -> str:
        return f"simulated cluster at {self.clock:.0f} s"


class SimulatedPod(models.Model):
    """One pod on a simulated machine.

    `next_at` is the moment of its next step on the simulated clock.
    """

    # No foreign key: a machine goes on with a pod that the database no longer knows, until it is
    # told to stop.
    pod_id = models.BigIntegerField(primary_key=True)
    node_name = models.CharField(max_length=253, db_index=True)
    next_at = models.FloatField(db_index=True)
    run_seconds = models.FloatField()
    exit_code = models.IntegerField(default=0)
    running = models.BooleanField(default=False)
    leaving = models.BooleanField(default=False)
    message = models.CharField(max_length=512, blank=True, default="")

    def __str__(self) -> str:
        return f"{self.pod_id} on {self.node_name}"
