"""/api/v1/cluster/: the cluster as a whole, its scheduler, and pausing it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.framework import permissions
from dashboard.api.framework.endpoint import Endpoint
from dashboard.api.framework.errors import as_sentence, bad_parameter
from dashboard.api.objects import iso_time, record_object
from dashboard.api.schema.openapi import Operation, Operations
from dashboard.http.visibility import Visibility
from scheduler.models import ClusterState, Node
from scheduler.selectors.cluster.evictions import WINDOW, EvictionCosts, eviction_costs
from scheduler.services.sessions.replay import keep_next_sessions
from scheduler.services.sessions.requests import pause_scheduling, resume_scheduling, set_period

_SETTINGS: Final[Mapping[str, type]] = {"periodSeconds": float, "keepSessions": int}
_LONGEST_NUMBER = 20


class Cluster(Endpoint):
    basename = "cluster"
    rules: ClassVar[permissions.Rules] = {
        "get": permissions.MEMBER,
        "patch": permissions.CLUSTER_ADMIN,
    }
    operations: ClassVar[Operations] = {
        "get": Operation(schema.Cluster, summary="The cluster and its scheduler"),
        "patch": Operation(
            schema.saved(schema.Cluster),
            schema.GivenCluster,
            summary="Change the period of sessions, or keep the next ones",
        ),
    }

    def get(self, request: Request) -> Response:
        return self.response_with(self._cluster_object())

    def patch(self, request: Request) -> Response:
        given = _given_settings(request.data)
        with self.undone_in_dry_run():
            before = _cluster_spec(ClusterState.objects.get(pk=1))
            for field, value in given.items():
                if value != before[field]:  # what was read can be sent back
                    self._change_setting(field, value)
            body = self._cluster_object()
        return self.saved_response(body, (), changed=before != body["spec"])

    def _cluster_object(self) -> dict[str, Any]:
        state = ClusterState.objects.get(pk=1)
        return cluster_object(state, Visibility(self.access.visible))

    def _change_setting(self, field: str, value: float) -> None:
        try:
            if field == "periodSeconds":
                set_period(value, by=self.actor)
            else:
                keep_next_sessions(int(value), by=self.actor)
        except ValueError as error:
            raise bad_parameter(f"spec.{field}", as_sentence(str(error))) from None


def cluster_object(state: ClusterState, visibility: Visibility) -> dict[str, Any]:
    """Its warnings can name any queue, so only those who see all queues get them."""
    if visibility.is_whole:
        warnings = state.warnings
    else:
        warnings = []
    status = {
        "paused": state.paused,
        "pausedBy": state.paused_by,
        "pausedAt": iso_time(state.paused_at),
        "pauseReason": state.pause_reason,
        "lastSession": state.last_session,
        "lastSessionAt": iso_time(state.last_session_at),
        "total": state.total.to_quantities(),
        "allocated": state.allocated.to_quantities(),
        "promised": state.promised.to_quantities(),
        "nodes": Node.objects.count(),
        "evictions": evictions_object(eviction_costs(visibility.visible)),
        "warnings": [_warning_object(warning) for warning in warnings],
    }
    return record_object("Cluster", state.name, None, _cluster_spec(state), status)


def evictions_object(costs: EvictionCosts) -> dict[str, Any]:
    often = []
    for gang in costs.often:
        often.append(
            {
                "podgroup": gang.podgroup,
                "queue": gang.queue,
                "times": gang.times,
                "pods": gang.pods,
                "lastAt": iso_time(gang.last),
            }
        )
    return {
        "windowSeconds": int(WINDOW.total_seconds()),
        "placements": costs.placements,
        "evictions": costs.evictions,
        "perPlacement": costs.per_placement,
        "lostOf": costs.lost_of,
        "lostSeconds": round(costs.lost_seconds, 3),
        "lostShare": costs.lost_share,
        "often": often,
    }


def _warning_object(warning: Any) -> dict[str, Any]:
    if isinstance(warning, dict):
        return warning
    return {"message": str(warning)}


def _cluster_spec(state: ClusterState) -> dict[str, Any]:
    return {"periodSeconds": state.period_seconds, "keepSessions": state.keep_sessions}


def _given_settings(body: Any) -> dict[str, float]:
    spec = None
    if isinstance(body, Mapping):
        spec = body.get("spec")
    given: dict[str, float] = {}
    if isinstance(spec, Mapping):
        for field in _SETTINGS:
            if field in spec:
                given[field] = _number(field, spec[field])
    if not given:
        message = (
            'Give {"spec": {"periodSeconds": 1}}, in seconds, or {"spec": {"keepSessions": 5}}.'
        )
        raise bad_parameter("spec.periodSeconds", message)
    return given


def _number(field: str, value: Any) -> float:
    """A number with a decimal point comes as text, so that it keeps all its digits."""
    try:
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise ValueError
        if len(str(value)) > _LONGEST_NUMBER:
            raise ValueError
        number: float = _SETTINGS[field](value)
        return number
    except ValueError:
        raise bad_parameter(f"spec.{field}", f"{field} must be a number.") from None


class ClusterCommand(Endpoint):
    rules: ClassVar[permissions.Rules] = {"post": permissions.CLUSTER_OPERATE}
    operations: ClassVar[Operations] = {
        "post": Operation(schema.ClusterCommandAnswer, takes=schema.Reason, optional_body=True)
    }
    verb: ClassVar[str]

    def carry_out(self) -> bool:
        """Whether anything changed."""
        raise NotImplementedError

    def post(self, request: Request) -> Response:
        with self.undone_in_dry_run():
            changed = self.carry_out()
            paused = ClusterState.objects.values_list("paused", flat=True).get(pk=1)
        message = f"Scheduling is {self.verb}d."
        if not changed:
            message = f"Scheduling is {self.verb}d already; nothing was changed."
        body = {
            "changed": changed,
            "message": message,
            "dryRun": self.dry_run,
            "command": self.verb,
            "paused": paused,
        }
        return self.response_with(body)


class ClusterPause(ClusterCommand):
    basename = "cluster_pause"
    verb = "pause"

    def carry_out(self) -> bool:
        return pause_scheduling(by=self.actor, reason=self.reason)


class ClusterResume(ClusterCommand):
    basename = "cluster_resume"
    verb = "resume"

    def carry_out(self) -> bool:
        return resume_scheduling(by=self.actor, reason=self.reason)
