"""What lists can be filtered by, and how the values of a filter are read."""

# mypy: disable-error-code="misc"

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, timedelta
from typing import Any

import django_filters
from django.db.models import F, Func, Q, QuerySet, TextField, Value
from django.utils import timezone
from django_filters import FilterSet

from dashboard.api.framework.errors import bad_parameter
from dashboard.forms.choices import stored_word
from dashboard.forms.typed import moment_of
from scheduler.domain.access import Role
from scheduler.domain.audit_actions import KINDS, AuditArea, known_actions
from scheduler.domain.calendar import OccurrenceState, PlanState
from scheduler.domain.change_sets import SetState
from scheduler.domain.comparison import Verdict
from scheduler.domain.jobs.policies import JobAction
from scheduler.domain.label_selectors import FORMS, LabelRequirement, NotASelector, parse_selector
from scheduler.domain.lifecycle import QueueCommand
from scheduler.domain.notices import NoticeKind
from scheduler.domain.queues import QueueState
from scheduler.domain.resources import QuantityError, parse_quantity
from scheduler.domain.safe_windows import WindowState
from scheduler.models import Command, Comparison, Decision, Event, SchedulingSession
from scheduler.models.workload import JOB_PHASES, POD_PHASES, PODGROUP_PHASES
from scheduler.selectors.jobs.listing import REASON_CODES, WAITING
from scheduler.selectors.queues.objects import names_in_records
from scheduler.selectors.records.feeds import EVENT_KINDS, EVICTING_ACTIONS, PLACING_ACTIONS
from scheduler.services.accounts.actors import Door

_AGE = re.compile(r"(\d{1,9})([smhd])", re.ASCII)
AWAITING = "AwaitingEvaluation"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Words(django_filters.BaseInFilter, django_filters.CharFilter):
    """One word or several, joined by commas: any of them."""


class Subtree(django_filters.CharFilter):
    """A queue and everything below it, deleted queues included."""

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        if not value:
            return qs
        return qs.filter(**{f"{self.field_name}__in": names_in_records(value)})


def age_in(parameter: str, value: str) -> timedelta:
    """ "30m", "12h", "7d". Raises `Refusal` for what is no age."""
    match = _AGE.fullmatch(value)
    if match is None:
        fix = "write a number with s, m, h or d, such as 30m"
        raise bad_parameter(parameter, f"“{value[:20]}” is not an age.", fix)
    try:
        age = timedelta(seconds=int(match[1]) * _UNITS[match[2]])
        timezone.now() - age  # so far back there may be no time any more
    except OverflowError:
        message = f"“{value[:20]}” is too long."
        raise bad_parameter(parameter, message, "write a shorter one") from None
    return age


class Age(django_filters.CharFilter):
    """`30m`, `12h`, `7d`: older or newer than that."""

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        if not value:
            return qs
        moment = timezone.now() - age_in(_parameter_name(self), value)
        return qs.filter(**{f"{self.field_name}__{self.lookup_expr}": moment})


_MOST_PARTS = 20


def _check_parts(one: django_filters.Filter, parts: Sequence[Any]) -> None:
    """Each part becomes a condition, and a database refuses too many conditions."""
    if len(parts) > _MOST_PARTS:
        name = _parameter_name(one)
        message = f"{name} has {len(parts)} parts; {_MOST_PARTS} are the most."
        raise bad_parameter(name, message, "leave some out")


class Amounts(django_filters.CharFilter):
    """`cpu:4,nvidia.com/gpu:8`: at least, or at most, these amounts."""

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        parts = []
        for part in (value or "").split(","):
            if part:
                parts.append(part)
        _check_parts(self, parts)
        for part in parts:
            resource, colon, quantity = part.strip().partition(":")
            if not colon or "__" in resource or not resource:
                message = f"“{part[:40]}” is not an amount."
                fix = "write resource:amount, such as cpu:4"
                raise bad_parameter(_parameter_name(self), message, fix)
            try:
                amount = parse_quantity(resource, quantity)
            except QuantityError as error:
                raise bad_parameter(_parameter_name(self), f"{error}.") from None
            qs = qs.filter(**{f"{self.field_name}__{resource}__{self.lookup_expr}": amount})
        return qs


class OneOf(Words):
    """One word or several of a fixed set, joined by commas, in any case; another one is refused."""

    def __init__(self, values: Iterable[str], **more: Any) -> None:
        self.known = tuple(map(str, values))
        super().__init__(lookup_expr="in", **more)

    def filter(self, qs: QuerySet[Any], value: Any) -> QuerySet[Any]:
        found: QuerySet[Any] = super().filter(qs, self.stored_words(value))
        return found

    def stored_words(self, value: Any) -> list[str]:
        name = _parameter_name(self)
        words: list[str] = []
        for word in value or ():
            words.append(one_of(name, word, self.known))
        return words


def one_of(parameter: str, word: str, known: Iterable[str]) -> str:
    """The word as it is stored. Raises `Refusal`, with all known words, for another one."""
    words = tuple(known)
    found = stored_word(word, words)
    if found is None:
        message = f"There is no {parameter} “{word[:40]}”."
        raise bad_parameter(parameter, message, f"one of {', '.join(words)}")
    return found


class Reasons(OneOf):
    """Why it waits: one code or several, joined by commas."""

    def filter(self, qs: QuerySet[Any], value: Any) -> QuerySet[Any]:
        words = self.stored_words(value)
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
        wanted = one_of(_parameter_name(self), value, ("true", "false"))
        return qs.filter(**{self.field_name: wanted == "true"})


class Consequences(Truth):
    """`false` leaves out entries that only followed from an action on another queue."""

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        wanted = one_of(_parameter_name(self), value or "true", ("true", "false"))
        if wanted == "true":
            return qs
        return qs.filter(follows="")


class Moment(django_filters.CharFilter):
    """A day such as `2026-01-31`, in UTC, or a moment such as `2026-01-31T12:00:00Z`."""

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        if not value:
            return qs
        moment = moment_of(value, UTC, end_of_day=self.lookup_expr == "lt")
        if moment is None:
            fix = "write 2026-01-31 or 2026-01-31T12:00:00Z"
            raise bad_parameter(_parameter_name(self), f"“{value[:40]}” is not a date.", fix)
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
            raise bad_parameter(_parameter_name(self), str(problem), f"write {FORMS}") from None
        _check_parts(self, requirements)
        for number, requirement in enumerate(requirements):
            qs = _with_label(qs, f"label_{number}", str(self.field_name), requirement)
        return qs


def _with_label(
    qs: QuerySet[Any],
    alias: str,
    column: str,
    requirement: LabelRequirement,
) -> QuerySet[Any]:
    qs = qs.alias(**{alias: LabelValue(column, requirement.key)})
    is_missing = Q(**{f"{alias}__isnull": True})
    holds = ~is_missing
    if requirement.values is not None:
        holds = Q(**{f"{alias}__in": requirement.values})
    if requirement.negated:
        return qs.filter(is_missing | ~holds)
    return qs.filter(holds)


class LabelValue(Func):
    """The value of one label, null where it is missing.

    Django's own lookup would take a key of digits for a place in a list.
    """

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
            compiler,
            connection,
            template="(%(expressions)s::text)",
            arg_joiner=" ->> ",
            **more,
        )


def _parameter_name(one: django_filters.Filter) -> str:
    """What the filter is called in the address."""
    for name, known in one.parent.filters.items():
        if known is one:
            return str(name)
    return str(one.field_name)


class Created(FilterSet):
    """What has a moment of its creation."""

    older_than = Age(field_name="created_at", lookup_expr="lt")
    newer_than = Age(field_name="created_at", lookup_expr="gte")


class QueueFilters(Created):
    state = OneOf(QueueState, field_name="state")
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
        field_name="priority",
        min_value=-(2**31),
        max_value=2**31 - 1,
    )
    min_request = Amounts(field_name="min_resources", lookup_expr="gte")
    max_request = Amounts(field_name="min_resources", lookup_expr="lte")


class PodFilters(Created):
    queue = Subtree(field_name="podgroup__queue__name")
    phase = OneOf(POD_PHASES, field_name="phase")
    namespace = Words(field_name="namespace", lookup_expr="in")
    node = django_filters.CharFilter(field_name="node__name")
    podgroup = django_filters.CharFilter(method="of_podgroup")
    user = Words(field_name="podgroup__owner", lookup_expr="in")

    def of_podgroup(self, rows: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        """By the name of its job, or by what the cluster calls it."""
        return rows.filter(Q(podgroup__name=value) | Q(podgroup__object_name=value))


class NodeFilters(FilterSet):
    ready = Truth(field_name="ready")
    unschedulable = Truth(field_name="unschedulable")
    label = Labels(field_name="labels")
    min_allocatable = Amounts(field_name="allocatable", lookup_expr="gte")


class NameFilters(FilterSet):
    label = Labels(field_name="labels")


class CommandedQueues(Words):
    """Commands to these queues; a job may have the name of one."""

    def filter(self, qs: QuerySet[Any], value: Any) -> QuerySet[Any]:
        if not value:
            return qs
        found: QuerySet[Any] = super().filter(qs.filter(target_kind="Queue"), value)
        return found


class CommandFilters(Created):
    queue = CommandedQueues(field_name="target_name", lookup_expr="in")
    action = OneOf((*QueueCommand, *JobAction), field_name="action")
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


class ComparisonFilters(FilterSet):
    queue = Subtree(field_name="queue_name")
    verdict = OneOf(Verdict, field_name="verdict")
    about = OneOf((Comparison.START, Comparison.EVICTION), field_name="about")
    older_than = Age(field_name="since", lookup_expr="lt")
    newer_than = Age(field_name="since", lookup_expr="gte")


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
    door = OneOf(Door, field_name="door")
    consequences = Consequences(field_name="follows")
    deeds = OneOf(AuditArea, field_name="deeds")
    action = OneOf(known_actions(), field_name="action")
    kind = OneOf(KINDS, field_name="kind")
    name = Words(field_name="name", lookup_expr="in")
    request_id = Words(field_name="request_id", lookup_expr="in")
    older_than = Age(field_name="at", lookup_expr="lt")
    newer_than = Age(field_name="at", lookup_expr="gte")


class ChangeSetFilters(Created):
    state = OneOf(SetState, field_name="state")
    user = Words(field_name="author", lookup_expr="in")


class NoticeFilters(Created):
    kind = OneOf(NoticeKind, field_name="kind")
    queue = Subtree(field_name="queue__name")
    unread = Truth(field_name="read_at__isnull")


class WindowFilters(Created):
    queue = Words(field_name="queue", lookup_expr="in")
    state = OneOf(WindowState, field_name="state")
    user = Words(field_name="author", lookup_expr="in")


class PlanFilters(Created):
    state = OneOf(PlanState, field_name="state")
    user = Words(field_name="planned_by", lookup_expr="in")


class OccurrenceFilters(Created):
    state = OneOf(OccurrenceState, field_name="state")


class GroupMappingFilters(FilterSet):
    queue = django_filters.CharFilter(field_name="queue__name")
    group = django_filters.CharFilter(field_name="provider_group")
    role = OneOf(Role, field_name="role")


class GrantFilters(FilterSet):
    queue = django_filters.CharFilter(field_name="queue__name")
    user = django_filters.CharFilter(field_name="user__username")
    group = django_filters.CharFilter(field_name="group__name")
    role = OneOf(Role, field_name="role")


with_span(CommandFilters, "created_at")
with_span(EventFilters, "last_at")
with_span(AuditFilters, "at")
