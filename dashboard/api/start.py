"""/api/v1/: what there is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from dashboard.api import schema
from dashboard.api.framework import permissions
from dashboard.api.framework.endpoint import Endpoint
from dashboard.api.schema.openapi import Operation, Operations


class Start(Endpoint):
    basename = "start"
    rules: ClassVar[permissions.Rules] = {"get": permissions.signed_in}
    operations: ClassVar[Operations] = {"get": Operation(schema.Start, summary="What there is")}

    def get(self, request: Request) -> Response:
        from dashboard.api.urls import COLLECTIONS, SETS, SINGLETONS

        body = {
            "collections": _addresses(request, COLLECTIONS, "-list"),
            "singletons": _addresses(request, SINGLETONS),
            "sets": _addresses(request, SETS),
        }
        return self.response_with(body)


def _addresses(request: Request, names: Iterable[str], ending: str = "") -> dict[str, str]:
    addresses = {}
    for name in names:
        route = f"api:{name.replace('/', '-')}{ending}"
        addresses[name] = reverse(route, request=request) + "/"
    return addresses
