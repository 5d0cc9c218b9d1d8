"""What lists can be narrowed by, and how the words of a query are understood."""

# mypy: disable-error-code="misc"

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, timedelta
from typing import Any, TypeVar

import django_filters
from django.db.models import F, Func, Q, QuerySet, TextField, Value
from django.utils import timezone
from django_filters import FilterSet

from dashboard.api.errors import bad_parameter
from dashboard.forms.choices import stored_word
from dashboard.forms.typed import moment_of
from scheduler.domain.access import Role
from scheduler.domain.deeds import KINDS, Deeds, known_actions
from scheduler.domain.jobs import JobAction
from scheduler.domain.label_selectors import FORMS, LabelRequirement, NotASelector, parse_selector
from scheduler.domain.lifecycle import QueueCommand
from scheduler.domain.queues import QueueState
from scheduler.domain.resources import QuantityError, parse_quantity
from scheduler.models import Command, Decision, Event, SchedulingSession
from scheduler.models.workload import JOB_PHASES, POD_PHASES, PODGROUP_PHASES
from scheduler.selectors.jobs.listing import REASON_CODES, WAITING
from scheduler.selectors.queues.objects import names_in_records
from scheduler.selectors.records.feeds import EVENT_KINDS, EVICTING_ACTIONS, PLACING_ACTIONS
from scheduler.services.accounts.actors import Door

_AGE = re.compile(r"(\d{1,9})([smhd])", re.ASCII)
AWAITING = "AwaitingEvaluation"
T = TypeVar("T")
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
            raise bad_parameter(
                _parameter(self),
                f"“{value[:20]}” is not an age.",
                "write a number with s, m, h or d, such as 30m",
            )
        try:
            moment = timezone.now() - timedelta(seconds=int(match[1]) * _UNITS[match[2]])
        except OverflowError:
            raise bad_parameter(
                _parameter(self), f"“{value[:20]}” is longer than anything.", "write a shorter one"
            ) from None
        return qs.filter(**{f"{self.field_name}__{self.lookup_expr}": moment})


_MOST_PARTS = 20


def _few(one: django_filters.Filter, parts: Sequence[T]) -> Sequence[T]:
    """Each part becomes a condition, and a database refuses conditions without number."""
    if len(parts) > _MOST_PARTS:
        raise bad_parameter(
            _parameter(one),
            f"{_parameter(one)} has {len(parts)} parts; {_MOST_PARTS} are the most.",
            "leave some out",
        )
    return parts


class Amounts(django_filters.CharFilter):
    """`cpu:4,nvidia.com/gpu:8`: at least, or at most, these amounts."""

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        for part in _few(self, [part for part in (value or "").split(",") if part]):
            resource, colon, quantity = part.strip().partition(":")
            if not colon or "__" in resource or not resource:
                raise bad_parameter(
                    _parameter(self),
                    f"“{part[:40]}” is not an amount.",
                    "write resource:amount, such as cpu:4",
                )
            try:
                amount = parse_quantity(resource, quantity)
            except QuantityError as error:
                raise bad_parameter(_parameter(self), f"{error}.") from None
            qs = qs.filter(**{f"{self.field_name}__{resource}__{self.lookup_expr}": amount})
        return qs


class OneOf(Words):
    """One word or several of a fixed set, joined by commas, in any case; another one is refused."""

    def __init__(self, values: Iterable[str], **more: Any) -> None:
        self.known = tuple(values)
        super().__init__(lookup_expr="in", **more)

    def filter(self, qs: QuerySet[Any], value: Any) -> QuerySet[Any]:
        words = [one_of(_parameter(self), word, self.known) for word in value or ()]
        found: QuerySet[Any] = super().filter(qs, words)
        return found


def one_of(parameter: str, word: str, known: Iterable[str]) -> str:
    """The word as it is stored. Raises the refusal that names those there are."""
    words = tuple(known)
    found = stored_word(word, words)
    if found is None:
        raise bad_parameter(
            parameter, f"There is no {parameter} “{word[:40]}”.", f"one of {', '.join(words)}"
        )
    return found


class Reasons(OneOf):
    """Why it waits: one code or several, joined by commas."""

    def filter(self, qs: QuerySet[Any], value: Any) -> QuerySet[Any]:
        words = [one_of(_parameter(self), word, self.known) for word in value or ()]
        if not words:
            return qs
        matching = Q(**{f"{self.field_name}__in": words})
        if AWAITING in words:  # no code is stored where no session has looked yet
            phase = str(self.field_name).replace("reason_code", "phase")
            matching |= Q(**{str(self.field_name): "", f"{phase}__in": WAITING})
        return qs.filter(matching)


class Truth(django_filters.CharFilter):
    """`true` or `false`."""

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        if not value:
            return qs
        wanted = one_of(_parameter(self), value, ("true", "false"))
        return qs.filter(**{self.field_name: wanted == "true"})


class Consequences(Truth):
    """`false` leaves out what only followed from a deed to another queue: the deed itself is in the list."""

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        wanted = one_of(_parameter(self), value or "true", ("true", "false"))
        return qs if wanted == "true" else qs.filter(follows="")


class Moment(django_filters.CharFilter):
    """A day such as `2026-01-31`, in UTC, or a moment such as `2026-01-31T12:00:00Z`."""

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        if not value:
            return qs
        until = self.lookup_expr == "lt"
        moment = moment_of(value, UTC, end_of_day=until)
        if moment is None:
            raise bad_parameter(
                _parameter(self),
                f"“{value[:40]}” is not a date.",
                "write 2026-01-31 or 2026-01-31T12:00:00Z",
            )
        return qs.filter(**{f"{self.field_name}__{self.lookup_expr}": moment})


def with_span(filters: type[FilterSet], column: str) -> type[FilterSet]:
    """`from` and `until`, which Python does not take as names in a class."""
    filters.base_filters["from"] = Moment(field_name=column, lookup_expr="gte")
    filters.base_filters["until"] = Moment(field_name=column, lookup_expr="lt")
    return filters


class Labels(django_filters.CharFilter):
    """`team=a,stage!=test,zone in (x,y),!old`: all of it must hold, as in Kubernetes."""

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        try:
            requirements = parse_selector(value or "")
        except NotASelector as problem:
            raise bad_parameter(_parameter(self), str(problem), f"write {FORMS}") from None
        for number, requirement in enumerate(_few(self, requirements)):
            qs = _labelled(qs, f"label_{number}", str(self.field_name), requirement)
        return qs


def _labelled(
    qs: QuerySet[Any], alias: str, column: str, requirement: LabelRequirement
) -> QuerySet[Any]:
    qs = qs.alias(**{alias: LabelValue(column, requirement.key)})
    holds = (
        Q(**{f"{alias}__isnull": False})
        if requirement.values is None
        else Q(**{f"{alias}__in": requirement.values})
    )
    if not requirement.negated:
        return qs.filter(holds)
    return qs.filter(Q(**{f"{alias}__isnull": True}) | ~holds)


class LabelValue(Func):
    """The value of one label, null where it is not there. Django's own lookup would take a key of digits for the place in a list."""

    output_field = TextField()

    def __init__(self, column: str, key: str) -> None:
        super().__init__(F(column), Value(key, output_field=TextField()))

    def as_sqlite(self, compiler: Any, connection: Any, **more: Any) -> Any:
        column, key = self.get_source_expressions()
        path = Value(f'$."{key.value}"', output_field=TextField())
        return Func(column, path, function="JSON_EXTRACT", output_field=TextField()).as_sql(
            compiler, connection, **more
        )

    def as_postgresql(self, compiler: Any, connection: Any, **more: Any) -> Any:
        return super().as_sql(
            compiler, connection, template="(%(expressions)s::text)", arg_joiner=" ->> ", **more
        )


def _parameter(one: django_filters.Filter) -> str:
    """What the filter is called in the address."""
    return next(
        (str(name) for name, known in one.parent.filters.items() if known is one),
        str(one.field_name),
    )


class Created(FilterSet):
    """What has a moment of its creation."""

    older_than = Age(field_name="created_at", lookup_expr="lt")
    newer_than = Age(field_name="created_at", lookup_expr="gte")


class QueueFilters(Created):
    state = OneOf((state.value for state in QueueState), field_name="state")
    parent = django_filters.CharFilter(field_name="parent__name")
    queue = Subtree(field_name="name")
    label = Labels(field_name="labels")
    min_allocated = Amounts(field_name="figures__allocated", lookup_expr="gte")
    max_allocated = Amounts(field_name="figures__allocated", lookup_expr="lte")


class Gangs(Created):
    """What jobs and podgroups are found by alike."""

    queue = Subtree(field_name="queue__name")
    user = Words(field_name="owner", lookup_expr="in")
    namespace = Words(field_name="namespace", lookup_expr="in")
    label = Labels(field_name="labels")


class JobFilters(Gangs):
    phase = OneOf(JOB_PHASES, field_name="phase")
    reason = Reasons(REASON_CODES, field_name="podgroup__reason_code")
    priority = Words(field_name="priority_class", lookup_expr="in")
    min_request = Amounts(field_name="podgroup__min_resources", lookup_expr="gte")
    max_request = Amounts(field_name="podgroup__min_resources", lookup_expr="lte")


class PodGroupFilters(Gangs):
    phase = OneOf(PODGROUP_PHASES, field_name="phase")
    reason = Reasons(REASON_CODES, field_name="reason_code")
    priority = django_filters.NumberFilter(
        field_name="priority", min_value=-(2**31), max_value=2**31 - 1
    )
    min_request = Amounts(field_name="min_resources", lookup_expr="gte")
    max_request = Amounts(field_name="min_resources", lookup_expr="lte")


class PodFilters(Created):
    queue = Subtree(field_name="podgroup__queue__name")
    phase = OneOf(POD_PHASES, field_name="phase")
    namespace = Words(field_name="namespace", lookup_expr="in")
    node = django_filters.CharFilter(field_name="node__name")
    podgroup = django_filters.CharFilter(field_name="podgroup__name")
    user = Words(field_name="podgroup__owner", lookup_expr="in")


class NodeFilters(FilterSet):
    ready = Truth(field_name="ready")
    unschedulable = Truth(field_name="unschedulable")
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
    action = OneOf(
        (action.value for actions in (QueueCommand, JobAction) for action in actions),
        field_name="action",
    )
    result = OneOf(Command.RESULTS, field_name="result")
    user = Words(field_name="actor", lookup_expr="in")


class SessionFilters(FilterSet):
    state = OneOf(SchedulingSession.STATES, field_name="state")
    older_than = Age(field_name="started_at", lookup_expr="lt")
    newer_than = Age(field_name="started_at", lookup_expr="gte")


class DecisionFilters(FilterSet):
    queue = Subtree(field_name="queue_name")
    kind = OneOf((Decision.BIND, Decision.EVICT), field_name="kind")
    action = OneOf(PLACING_ACTIONS, field_name="action")
    node = Words(field_name="node_name", lookup_expr="in")
    session = django_filters.NumberFilter(
        field_name="session__number", min_value=0, max_value=2**62
    )


class EvictionFilters(Created):
    queue = Subtree(field_name="queue_name")
    beneficiary_queue = Subtree(field_name="beneficiary_queue")
    action = OneOf(EVICTING_ACTIONS, field_name="action")
    session = django_filters.NumberFilter(field_name="session_number", min_value=0, max_value=2**62)


class EventFilters(FilterSet):
    queue = Subtree(field_name="queue_name")
    type = OneOf((Event.NORMAL, Event.WARNING), field_name="type")
    kind = OneOf(EVENT_KINDS, field_name="kind")
    reason = Words(field_name="reason", lookup_expr="in")
    namespace = Words(field_name="namespace", lookup_expr="in")
    name = Words(field_name="name", lookup_expr="in")
    older_than = Age(field_name="last_at", lookup_expr="lt")
    newer_than = Age(field_name="last_at", lookup_expr="gte")


class AuditFilters(FilterSet):
    queue = Subtree(field_name="queue_name")
    user = Words(field_name="actor", lookup_expr="in")
    door = OneOf((door.value for door in Door), field_name="door")
    consequences = Consequences(field_name="follows")
    deeds = OneOf((deeds.value for deeds in Deeds), field_name="deeds")
    action = OneOf(known_actions(), field_name="action")
    kind = OneOf(KINDS, field_name="kind")
    name = Words(field_name="name", lookup_expr="in")
    request_id = Words(field_name="request_id", lookup_expr="in")
    older_than = Age(field_name="at", lookup_expr="lt")
    newer_than = Age(field_name="at", lookup_expr="gte")


class GrantFilters(FilterSet):
    queue = django_filters.CharFilter(field_name="queue__name")
    user = django_filters.CharFilter(field_name="user__username")
    group = django_filters.CharFilter(field_name="group__name")
    role = OneOf((role.value for role in Role), field_name="role")


with_span(CommandFilters, "created_at")
with_span(EventFilters, "last_at")
with_span(AuditFilters, "at")
