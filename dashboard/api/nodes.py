"""/api/v1/nodes/: nodes, and what can be done to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.filters import NodeFilters
from dashboard.api.framework import permissions
from dashboard.api.framework.collection import ManifestSet, Objects, Orderings, Rows, Verbs
from dashboard.api.objects import node_object
from dashboard.api.room import WAITING, waiting_page
from dashboard.api.schema.openapi import Operation, Operations
from dashboard.api.watch.endpoint import WATCH_PARAMETERS, ReadObjects, Stamps, Watched
from scheduler.models import Node
from scheduler.models.stamps import stamp_of
from scheduler.selectors.cluster.nodes import GangOnNode, NodeLoad, node_loads
from scheduler.services.cluster import nodes, simulation

_COMMAND = Operation(
    schema.NodeCommandAnswer,
    takes=schema.Reason,
    errors=(404, 409),
    optional_body=True,
)


class Nodes(Watched, ManifestSet):
    noun = "node"
    takes_lists_in_steps = True
    filter_class = NodeFilters
    search_fields = ("name", "kind")
    orderings: ClassVar[Orderings] = {"name": "name", "created": "created_at"}
    verbs: ClassVar[Verbs] = {
        "cordon": {"post": "cordon"},
        "uncordon": {"post": "uncordon"},
        "drain": {"post": "drain"},
        "lose": {"post": "lose"},
        "return": {"post": "bring_back"},
        "waiting": {"get": "waiting"},
    }
    rules: ClassVar[permissions.Rules] = {
        "list": permissions.MEMBER,
        "retrieve": permissions.MEMBER,
        "create": permissions.CLUSTER_ADMIN,
        "update": permissions.CLUSTER_ADMIN,
        "partial_update": permissions.CLUSTER_ADMIN,
        "destroy": permissions.CLUSTER_ADMIN,
        "cordon": permissions.CLUSTER_OPERATE,
        "uncordon": permissions.CLUSTER_OPERATE,
        "drain": permissions.CLUSTER_OPERATE,
        "lose": permissions.CLUSTER_ADMIN,
        "bring_back": permissions.CLUSTER_ADMIN,
        "waiting": permissions.MEMBER,
    }
    operations: ClassVar[Operations] = {
        "list": Operation(
            schema.Node, many=True, errors=(410,), parameters=WATCH_PARAMETERS, streams=True
        ),
        "retrieve": Operation(schema.Node),
        "create": Operation(schema.saved(schema.Node), schema.NodeManifest, 201, bulk=True),
        "update": Operation(schema.saved(schema.Node), schema.NodeManifest),
        "partial_update": Operation(schema.saved(schema.Node), schema.NodeManifest),
        "destroy": Operation(schema.Gone),
        "cordon": _COMMAND,
        "uncordon": _COMMAND,
        "drain": _COMMAND,
        "lose": _COMMAND,
        "bring_back": _COMMAND,
        "waiting": WAITING,
    }

    @property
    def known_parameters(self) -> frozenset[str]:
        known = super().known_parameters
        if self.action_name == "waiting":
            known |= frozenset(each.name for each in WAITING.parameters)
        return known

    def visible_rows(self) -> QuerySet[Any]:
        return Node.objects.all()

    def as_objects(self, rows: Rows) -> Objects:
        loads = node_loads([node.pk for node in rows])
        objects = []
        for node in rows:
            objects.append(node_object(node, loads[node.pk]))
        return objects

    def stamped_list(self, most: int) -> tuple[Stamps, ReadObjects]:
        found = self.filter_rows(self.visible_rows()).annotate(now=stamp_of(Node))
        rows = dict(found.values_list("id", "now").order_by("id")[:most])
        loads = node_loads(list(rows))
        stamps = {key: (now, loads[key]) for key, now in rows.items()}
        return stamps, partial(_objects_by_key, loads)

    def create_object(self, manifest: Any) -> Response:
        made = nodes.create_node(manifest, by=self.actor, dry_run=self.dry_run)
        body = self.as_objects([made.node])[0]
        return self.saved_response(
            body,
            made.notices,
            created=True,
            version=made.node.resource_version,
            location=f"/api/v1/nodes/{made.node.name}/",
        )

    def update_object(self, *, merge: bool, **where: str) -> Response:
        made = nodes.update_node(
            where["name"],
            self.request.data,
            by=self.actor,
            merge=merge,
            expected_version=self.expected_version,
            dry_run=self.dry_run,
        )
        body = self.as_objects([made.node])[0]
        version = made.node.resource_version
        return self.saved_response(body, made.notices, changed=made.changed, version=version)

    def destroy(self, request: Request, name: str) -> Response:
        self.row_or_404()
        nodes.delete_node(
            name,
            by=self.actor,
            expected_version=self.expected_version,
            dry_run=self.dry_run,
        )
        return self.response_with({"message": f"{name} was taken away.", "dryRun": self.dry_run})

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

    def waiting(self, request: Request, name: str) -> Response:
        self.row_or_404()
        return self.response_with(waiting_page(request, name, self.access.visible))

    def _command(
        self,
        name: str,
        verb: str,
        carry_out: Callable[..., nodes.NodeCommandResult],
    ) -> Response:
        self.row_or_404()
        result = carry_out(name, by=self.actor, reason=self.reason, dry_run=self.dry_run)
        body = {
            "changed": result.changed,
            "message": result.message,
            "dryRun": self.dry_run,
            "command": verb,
            "node": name,
            "pods": result.pods,
            "podgroups": [_gang_json(gang) for gang in result.gangs],
            "users": result.users,
        }
        return self.response_with(body)


def _objects_by_key(loads: Mapping[int, NodeLoad], ids: list[int]) -> dict[int, dict[str, Any]]:
    return {node.pk: node_object(node, loads[node.pk]) for node in Node.objects.filter(pk__in=ids)}


def _gang_json(gang: GangOnNode) -> dict[str, Any]:
    """What the gang loses with the node, and whether enough of it is left."""
    return {
        "namespace": gang.namespace,
        "name": gang.name,
        "queue": gang.queue,
        "user": gang.owner,
        "pods": gang.pods,
        "left": gang.left,
        "minMember": gang.needed,
        "breaks": gang.breaks,
    }
