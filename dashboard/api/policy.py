"""/api/v1/policy/, policy/validate/, policy/presets/ and policyversions/: the scheduling policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.framework import permissions
from dashboard.api.framework.collection import Objects, Rows
from dashboard.api.framework.endpoint import Endpoint
from dashboard.api.framework.errors import Refusal, notice_json, violation_json
from dashboard.api.objects import iso_time, record_object
from dashboard.api.records import Records
from dashboard.api.schema.openapi import Operation, Operations, query_parameter
from scheduler.admission.violations import Rejected
from scheduler.domain.access import Permission
from scheduler.models import ClusterState, PolicyVersion
from scheduler.scenarios.meanings import ALL_SETTINGS
from scheduler.services.sessions.policies import (
    DEFAULT_VERSION,
    check_policy,
    notices_on,
    policy_text,
    policy_version,
    replace_policy,
)
from scheduler.services.sessions.policy_effects import PolicyEffect, SessionEffect, effect_of
from scheduler.services.sessions.presets import (
    Preset,
    all_presets,
    preset_in_force,
    preset_text,
    preset_with_other_times_in_force,
)

_MOST_NAMED = 50
"""Gangs that the effect of a policy names."""


class Policy(Endpoint):
    basename = "policy"
    rules: ClassVar[permissions.Rules] = {
        "get": permissions.MEMBER,
        "put": permissions.CLUSTER_ADMIN,
    }
    operations: ClassVar[Operations] = {
        "get": Operation(schema.Policy, summary="The policy in force"),
        "put": Operation(
            schema.SavedPolicy,
            schema.GivenPolicy,
            summary="Replace the policy by a text or a preset; a dry run says what the next "
            "session would do differently",
            errors=(409, 412),
            parameters=(
                query_parameter(
                    "confirm",
                    "Apply it although no job would start under it, or it is the preset "
                    "`bound`: else 409.",
                    OpenApiTypes.BOOL,
                ),
            ),
        ),
    }

    @property
    def known_parameters(self) -> frozenset[str]:
        known = super().known_parameters
        if self.request.method == "PUT":
            known |= {"confirm"}
        return known

    def get(self, request: Request) -> Response:
        state = _cluster_state()
        return self.response_with(policy_object(state), version=_version_in_force(state))

    def put(self, request: Request) -> Response:
        text, reason = _given_policy(request)
        with self.undone_in_dry_run():
            effect = None
            if self.dry_run:
                effect = self._effect_of(text)
            made = replace_policy(
                text,
                by=self.actor,
                reason=reason,
                expected_version=self.expected_version,
                confirmed=self.dry_run or self.boolean_parameter("confirm"),
            )
            body = {**policy_object(made.state), "effect": effect}
        version = _version_in_force(made.state)
        return self.saved_response(body, made.notices, changed=made.changed, version=version)

    def _effect_of(self, text: str) -> dict[str, Any]:
        self.access.require_cluster(Permission.ADMINISTER, "replace the policy")
        return _effect_object(effect_of(check_policy(text).policy, _cluster_state()))


class PolicyValidate(Endpoint):
    basename = "policy_validate"
    writes_are_dry_runnable = False
    rules: ClassVar[permissions.Rules] = {"post": permissions.MEMBER}
    operations: ClassVar[Operations] = {
        "post": Operation(schema.CheckedPolicy, schema.GivenPolicy, summary="Check a policy")
    }

    def post(self, request: Request) -> Response:
        text, _reason = _given_policy(request)
        try:
            reading = check_policy(text)
        except Rejected as refusal:
            violations = [violation_json(item) for item in refusal.violations]
            body = {"valid": False, "violations": violations, "warnings": []}
            return self.response_with(body)
        warnings = [notice_json(notice) for notice in notices_on(reading)]
        return self.response_with({"valid": True, "violations": [], "warnings": warnings})


class PolicyPresets(Endpoint):
    basename = "policy_presets"
    rules: ClassVar[permissions.Rules] = {"get": permissions.MEMBER}
    operations: ClassVar[Operations] = {
        "get": Operation(
            schema.PolicyPresets,
            summary="Policies by name, with what their settings mean",
        )
    }

    def get(self, request: Request) -> Response:
        presets = []
        for preset in all_presets(_cluster_state()):
            presets.append(_preset_object(preset))
        return self.response_with({"presets": presets})


class PolicyVersions(Records):
    """Policies that were ever in force. The built-in one has the number 0 and is in no list."""

    noun = "policy version"
    search_fields = ("author", "reason")
    rules: ClassVar[permissions.Rules] = {
        "list": permissions.MEMBER,
        "retrieve": permissions.MEMBER,
    }
    operations: ClassVar[Operations] = {
        "list": Operation(schema.PolicyVersion, many=True),
        "retrieve": Operation(schema.PolicyVersion),
    }

    def visible_rows(self) -> QuerySet[Any]:
        return PolicyVersion.objects.all()

    def row_or_404(self, **where: str) -> Any:
        row = policy_version(self.lookup_values(where or self.kwargs)["id"])
        if row is None:
            raise self.nothing_found()
        return row

    def as_objects(self, rows: Rows) -> Objects:
        current = ClusterState.objects.values_list("policy", flat=True).get(pk=1)
        in_force = current or DEFAULT_VERSION
        objects = []
        for row in rows:
            objects.append(_version_object(row, row.pk == in_force))
        return objects


def _cluster_state() -> ClusterState:
    return ClusterState.objects.select_related("policy").get(pk=1)


def _version_in_force(state: ClusterState) -> int:
    return state.policy_id or DEFAULT_VERSION


def _given_policy(request: Request) -> tuple[str, str]:
    """The policy's text and the reason.

    The body is an object with `spec.policy` or `spec.preset`, or the policy itself as YAML.
    """
    body = request.data
    if not isinstance(body, Mapping):
        raise _no_policy()
    text = _text_in(body.get("spec"))
    if text is None:
        text = _text_in(body)
    if text is not None:
        reason = body.get("reason")
        if not isinstance(reason, str):
            reason = ""
        return text, reason
    if "actions" in body or "tiers" in body:
        return getattr(request, "raw_text", ""), ""
    raise _no_policy()


def _text_in(spec: object) -> str | None:
    """The text, or that of the preset; None if neither is named. Raises `Rejected`."""
    if not isinstance(spec, Mapping):
        return None
    if isinstance(spec.get("policy"), str) and "preset" not in spec:
        return str(spec["policy"])
    if isinstance(spec.get("preset"), str) and "policy" not in spec:
        return preset_text(spec["preset"])
    return None


def _no_policy() -> Refusal:
    return Refusal(
        'Send {"spec": {"policy": "…"}} with the text of the policy, '
        '{"spec": {"preset": "…"}} with the name of a preset, or the policy itself as YAML.'
    )


def policy_object(state: ClusterState) -> dict[str, Any]:
    version = state.policy or PolicyVersion(author="", reason="", warnings=[])
    since = None
    if version.pk:
        since = version.created_at
    status = {
        "author": version.author,
        "reason": version.reason,
        "since": iso_time(since),
        "warnings": list(version.warnings),
        "isDefault": state.policy is None,
        "preset": preset_in_force(state),
        "presetWithOtherTimes": preset_with_other_times_in_force(state),
    }
    spec = {"policy": policy_text(state)}
    created = None
    if state.policy:
        created = state.policy.created_at
    body = record_object("Policy", "policy", created, spec, status)
    body["metadata"]["resourceVersion"] = str(_version_in_force(state))
    return body


def _preset_object(preset: Preset) -> dict[str, Any]:
    settings = []
    for setting in ALL_SETTINGS:
        settings.append(
            {
                "owner": setting.owner,
                "name": setting.name,
                "value": preset.value_of(setting),
                "default": setting.default,
                "meaning": setting.meaning,
            }
        )
    return {
        "name": preset.name,
        "about": preset.about,
        "policy": preset.text,
        "isDefault": preset.is_default,
        "inForce": preset.is_current,
        "inForceWithOtherTimes": preset.is_current_but_for_times,
        "settings": settings,
    }


def _version_object(row: PolicyVersion, in_force: bool) -> dict[str, Any]:
    status = {
        "author": row.author,
        "reason": row.reason,
        "warnings": list(row.warnings),
        "inForce": in_force,
    }
    return record_object("PolicyVersion", str(row.pk), row.created_at, {"policy": row.text}, status)


def _effect_object(effect: PolicyEffect) -> dict[str, Any]:
    return {
        "now": _session_effect_object(effect.now),
        "then": _session_effect_object(effect.then),
        "waiting": effect.waiting,
        "noLonger": effect.no_longer[:_MOST_NAMED],
        "newly": effect.newly[:_MOST_NAMED],
    }


def _session_effect_object(effect: SessionEffect) -> dict[str, int]:
    return {"placed": effect.placed, "gangs": len(effect.gangs), "evicted": effect.evicted}
