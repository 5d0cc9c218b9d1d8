"""/api/v1/jobs/facets/ and jobs/groups/: how many jobs there are of which kind."""

from __future__ import annotations

from typing import ClassVar

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api import schema
from dashboard.api.filters import one_of
from dashboard.api.framework import permissions
from dashboard.api.framework.endpoint import Endpoint
from dashboard.api.framework.errors import bad_parameter
from dashboard.api.objects import iso_time, record_object
from dashboard.api.schema.openapi import Operation, Operations, query_parameter
from dashboard.forms.job_choice import read_query
from dashboard.present.job_groups import facet_objects, group_object
from scheduler.domain.job_groups import JobField
from scheduler.models import PodGroup
from scheduler.selectors.jobs.groups import facets_of, facets_of_all, job_groups
from scheduler.selectors.jobs.listing import jobs_matching

_QUERY = query_parameter(
    "query", "Only jobs that match this, in the words of the query box: `state:waiting user:me`."
)
_BY = query_parameter(
    "groupBy",
    "What the jobs of a group have in common.",
    {"type": "string", "enum": [by.value for by in JobField], "default": JobField.USER.value},
)


class _Counted(Endpoint):
    parameters = frozenset({"query"})
    rules: ClassVar[permissions.Rules] = {"get": permissions.signed_in}

    @property
    def query_text(self) -> str:
        return str(self.request.query_params.get("query") or "").strip()

    def found(self) -> QuerySet[PodGroup]:
        query = read_query(self.query_text, self.request.user.get_username())
        if query.problems:
            raise bad_parameter("query", " ".join(query.problems))
        return jobs_matching(query.conditions, self.access.readable)


class JobFacets(_Counted):
    """For each field, how many of the jobs that may be seen have which value."""

    basename = "jobs-facets"
    operations: ClassVar[Operations] = {
        "get": Operation(
            schema.JobFacets,
            summary="How many jobs have which state, queue, user, reason, namespace and priority",
            parameters=(_QUERY,),
        )
    }

    def get(self, request: Request) -> Response:
        found = self.found()
        if self.query_text:
            facets = facets_of(found)
        else:
            facets = facets_of_all(self.access.readable)
        status = {"query": self.query_text, "facets": facet_objects(facets)}
        return self.response_with(record_object("JobFacets", "jobs", None, {}, status))


class JobGroups(_Counted):
    """Jobs by what they have in common, the largest group first."""

    basename = "jobs-groups"
    parameters = frozenset({"query", "groupBy"})
    operations: ClassVar[Operations] = {
        "get": Operation(
            schema.JobGroups,
            summary="Jobs in groups: counts, pods, what they need to start, the longest wait",
            parameters=(_QUERY, _BY),
        )
    }

    def get(self, request: Request) -> Response:
        wanted = request.query_params.get("groupBy") or JobField.USER.value
        by = JobField(one_of("groupBy", wanted, [field.value for field in JobField]))
        groups = []
        for group in job_groups(self.found(), by):
            groups.append(group_object(group, by, iso_time))
        status = {"groupBy": by.value, "query": self.query_text, "groups": groups}
        return self.response_with(record_object("JobGroups", by.value, None, {}, status))
