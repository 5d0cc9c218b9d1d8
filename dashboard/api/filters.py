"""What lists can be narrowed by, and how the words of a query are understood."""

# mypy: disable-error-code="misc"

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import django_filters
from django.db.models import QuerySet
from django.utils import timezone
from django_filters import FilterSet

from dashboard.api.errors import bad_parameter
from scheduler.domain.resources import QuantityError, parse_quantity
from scheduler.selectors.queue_objects import names_in_records

_AGE = re.compile(r"(\d{1,9})([smhd])", re.ASCII)
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Words(django_filters.BaseInFilter, django_filters.CharFilter):
    """One word or several, joined by commas: any of them."""


class Subtree(django_filters.CharFilter):
    """A queue and everything below it, deleted queues included."""

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        return qs.filter(**{f"{self.field_name}__in": names_in_records(value)}) if value else qs


class Age(django_filters.CharFilter):
    """`30m`, `12h`, `7d`: older or newer than that."""

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        if not value:
            return qs
        match = _AGE.fullmatch(value)
        if match is None:
            raise bad_parameter(_parameter(self), f"“{value[:20]}” is not an age.", "write a number with s, m, h or d, such as 30m")
        try:
            moment = timezone.now() - timedelta(seconds=int(match[1]) * _UNITS[match[2]])
        except OverflowError:
            raise bad_parameter(_parameter(self), f"“{value[:20]}” is longer than anything.", "write a shorter one") from None
        return qs.filter(**{f"{self.field_name}__{self.lookup_expr}": moment})


class Amounts(django_filters.CharFilter):
    """`cpu:4,nvidia.com/gpu:8`: at least, or at most, these amounts."""

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        for part in filter(None, (value or "").split(",")):
            resource, colon, quantity = part.strip().partition(":")
            if not colon or "__" in resource or not resource:
                raise bad_parameter(_parameter(self), f"“{part[:40]}” is not an amount.", "write resource:amount, such as cpu:4")
            try:
                amount = parse_quantity(resource, quantity)
            except QuantityError as error:
                raise bad_parameter(_parameter(self), f"{error}.") from None
            qs = qs.filter(**{f"{self.field_name}__{resource}__{self.lookup_expr}": amount})
        return qs


class Labels(django_filters.CharFilter):
    """`team=a,stage=test`: all of these labels; a key alone asks only that it is there."""

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        for part in filter(None, (value or "").split(",")):
            key, equals, text = part.strip().partition("=")
            if equals:
                qs = (
                    qs.filter(**{f"{self.field_name}__contains": {key: text}})
                    if _contains(qs)
                    else qs.filter(pk__in=_labelled(qs, key, text))
                )
            else:
                qs = qs.filter(**{f"{self.field_name}__has_key": key})
        return qs


def _parameter(one: django_filters.Filter) -> str:
    """What the filter is called in the address."""
    return next((str(name) for name, known in one.parent.filters.items() if known is one), str(one.field_name))


def _contains(qs: QuerySet[Any]) -> bool:
    from django.db import connections

    return connections[qs.db].vendor == "postgresql"


def _labelled(qs: QuerySet[Any], key: str, text: str) -> list[int]:
    """SQLite can not ask whether JSON contains JSON."""
    return [pk for pk, labels in qs.order_by().values_list("pk", "labels") if labels.get(key) == text]


class Created(FilterSet):
    """What has a moment of its creation."""

    older_than = Age(field_name="created_at", lookup_expr="lt")
    newer_than = Age(field_name="created_at", lookup_expr="gte")


class QueueFilters(Created):
    state = Words(field_name="state", lookup_expr="in")
    parent = django_filters.CharFilter(field_name="parent__name")
    queue = Subtree(field_name="name")
    label = Labels(field_name="labels")
    min_allocated = Amounts(field_name="figures__allocated", lookup_expr="gte")
    max_allocated = Amounts(field_name="figures__allocated", lookup_expr="lte")


class Gangs(Created):
    """What jobs and podgroups are found by alike."""

    queue = Subtree(field_name="queue__name")
    phase = Words(field_name="phase", lookup_expr="in")
    user = Words(field_name="owner", lookup_expr="in")
    namespace = Words(field_name="namespace", lookup_expr="in")
    label = Labels(field_name="labels")


class JobFilters(Gangs):
    reason = Words(field_name="podgroup__reason_code", lookup_expr="in")
    priority = Words(field_name="priority_class", lookup_expr="in")
    min_request = Amounts(field_name="podgroup__min_resources", lookup_expr="gte")
    max_request = Amounts(field_name="podgroup__min_resources", lookup_expr="lte")


class PodGroupFilters(Gangs):
    reason = Words(field_name="reason_code", lookup_expr="in")
    priority = django_filters.NumberFilter(field_name="priority", min_value=-(2**31), max_value=2**31 - 1)
    min_request = Amounts(field_name="min_resources", lookup_expr="gte")
    max_request = Amounts(field_name="min_resources", lookup_expr="lte")


class PodFilters(Created):
    queue = Subtree(field_name="podgroup__queue__name")
    phase = Words(field_name="phase", lookup_expr="in")
    namespace = Words(field_name="namespace", lookup_expr="in")
    node = django_filters.CharFilter(field_name="node__name")
    podgroup = django_filters.CharFilter(field_name="podgroup__name")
    user = Words(field_name="podgroup__owner", lookup_expr="in")


class NodeFilters(FilterSet):
    ready = django_filters.BooleanFilter(field_name="ready")
    unschedulable = django_filters.BooleanFilter(field_name="unschedulable")
    label = Labels(field_name="labels")
    min_allocatable = Amounts(field_name="allocatable", lookup_expr="gte")


class NameFilters(FilterSet):
    label = Labels(field_name="labels")


class CommandedQueues(Words):
    """Orders to these queues; a job may have the name of one."""

    def filter(self, qs: QuerySet[Any], value: Any) -> QuerySet[Any]:
        return super().filter(qs.filter(target_kind="Queue"), value) if value else qs


class CommandFilters(Created):
    queue = CommandedQueues(field_name="target_name", lookup_expr="in")
    action = Words(field_name="action", lookup_expr="in")
    result = Words(field_name="result", lookup_expr="in")
    user = Words(field_name="actor", lookup_expr="in")


class SessionFilters(FilterSet):
    state = Words(field_name="state", lookup_expr="in")
    older_than = Age(field_name="started_at", lookup_expr="lt")
    newer_than = Age(field_name="started_at", lookup_expr="gte")


class DecisionFilters(FilterSet):
    queue = Subtree(field_name="queue_name")
    kind = Words(field_name="kind", lookup_expr="in")
    action = Words(field_name="action", lookup_expr="in")
    node = Words(field_name="node_name", lookup_expr="in")
    session = django_filters.NumberFilter(field_name="session__number", min_value=0, max_value=2**62)


class EvictionFilters(Created):
    queue = Subtree(field_name="queue_name")
    beneficiary_queue = Subtree(field_name="beneficiary_queue")
    action = Words(field_name="action", lookup_expr="in")
    session = django_filters.NumberFilter(field_name="session_number", min_value=0, max_value=2**62)


class EventFilters(FilterSet):
    queue = Subtree(field_name="queue_name")
    type = Words(field_name="type", lookup_expr="in")
    kind = Words(field_name="kind", lookup_expr="in")
    reason = Words(field_name="reason", lookup_expr="in")
    namespace = Words(field_name="namespace", lookup_expr="in")
    name = Words(field_name="name", lookup_expr="in")
    older_than = Age(field_name="last_at", lookup_expr="lt")
    newer_than = Age(field_name="last_at", lookup_expr="gte")


class AuditFilters(FilterSet):
    queue = Subtree(field_name="queue_name")
    user = Words(field_name="actor", lookup_expr="in")
    door = Words(field_name="door", lookup_expr="in")
    action = Words(field_name="action", lookup_expr="in")
    kind = Words(field_name="kind", lookup_expr="in")
    name = Words(field_name="name", lookup_expr="in")
    request_id = Words(field_name="request_id", lookup_expr="in")
    older_than = Age(field_name="at", lookup_expr="lt")
    newer_than = Age(field_name="at", lookup_expr="gte")


class GrantFilters(FilterSet):
    queue = django_filters.CharFilter(field_name="queue__name")
    user = django_filters.CharFilter(field_name="user__username")
    group = django_filters.CharFilter(field_name="group__name")
    role = Words(field_name="role", lookup_expr="in")
