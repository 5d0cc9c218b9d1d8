"""Metrics that tell whether everything works: what deploy/prometheus/alerts.yml watches."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily

from scheduler.selectors.cluster.mirror import mirror_facts
from scheduler.selectors.cluster.summary import failing_parts, session_clock
from scheduler.selectors.sessions.open_decisions import open_decisions


def operation_metrics() -> Iterator[GaugeMetricFamily]:
    yield from _session_metrics()
    yield from _decision_metrics()
    yield _failing_parts()
    yield from _cluster_metrics()


def _session_metrics() -> Iterator[GaugeMetricFamily]:
    clock = session_clock()
    if clock is None:
        return
    yield GaugeMetricFamily(
        "fumarole_session_period_seconds",
        "How far apart sessions are meant to be",
        value=clock.period_seconds,
    )
    yield GaugeMetricFamily(
        "fumarole_session_failing", "1 if the last session failed", value=int(clock.failing)
    )


def _decision_metrics() -> Iterator[GaugeMetricFamily]:
    waiting = open_decisions()
    yield GaugeMetricFamily(
        "fumarole_open_decisions",
        "Placements and evictions that were decided and are not carried out yet",
        value=waiting.count,
    )
    yield GaugeMetricFamily(
        "fumarole_oldest_open_decision_seconds",
        "How long ago the oldest of them was decided; 0 if there is none",
        value=waiting.oldest_seconds,
    )


def _failing_parts() -> GaugeMetricFamily:
    gauge = GaugeMetricFamily(
        "fumarole_part_failing_since_timestamp_seconds",
        "Since when a part of the work beside sessions fails at each tick",
        labels=["part"],
    )
    for part, since in failing_parts().items():
        gauge.add_metric([part], since.timestamp())
    return gauge


def _cluster_metrics() -> Iterator[GaugeMetricFamily]:
    """Of a Kubernetes cluster. Before its first answer there is nothing to tell."""
    facts = mirror_facts()
    if facts is None or facts.heard_at is None:
        return
    yield GaugeMetricFamily(
        "fumarole_cluster_silent_seconds",
        "How long ago the API server of the cluster was last heard",
        value=facts.silent_seconds,
    )
    yield GaugeMetricFamily(
        "fumarole_other_schedulers",
        "Names of our schedulerNames that another scheduler places, too",
        value=len(facts.rivals),
    )
