"""/api/v1/sample/: the sample tree, for a cluster that has no queues of its own yet."""

from __future__ import annotations

from typing import ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.framework import permissions
from dashboard.api.framework.endpoint import Endpoint
from dashboard.api.framework.errors import Refusal
from dashboard.api.schema.openapi import Operation, Operations
from scheduler.services.demo.sample import load_sample_tree


class Sample(Endpoint):
    basename = "sample"
    rules: ClassVar[permissions.Rules] = {"post": permissions.CLUSTER_ADMIN}
    operations: ClassVar[Operations] = {
        "post": Operation(
            schema.SampleLoaded,
            schema.Empty,
            201,
            optional_body=True,
            summary="Create the queues of the sample tree",
        )
    }

    def post(self, request: Request) -> Response:
        if request.data not in ({}, None, ""):
            raise Refusal("The sample tree takes no options. Send no body.")
        made = load_sample_tree(by=self.actor, dry_run=self.dry_run)
        were = "were"
        if self.dry_run:
            were = "would be"
        body = {
            "changed": True,
            "dryRun": self.dry_run,
            "message": f"{len(made)} queues {were} created.",
            "queues": made,
        }
        return self.created_response(body)
