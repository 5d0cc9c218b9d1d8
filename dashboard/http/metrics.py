"""/metrics for Prometheus: Volcano's names where it has them, ours (fumarole_…) for the rest.

They are read from the database when they are asked for.
"""

from __future__ import annotations

import hmac
import threading
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

from django.conf import settings
from django.db.models import Count
from django.http import HttpRequest, HttpResponse, HttpResponseForbidden
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from dashboard.http.operation_metrics import operation_metrics
from dashboard.http.proxies import is_from_this_machine
from dashboard.http.session_figures import SESSIONS, Counted, Histogram
from scheduler.domain.resources import Resources, units_per_one
from scheduler.models import ClusterState, PodGroup, Queue
from scheduler.selectors.cluster.evictions import eviction_costs
from scheduler.selectors.queues.objects import PHASES, tree_counts

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
# A figure of a queue -> the beginning of Volcano's metric names for it.
_FIGURES = {
    "allocated": "volcano_queue_allocated",
    "promised": "fumarole_queue_promised",
    "deserved": "volcano_queue_deserved",
    "request": "volcano_queue_request",
    "real_capability": "volcano_queue_real_capacity",
}
_SPECS = {"guarantee": "fumarole_queue_guarantee", "capability": "volcano_queue_capacity"}


class HttpFigures:
    """What this process answered, by method, route and code. In memory, as Prometheus expects."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.answers: dict[tuple[str, str, str], int] = {}
        self.seconds: dict[str, Histogram] = {}  # by method

    def note(self, method: str, route: str, code: int, seconds: float) -> None:
        with self._lock:
            key = (method, route, str(code))
            self.answers[key] = self.answers.get(key, 0) + 1
            self.seconds.setdefault(method, Histogram(_BOUNDS)).note(seconds)


HTTP = HttpFigures()


class HttpFiguresMiddleware:
    """Times every request.

    The label is the route's pattern, not the address: names would make thousands of series.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        begin = perf_counter()
        response = self.get_response(request)
        route = "unknown"
        if request.resolver_match:
            route = request.resolver_match.route
        # A client can make up any number of methods.
        method = "other"
        if request.method in _METHODS:
            method = request.method
        HTTP.note(method, route, response.status_code, perf_counter() - begin)
        return response


class Collector:
    def collect(self) -> Iterator[Any]:
        yield from self._queue_metrics()
        yield from self._gang_metrics()
        yield from self._waiting_metrics()
        yield from self._session_metrics()
        yield from self._quality_metrics()
        yield from operation_metrics()
        yield from self._http_metrics()
        yield from self._socket_metrics()

    def _queue_metrics(self) -> Iterator[Any]:
        metrics: dict[str, GaugeMetricFamily] = {}
        share = GaugeMetricFamily(
            "volcano_queue_share",
            "The largest part of its deserved amount that a queue uses",
            labels=["queue_name"],
        )
        overused = GaugeMetricFamily(
            "volcano_queue_overused",
            "1 while a queue uses more than it deserves",
            labels=["queue_name"],
        )
        weight = GaugeMetricFamily(
            "volcano_queue_weight", "Weight of a queue", labels=["queue_name"]
        )
        for queue in Queue.objects.select_related("figures").order_by("name"):
            weight.add_metric([queue.name], queue.weight)
            for field, prefix in _SPECS.items():
                _add_amounts(metrics, prefix, queue.name, getattr(queue, field))
            figures = getattr(queue, "figures", None)
            if figures is None:
                continue
            share.add_metric([queue.name], figures.share)
            overused.add_metric([queue.name], int(figures.overused))
            for field, prefix in _FIGURES.items():
                _add_amounts(metrics, prefix, queue.name, getattr(figures, field))
        yield from metrics.values()
        yield from (share, overused, weight)

    def _gang_metrics(self) -> Iterator[Any]:
        counts = tree_counts()
        for index, phase in enumerate(PHASES):
            name = f"volcano_queue_pod_group_{phase.lower()}_count"
            gauge = GaugeMetricFamily(
                name, f"Podgroups of a queue that are {phase}", labels=["queue_name"]
            )
            for queue_id, queue in counts.names.items():
                gauge.add_metric([queue], counts.gangs(queue_id)[index])
            yield gauge

    def _waiting_metrics(self) -> Iterator[Any]:
        gauge = GaugeMetricFamily(
            "fumarole_pending_jobs",
            "Podgroups that wait, by the reason they wait for",
            labels=["queue", "reason"],
        )
        total = 0
        rows = (
            PodGroup.objects.filter(phase__in=("Pending", "Inqueue"))
            .order_by()
            .values_list("queue__name", "reason_code")
        )
        for queue, reason, number in rows.annotate(number=Count("id")):
            gauge.add_metric([queue, reason or "AwaitingEvaluation"], number)
            total += number
        yield gauge
        yield GaugeMetricFamily("volcano_unschedule_job_count", "Podgroups that wait", value=total)

    def _session_metrics(self) -> Iterator[Any]:
        state = ClusterState.objects.first()
        if state is None:
            return
        yield GaugeMetricFamily(
            "fumarole_session_number", "Number of the last session", value=state.last_session
        )
        yield GaugeMetricFamily(
            "fumarole_scheduling_paused", "1 while scheduling is paused", value=int(state.paused)
        )
        if state.last_session_at:
            ended = GaugeMetricFamily(
                "fumarole_last_session_timestamp_seconds", "When the last session ended"
            )
            ended.add_metric([], state.last_session_at.timestamp())
            yield ended
        counted = SESSIONS.read()
        yield from _duration_metrics(counted)
        yield from _eviction_metrics(counted)

    def _quality_metrics(self) -> Iterator[Any]:
        """Of the last hour, from the rows: all processes tell the same. A figure is left out where
        there is nothing to compare with.
        """
        if not ClusterState.objects.exists():
            return
        costs = eviction_costs(())
        if costs.per_placement is not None:
            yield GaugeMetricFamily(
                "fumarole_evictions_per_placement",
                "Evictions of the last hour for each pod that got a place in it",
                value=costs.per_placement,
            )
        lost = GaugeMetricFamily(
            "fumarole_work_lost_seconds",
            "Running time lost to evictions in the last hour, times the resource that is labelled",
            labels=["resource"],
        )
        lost.add_metric([costs.lost_of], costs.lost_seconds)
        yield lost
        if costs.lost_share is not None:
            yield GaugeMetricFamily(
                "fumarole_work_lost_ratio",
                "The same as a part of what the cluster could give in that hour",
                value=costs.lost_share,
            )

    def _http_metrics(self) -> Iterator[Any]:
        total = CounterMetricFamily(
            "fumarole_http_requests",
            "Requests answered by this process",
            labels=["method", "route", "code"],
        )
        for key, number in list(HTTP.answers.items()):
            total.add_metric(list(key), number)
        times = HistogramMetricFamily(
            "fumarole_http_request_seconds", "How long requests took", labels=["method"]
        )
        for method, taken in list(HTTP.seconds.items()):
            times.add_metric([method], taken.buckets(), taken.sum)
        yield from (total, times)

    def _socket_metrics(self) -> Iterator[Any]:
        from dashboard.live.hub import Hub

        gauge = GaugeMetricFamily(
            "fumarole_websockets", "Open pages that follow the news in this process"
        )
        gauge.add_metric([], sum(len(hub.clients) for hub in list(Hub._hubs.values())))
        yield gauge


def _add_amounts(
    metrics: dict[str, GaugeMetricFamily],
    prefix: str,
    queue: str,
    amounts: Resources | None,
) -> None:
    """cpu in thousandths and memory in bytes, as in Volcano; others with their name as a label."""
    for resource, amount in (amounts or {}).items():
        if resource in _ENDINGS:
            name = f"{prefix}_{_ENDINGS[resource]}"
            labels = {"queue_name": queue}
            value = float(amount)
        else:
            name = f"{prefix}_scalar_resources"
            labels = {"queue_name": queue, "resource": resource}
            value = amount / units_per_one(resource)
        if name not in metrics:
            figure = prefix.split("_queue_")[1].replace("_", " ")
            metrics[name] = GaugeMetricFamily(name, f"{figure} of a queue", labels=list(labels))
        metrics[name].add_metric(list(labels.values()), value)


_ENDINGS = {"cpu": "milli_cpu", "memory": "memory_bytes"}


# Volcano's name -> where it is counted, and what it is.
_VOLCANO_TIMES = {
    "volcano_e2e_scheduling_latency_milliseconds": ("session", "How long sessions took"),
    "volcano_open_session_duration_milliseconds": (
        "opening",
        "How long sessions took to claim their turn and to read",
    ),
    "volcano_e2e_job_scheduling_latency_milliseconds": (
        "jobs",
        "From the creation of a gang until it ran",
    ),
    "volcano_task_scheduling_latency_milliseconds": (
        "tasks",
        "From the creation of a pod until it had a node",
    ),
}


def _duration_metrics(counted: Counted) -> Iterator[Any]:
    for name, (kept, told) in _VOLCANO_TIMES.items():
        histogram = getattr(counted, kept)
        yield HistogramMetricFamily(
            name,
            told,
            buckets=histogram.buckets(),
            sum_value=histogram.sum,
        )
    actions = HistogramMetricFamily(
        "volcano_action_scheduling_latency_milliseconds",
        "How long actions of sessions took",
        labels=["action"],
    )
    parts = HistogramMetricFamily(
        "fumarole_session_part_seconds", "How long parts of sessions took", labels=["part"]
    )
    for family, by_label in ((actions, counted.actions), (parts, counted.parts)):
        for label, histogram in sorted(by_label.items()):
            family.add_metric([label], histogram.buckets(), histogram.sum)
        yield family


def _eviction_metrics(counted: Counted) -> Iterator[Any]:
    attempts = CounterMetricFamily(
        _ATTEMPTS, "How often preempt looked for victims", value=counted.preemption_attempts
    )
    victims = GaugeMetricFamily(
        "volcano_pod_preemption_victims",
        "Victims of the last session that preempted",
        value=counted.preemption_victims,
    )
    batches = CounterMetricFamily(
        "volcano_eviction_transactions",
        "Gangs that pods were evicted for, once for each session",
        labels=["action"],
    )
    for action, number in sorted(counted.transactions.items()):
        batches.add_metric([action], number)
    evictions = CounterMetricFamily(
        "fumarole_evictions", "Pods evicted by sessions", labels=["action", "queue", "reason"]
    )
    for labels, number in sorted(counted.evictions.items()):
        evictions.add_metric(labels, number)
    yield from (attempts, victims, batches, evictions)


_ATTEMPTS = "volcano_total_preemption_attempts"
"""Volcano's own name, without the ending that counters have."""


_registry = CollectorRegistry(auto_describe=False)
_registry.register(Collector())


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """For whoever sends METRICS_TOKEN. Without one: this machine, or all with METRICS_PUBLIC."""
    if not _may_read(request):
        return HttpResponseForbidden(
            "The metrics are protected. Send METRICS_TOKEN as a bearer token.\n",
            content_type="text/plain",
        )
    text = generate_latest(_registry).replace(f"{_ATTEMPTS}_total".encode(), _ATTEMPTS.encode())
    return HttpResponse(text, content_type=CONTENT_TYPE_LATEST)


def _may_read(request: HttpRequest) -> bool:
    if settings.METRICS_TOKEN:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(given.encode(), settings.METRICS_TOKEN.encode())
    return settings.METRICS_PUBLIC or is_from_this_machine(request)
