"""/api/v1/pods/: single pods."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.filters import PodFilters
from dashboard.api.framework import permissions
from dashboard.api.framework.collection import Objects, Orderings, Rows, Verbs
from dashboard.api.framework.errors import Refusal
from dashboard.api.framework.formats import EventStreamRenderer
from dashboard.api.framework.parameters import read_boolean
from dashboard.api.framework.visible_rows import visible
from dashboard.api.objects import container_object, pod_object
from dashboard.api.pod_logs import (
    LOG_PARAMETERS,
    POD_FOLLOWING,
    follow_logs,
    log_question,
    names_of,
)
from dashboard.api.schema.openapi import Operation, Operations
from dashboard.api.watch.endpoint import WATCH_PARAMETERS, ReadObjects, Stamps, Watched
from scheduler.conf import is_kubernetes
from scheduler.models import Pod, PodGroup
from scheduler.models.stamps import stamp_of
from scheduler.selectors.jobs.log_pods import LogPods
from scheduler.services.cluster import pod_logs
from scheduler.services.jobs import single_pods


class Pods(Watched):
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
    verbs: ClassVar[Verbs] = {
        "log": {"get": "log"},
        "log/follow": {"get": "follow_log"},
    }
    rules: ClassVar[permissions.Rules] = {
        "list": permissions.signed_in,
        "retrieve": permissions.signed_in,
        "log": permissions.signed_in,
        "follow_log": permissions.signed_in,
        "create": permissions.SUBMIT,
        "destroy": permissions.SUBMIT,
    }
    operations: ClassVar[Operations] = {
        "list": Operation(
            schema.Pod, many=True, errors=(410,), parameters=WATCH_PARAMETERS, streams=True
        ),
        "retrieve": Operation(schema.Pod),
        "create": Operation(schema.saved(schema.Pod), schema.PodManifest, 201, bulk=True),
        "destroy": Operation(schema.Gone),
        "log": Operation(
            schema.PodLog,
            summary="What a container of it has written, and how its containers are",
            parameters=LOG_PARAMETERS,
        ),
        "follow_log": POD_FOLLOWING,
    }

    @property
    def known_parameters(self) -> frozenset[str]:
        known = super().known_parameters
        if self.action_name in ("log", "follow_log"):
            known |= names_of(self.operations[self.action_name].parameters)
        return known

    def get_renderers(self) -> list[Any]:
        if getattr(self, "action", "") == "follow_log":
            return [*super().get_renderers(), EventStreamRenderer()]
        return super().get_renderers()

    def visible_rows(self) -> QuerySet[Any]:
        pods = Pod.objects.select_related("podgroup__queue", "node", "pod_class")
        return visible(pods, self.access, "podgroup__queue")

    def as_objects(self, rows: Rows) -> Objects:
        return [pod_object(pod) for pod in rows]

    def stamped_list(self, most: int) -> tuple[Stamps, ReadObjects]:
        """A pod shows names of its podgroup and its node, and its podgroup says why it waits."""
        found = self.filter_rows(visible(Pod.objects.all(), self.access, "podgroup__queue"))
        now = {"now": stamp_of(Pod), "group": stamp_of(PodGroup)}
        rows = found.annotate(**now).values_list("id", "podgroup__name", *now)
        stamps = {row[0]: row[1:] for row in rows.order_by("id")[:most]}
        return stamps, _objects_by_key

    def create(self, request: Request) -> Response:
        return self.create_each(self._create_pod)

    def _create_pod(self, manifest: Any) -> Response:
        with self.undone_in_dry_run():
            made = single_pods.submit_pod(manifest, by=self.actor)
            body = pod_object(made.pod)
        location = f"/api/v1/pods/{made.pod.namespace}/{made.pod.name}/"
        return self.saved_response(body, made.notices, created=True, location=location)

    def log(self, request: Request, namespace: str, name: str) -> Response:
        pod = self.row_or_404()
        found = pod_logs.read_log(self.actor, pod, log_question(request))
        if found.problem and is_kubernetes():
            raise Refusal(found.problem, code=409, problem_type="conflict")
        containers = [container_object(each) for each in pod_logs.read_containers(pod)]
        answer = {
            "pod": str(pod),
            "log": found.written(with_times=read_boolean(request, "timestamps")),
            "cut": found.is_cut,
            "message": found.problem,
            "containers": containers,
        }
        return self.response_with(answer)

    def follow_log(self, request: Request, namespace: str, name: str) -> HttpResponseBase:
        pod = self.row_or_404()
        return follow_logs(self, pod.podgroup, LogPods(pod.podgroup_id, pod=pod.name))

    def destroy(self, request: Request, namespace: str, name: str) -> Response:
        self.row_or_404()
        message = single_pods.delete_pod(namespace, name, by=self.actor, dry_run=self.dry_run)
        return self.response_with({"message": message, "dryRun": self.dry_run})


def _objects_by_key(ids: list[int]) -> dict[int, dict[str, Any]]:
    found = Pod.objects.select_related("podgroup__queue", "node", "pod_class")
    return {pod.pk: pod_object(pod) for pod in found.filter(pk__in=ids)}
