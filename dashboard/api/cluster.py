"""/api/v1/nodes/, namespaces/, priorityclasses/, policy/ and cluster/: what belongs to the cluster and to no queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import permissions, schema
from dashboard.api.base import Endpoint, EndpointSet, Objects, Rows
from dashboard.api.errors import Refusal, bad_parameter, notice_json, violation_json
from dashboard.api.filters import NameFilters, NodeFilters
from dashboard.api.history import Records
from dashboard.api.objects import (
    namespace_object,
    node_object,
    priority_class_object,
    record_object,
    stamp,
)
from dashboard.api.schema.openapi import Form, query
from dashboard.http.visibility import Sight
from scheduler.admission.violations import Rejected
from scheduler.domain.access import Permission
from scheduler.models import ClusterState, Namespace, Node, PolicyVersion, PriorityClass
from scheduler.selectors.cluster.nodes import GangOnNode, node_loads
from scheduler.services.cluster import nodes, simulation
from scheduler.services.files import catalog
from scheduler.services.sessions.policies import (
    DEFAULT_VERSION,
    check_policy,
    notices_on,
    policy_text,
    policy_version,
    replace_policy,
)
from scheduler.services.sessions.policy_effects import PolicyEffect, SessionEffect, effect_of
from scheduler.services.sessions.replay import keep_next_sessions
from scheduler.services.sessions.requests import pause_scheduling, resume_scheduling, set_period

_NODE_VERBS = ("cordon", "uncordon", "drain")
_SIMULATED_VERBS = {"lose": "lose", "return": "bring_back"}  # by their last part of the address
_NODE_COMMAND = Form(
    schema.NodeCommandAnswer, takes=schema.Reason, errors=(404, 409), optional_body=True
)


class Nodes(EndpointSet):
    kind = "node"
    takes_lists_in_steps = True
    filter_class = NodeFilters
    search_fields = ("name", "kind")
    orderings: ClassVar[Mapping[str, str]] = {"name": "name", "created": "created_at"}
    verbs: ClassVar[Mapping[str, Mapping[str, str]]] = {
        verb: {"post": method}
        for verb, method in {**{name: name for name in _NODE_VERBS}, **_SIMULATED_VERBS}.items()
    }
    rules: ClassVar[Mapping[str, permissions.Rule]] = {
        **dict.fromkeys(("list", "retrieve"), permissions.MEMBER),
        **dict.fromkeys(
            ("create", "update", "partial_update", "destroy", *_SIMULATED_VERBS.values()),
            permissions.CLUSTER_ADMIN,
        ),
        **dict.fromkeys(_NODE_VERBS, permissions.CLUSTER_OPERATE),
    }
    forms: ClassVar[Mapping[str, Form]] = {
        "list": Form(schema.Node, many=True),
        "retrieve": Form(schema.Node),
        "create": Form(schema.saved(schema.Node), schema.NodeManifest, 201, bulk=True),
        "update": Form(schema.saved(schema.Node), schema.NodeManifest),
        "partial_update": Form(schema.saved(schema.Node), schema.NodeManifest),
        "destroy": Form(schema.Gone),
        **dict.fromkeys((*_NODE_VERBS, *_SIMULATED_VERBS.values()), _NODE_COMMAND),
    }

    def query(self) -> QuerySet[Any]:
        return Node.objects.all()

    def present(self, rows: Rows) -> Objects:
        loads = node_loads([node.pk for node in rows])
        return [node_object(node, loads[node.pk]) for node in rows]

    def create(self, request: Request) -> Response:
        return self.each(self._create)

    def _create(self, manifest: Any) -> Response:
        with self.rehearsal():
            made = nodes.create_node(manifest, by=self.actor)
            body = self.present([made.node])[0]
        return self.saved(
            body,
            made.notices,
            created=True,
            version=made.node.resource_version,
            location=f"/api/v1/nodes/{made.node.name}/",
        )

    def update(self, request: Request, name: str) -> Response:
        return self._update(name, merge=False)

    def partial_update(self, request: Request, name: str) -> Response:
        return self._update(name, merge=True)

    def _update(self, name: str, merge: bool) -> Response:
        self.found()
        with self.rehearsal():
            made = nodes.update_node(
                name,
                self.request.data,
                by=self.actor,
                merge=merge,
                expected_version=self.expected_version,
            )
            body = self.present([made.node])[0]
        return self.saved(
            body, made.notices, changed=made.changed, version=made.node.resource_version
        )

    def destroy(self, request: Request, name: str) -> Response:
        self.found()
        nodes.delete_node(
            name, by=self.actor, expected_version=self.expected_version, dry_run=self.dry_run
        )
        return self.answer({"message": f"{name} was taken away.", "dryRun": self.dry_run})

    def cordon(self, request: Request, name: str) -> Response:
        return self._command(name, "cordon", nodes.cordon_node)

    def uncordon(self, request: Request, name: str) -> Response:
        return self._command(name, "uncordon", nodes.uncordon_node)

    def drain(self, request: Request, name: str) -> Response:
        return self._command(name, "drain", nodes.drain_node)

    def lose(self, request: Request, name: str) -> Response:
        return self._command(name, "lose", simulation.lose_node)

    def bring_back(self, request: Request, name: str) -> Response:
        return self._command(name, "return", simulation.bring_back_node)

    def _command(
        self, name: str, verb: str, act: Callable[..., nodes.NodeCommandResult]
    ) -> Response:
        self.found()
        result = act(name, by=self.actor, reason=self.reason, dry_run=self.dry_run)
        body = {"changed": result.changed, "message": result.message, "dryRun": self.dry_run}
        touched = {
            "pods": result.pods,
            "podgroups": [_gang_json(gang) for gang in result.gangs],
            "users": result.users,
        }
        return self.answer({**body, "command": verb, "node": name, **touched})


def _gang_json(gang: GangOnNode) -> dict[str, Any]:
    """What the gang loses with the node, and whether enough of it is left."""
    said = {"namespace": gang.namespace, "name": gang.name, "queue": gang.queue, "user": gang.owner}
    return {
        **said,
        "pods": gang.pods,
        "left": gang.left,
        "minMember": gang.needed,
        "breaks": gang.breaks,
    }


class _Catalog(EndpointSet):
    """Namespaces and priority classes, which are kept alike."""

    entries: ClassVar[catalog.Kind]
    takes_lists_in_steps = True
    filter_class = NameFilters
    search_fields = ("name",)
    orderings: ClassVar[Mapping[str, str]] = {"name": "name", "created": "created_at"}
    rules: ClassVar[Mapping[str, permissions.Rule]] = {
        **dict.fromkeys(("list", "retrieve"), permissions.MEMBER),
        **dict.fromkeys(
            ("create", "update", "partial_update", "destroy"), permissions.CLUSTER_ADMIN
        ),
    }

    def query(self) -> QuerySet[Any]:
        found: QuerySet[Any] = self.entries.model.objects.all()
        return found

    def shown(self, row: Any) -> dict[str, Any]:
        raise NotImplementedError

    def present(self, rows: Rows) -> Objects:
        return [self.shown(row) for row in rows]

    def create(self, request: Request) -> Response:
        return self.each(self._create)

    def _create(self, manifest: Any) -> Response:
        made = catalog.create_entry(self.entries, manifest, by=self.actor, dry_run=self.dry_run)
        place = f"/api/v1/{self.basename}/{made.row.name}/"
        return self.saved(
            self.shown(made.row),
            made.notices,
            created=True,
            version=made.row.resource_version,
            location=place,
        )

    def update(self, request: Request, name: str) -> Response:
        return self._update(name, merge=False)

    def partial_update(self, request: Request, name: str) -> Response:
        return self._update(name, merge=True)

    def _update(self, name: str, merge: bool) -> Response:
        self.found()
        made = catalog.update_entry(
            self.entries,
            name,
            self.request.data,
            by=self.actor,
            merge=merge,
            expected_version=self.expected_version,
            dry_run=self.dry_run,
        )
        return self.saved(
            self.shown(made.row),
            made.notices,
            changed=made.changed,
            version=made.row.resource_version,
        )

    def destroy(self, request: Request, name: str) -> Response:
        self.found()
        catalog.delete_entry(
            self.entries,
            name,
            by=self.actor,
            expected_version=self.expected_version,
            dry_run=self.dry_run,
        )
        return self.answer({"message": f"{name} was deleted.", "dryRun": self.dry_run})


def _catalog_forms(shape: Any, manifest: Any) -> dict[str, Form]:
    return {
        "list": Form(shape, many=True),
        "retrieve": Form(shape),
        "create": Form(schema.saved(shape), manifest, 201, bulk=True),
        "update": Form(schema.saved(shape), manifest),
        "partial_update": Form(schema.saved(shape), manifest),
        "destroy": Form(schema.Gone),
    }


class Namespaces(_Catalog):
    kind = "namespace"
    entries = catalog.NAMESPACES
    forms: ClassVar[Mapping[str, Form]] = _catalog_forms(schema.Namespace, schema.NamespaceManifest)

    def shown(self, row: Namespace) -> dict[str, Any]:
        return namespace_object(row, Sight(self.access.visible))


class PriorityClasses(_Catalog):
    kind = "priority class"
    entries = catalog.PRIORITY_CLASSES
    forms: ClassVar[Mapping[str, Form]] = _catalog_forms(
        schema.PriorityClass, schema.PriorityClassManifest
    )
    orderings: ClassVar[Mapping[str, str]] = {
        "name": "name",
        "value": "value",
        "created": "created_at",
    }

    def shown(self, row: PriorityClass) -> dict[str, Any]:
        return priority_class_object(row)


# Singletons


def policy_object(state: ClusterState) -> dict[str, Any]:
    version = state.policy
    status = {
        "author": version.author if version else "",
        "reason": version.reason if version else "",
        "since": stamp(version.created_at) if version and version.pk else None,
        "warnings": list(version.warnings) if version else [],
        "isDefault": version is None,
    }
    body = record_object(
        "Policy",
        "policy",
        version.created_at if version else None,
        {"policy": policy_text(state)},
        status,
    )
    body["metadata"]["resourceVersion"] = str(state.policy_id or DEFAULT_VERSION)
    return body


def _policy_of(request: Request) -> tuple[str, str]:
    """The text of the policy and the reason: an object with `spec.policy`, or the policy itself as YAML."""
    body = request.data
    if (
        isinstance(body, Mapping)
        and isinstance(body.get("spec"), Mapping)
        and isinstance(body["spec"].get("policy"), str)
    ):
        reason = body.get("reason")
        return body["spec"]["policy"], reason if isinstance(reason, str) else ""
    if isinstance(body, Mapping) and ("actions" in body or "tiers" in body):
        return getattr(request, "raw_text", ""), ""
    raise Refusal(
        'Send {"spec": {"policy": "…"}} with the text of the policy, or the policy itself as YAML.',
        kind="invalid-request",
    )


class Policy(Endpoint):
    basename = "policy"
    rules: ClassVar[Mapping[str, permissions.Rule]] = {
        "get": permissions.MEMBER,
        "put": permissions.CLUSTER_ADMIN,
    }
    forms: ClassVar[Mapping[str, Form]] = {
        "get": Form(schema.Policy, summary="The policy in force"),
        "put": Form(
            schema.SavedPolicy,
            schema.GivenPolicy,
            summary="Replace the policy; a dry run says what the next session would do differently",
            errors=(409, 412),
            parameters=(
                query(
                    "confirm",
                    "Apply it although no job would start under it: else 409.",
                    OpenApiTypes.BOOL,
                ),
            ),
        ),
    }

    @property
    def known_parameters(self) -> frozenset[str]:
        return super().known_parameters | (
            {"confirm"} if self.request.method == "PUT" else frozenset()
        )

    def get(self, request: Request) -> Response:
        state = ClusterState.objects.select_related("policy").get(pk=1)
        return self.answer(policy_object(state), version=state.policy_id or DEFAULT_VERSION)

    def put(self, request: Request) -> Response:
        text, reason = _policy_of(request)
        with self.rehearsal():
            effect = self._effect(text) if self.dry_run else None
            made = replace_policy(
                text,
                by=self.actor,
                reason=reason,
                expected_version=self.expected_version,
                confirmed=self.dry_run or self.truth("confirm"),
            )
            body = {**policy_object(made.state), "effect": effect}
        return self.saved(
            body,
            made.notices,
            changed=made.changed,
            version=made.state.policy_id or DEFAULT_VERSION,
        )

    def _effect(self, text: str) -> dict[str, Any]:
        self.access.require_cluster(Permission.ADMINISTER, "replace the policy")
        state = ClusterState.objects.select_related("policy").get(pk=1)
        return _effect_object(effect_of(check_policy(text).policy, state))


_MOST_NAMED = 50


def _effect_object(effect: PolicyEffect) -> dict[str, Any]:
    return {
        "now": _session_object(effect.now),
        "then": _session_object(effect.then),
        "waiting": effect.waiting,
        "noLonger": effect.no_longer[:_MOST_NAMED],
        "newly": effect.newly[:_MOST_NAMED],
    }


def _session_object(effect: SessionEffect) -> dict[str, int]:
    return {"placed": effect.placed, "gangs": len(effect.gangs), "evicted": effect.evicted}


class PolicyVersions(Records):
    """Policies that were ever in force; the one that is built in has the number 0, and is in no list."""

    kind = "policy version"
    search_fields = ("author", "reason")
    rules: ClassVar[Mapping[str, permissions.Rule]] = dict.fromkeys(
        ("list", "retrieve"), permissions.MEMBER
    )
    forms: ClassVar[Mapping[str, Form]] = {
        "list": Form(schema.PolicyVersion, many=True),
        "retrieve": Form(schema.PolicyVersion),
    }

    def query(self) -> QuerySet[Any]:
        return PolicyVersion.objects.all()

    def found(self, **where: str) -> Any:
        row = policy_version(self.lookup(where or self.kwargs)["id"])
        if row is None:
            raise self.nothing_found()
        return row

    def present(self, rows: Rows) -> Objects:
        current = ClusterState.objects.values_list("policy", flat=True).get(pk=1)
        return [_version_object(row, row.pk == (current or DEFAULT_VERSION)) for row in rows]


def _version_object(row: PolicyVersion, in_force: bool) -> dict[str, Any]:
    status = {
        "author": row.author,
        "reason": row.reason,
        "warnings": list(row.warnings),
        "inForce": in_force,
    }
    return record_object("PolicyVersion", str(row.pk), row.created_at, {"policy": row.text}, status)


class PolicyValidate(Endpoint):
    basename = "policy_validate"
    writes_are_dry_runnable = False
    rules: ClassVar[Mapping[str, permissions.Rule]] = {"post": permissions.MEMBER}
    forms: ClassVar[Mapping[str, Form]] = {
        "post": Form(schema.CheckedPolicy, schema.GivenPolicy, summary="Check a policy")
    }

    def post(self, request: Request) -> Response:
        text, _ = _policy_of(request)
        try:
            reading = check_policy(text)
        except Rejected as refusal:
            return self.answer(
                {
                    "valid": False,
                    "violations": [violation_json(item) for item in refusal.violations],
                    "warnings": [],
                }
            )
        return self.answer(
            {
                "valid": True,
                "violations": [],
                "warnings": [notice_json(notice) for notice in notices_on(reading)],
            }
        )


def cluster_object(state: ClusterState, sight: Sight) -> dict[str, Any]:
    """Its warnings can name any queue, so they are for those who see all."""
    warnings = state.warnings if sight.is_whole else []
    status = {
        "paused": state.paused,
        "pausedBy": state.paused_by,
        "pausedAt": stamp(state.paused_at),
        "pauseReason": state.pause_reason,
        "lastSession": state.last_session,
        "lastSessionAt": stamp(state.last_session_at),
        "total": state.total.to_quantities(),
        "allocated": state.allocated.to_quantities(),
        "promised": state.promised.to_quantities(),
        "nodes": Node.objects.count(),
        "warnings": [
            warning if isinstance(warning, dict) else {"message": str(warning)}
            for warning in warnings
        ],
    }
    return record_object("Cluster", state.name, None, _cluster_spec(state), status)


def _cluster_spec(state: ClusterState) -> dict[str, Any]:
    return {"periodSeconds": state.period_seconds, "keepSessions": state.keep_sessions}


class Cluster(Endpoint):
    basename = "cluster"
    rules: ClassVar[Mapping[str, permissions.Rule]] = {
        "get": permissions.MEMBER,
        "patch": permissions.CLUSTER_ADMIN,
    }
    forms: ClassVar[Mapping[str, Form]] = {
        "get": Form(schema.Cluster, summary="The cluster and its scheduler"),
        "patch": Form(
            schema.saved(schema.Cluster),
            schema.GivenCluster,
            summary="Change the period of sessions, or keep the next ones",
        ),
    }

    def get(self, request: Request) -> Response:
        return self.answer(
            cluster_object(ClusterState.objects.get(pk=1), Sight(self.access.visible))
        )

    def patch(self, request: Request) -> Response:
        given = _settings_of(request.data)
        with self.rehearsal():
            before = _cluster_spec(ClusterState.objects.get(pk=1))
            for field, value in given.items():
                if value != before[field]:  # what was read can be sent back
                    self._set(field, value)
            body = cluster_object(ClusterState.objects.get(pk=1), Sight(self.access.visible))
        return self.saved(body, (), changed=before != body["spec"])

    def _set(self, field: str, value: float) -> None:
        try:
            if field == "periodSeconds":
                set_period(value, by=self.actor)
            else:
                keep_next_sessions(int(value), by=self.actor)
        except ValueError as error:
            raise bad_parameter(
                f"spec.{field}", f"{str(error)[0].upper()}{str(error)[1:].rstrip('.')}."
            ) from None


_SETTINGS: Final[Mapping[str, type]] = {"periodSeconds": float, "keepSessions": int}


def _settings_of(body: Any) -> dict[str, float]:
    spec = body.get("spec") if isinstance(body, Mapping) else None
    known = (
        {field: value for field, value in spec.items() if field in _SETTINGS}
        if isinstance(spec, Mapping)
        else {}
    )
    if not known:
        raise bad_parameter(
            "spec.periodSeconds",
            'Give {"spec": {"periodSeconds": 1}}, in seconds, or {"spec": {"keepSessions": 5}}.',
        )
    return {field: _number(field, value) for field, value in known.items()}


def _number(field: str, value: Any) -> float:
    try:  # a number with a point comes as its text
        if isinstance(value, bool) or not isinstance(value, (int, str)) or len(str(value)) > 20:
            raise ValueError
        number: float = _SETTINGS[field](value)
        return number
    except ValueError:
        raise bad_parameter(f"spec.{field}", f"{field} must be a number.") from None


class ClusterCommand(Endpoint):
    rules: ClassVar[Mapping[str, permissions.Rule]] = {"post": permissions.CLUSTER_OPERATE}
    forms: ClassVar[Mapping[str, Form]] = {
        "post": Form(schema.ClusterCommandAnswer, takes=schema.Reason, optional_body=True)
    }
    verb: ClassVar[str]

    def act(self) -> bool:
        raise NotImplementedError

    def post(self, request: Request) -> Response:
        with self.rehearsal():
            changed = self.act()
            paused = ClusterState.objects.values_list("paused", flat=True).get(pk=1)
        done = (
            f"Scheduling is {self.verb}d."
            if changed
            else f"Scheduling is {self.verb}d already; nothing was changed."
        )
        return self.answer(
            {
                "changed": changed,
                "message": done,
                "dryRun": self.dry_run,
                "command": self.verb,
                "paused": paused,
            }
        )


class ClusterPause(ClusterCommand):
    basename, verb = "cluster_pause", "pause"

    def act(self) -> bool:
        return pause_scheduling(by=self.actor, reason=self.reason)


class ClusterResume(ClusterCommand):
    basename, verb = "cluster_resume", "resume"

    def act(self) -> bool:
        return resume_scheduling(by=self.actor, reason=self.reason)
