"""The outcome of a session as plain data, for `simulate --output json` and for tests."""

from __future__ import annotations

from typing import Any

from scheduler.engine.decisions import Evict, Outcome, QueueFigures


def outcome_document(name: str, outcome: Outcome) -> dict[str, Any]:
    """Ready for `json.dumps`; amounts are Kubernetes quantities."""
    reasons = {}
    for podgroup, reason in outcome.reasons.items():
        reasons[podgroup] = {"code": reason.code.value, "message": reason.message}
    return {
        "name": name,
        "binds": {bind.pod: bind.node for bind in outcome.binds},
        "evictions": [_eviction_report(eviction) for eviction in outcome.evictions],
        "pipelined": {reservation.pod: reservation.node for reservation in outcome.reservations},
        "phases": {podgroup: phase.label for podgroup, phase in outcome.phases.items()},
        "reasons": reasons,
        "queues": {queue: _figures_report(figures) for queue, figures in outcome.queues.items()},
    }


def _eviction_report(eviction: Evict) -> dict[str, str]:
    return {
        "pod": eviction.pod,
        "for": eviction.beneficiary,
        "action": eviction.action,
        "reason": eviction.reason,
    }


def _figures_report(figures: QueueFigures) -> dict[str, Any]:
    return {
        "deserved": figures.deserved.to_quantities(),
        "allocated": figures.allocated.to_quantities(),
        "request": figures.request.to_quantities(),
        "realCapability": figures.real_capability.to_quantities(),
        "nominalShare": figures.nominal_share.to_quantities(),
        "share": figures.share,
        "overused": figures.overused,
    }
