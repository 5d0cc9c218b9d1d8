"""/api/v1/pods/: single pods."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.filters import PodFilters
from dashboard.api.framework import permissions
from dashboard.api.framework.collection import EndpointSet, Objects, Orderings, Rows
from dashboard.api.framework.visible_rows import visible
from dashboard.api.objects import pod_object
from dashboard.api.schema.openapi import Operation, Operations
from scheduler.models import Pod
from scheduler.services.jobs import podgroups


class Pods(EndpointSet):
    noun = "pod"
    takes_lists_in_steps = True
    lookups = ("namespace", "name")
    filter_class = PodFilters
    search_fields = ("name", "podgroup__name", "podgroup__object_name")
    orderings: ClassVar[Orderings] = {
        "created": "created_at",
        "name": "name",
        "namespace": "namespace",
        "phase": "phase",
    }
    default_ordering = "-created"
    rules: ClassVar[permissions.Rules] = {
        "list": permissions.signed_in,
        "retrieve": permissions.signed_in,
        "create": permissions.SUBMIT,
        "destroy": permissions.SUBMIT,
    }
    operations: ClassVar[Operations] = {
        "list": Operation(schema.Pod, many=True),
        "retrieve": Operation(schema.Pod),
        "create": Operation(schema.saved(schema.Pod), schema.PodManifest, 201, bulk=True),
        "destroy": Operation(schema.Gone),
    }

    def visible_rows(self) -> QuerySet[Any]:
        pods = Pod.objects.select_related("podgroup__queue", "node", "pod_class")
        return visible(pods, self.access, "podgroup__queue")

    def as_objects(self, rows: Rows) -> Objects:
        return [pod_object(pod) for pod in rows]

    def create(self, request: Request) -> Response:
        return self.create_each(self._create_pod)

    def _create_pod(self, manifest: Any) -> Response:
        with self.undone_in_dry_run():
            made = podgroups.submit_pod(manifest, by=self.actor)
            body = pod_object(made.pod)
        location = f"/api/v1/pods/{made.pod.namespace}/{made.pod.name}/"
        return self.saved_response(body, made.notices, created=True, location=location)

    def destroy(self, request: Request, namespace: str, name: str) -> Response:
        self.row_or_404()
        message = podgroups.delete_pod(namespace, name, by=self.actor, dry_run=self.dry_run)
        return self.response_with({"message": message, "dryRun": self.dry_run})
