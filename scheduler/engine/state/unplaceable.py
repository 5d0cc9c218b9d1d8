"""Podgroups that no action needs to try, because no node could hold their pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scheduler.domain.codes import StatusCode
from scheduler.domain.nodes import Mask
from scheduler.domain.tables import Rows

if TYPE_CHECKING:
    from scheduler.engine.session import Session


def beyond_all_nodes(session: Session) -> Mask:
    """Podgroups short of their minimum, none of whose waiting pods would fit on an empty node.

    Those that must be tried nevertheless are left out: in a queue that is strictly first in, first
    out they stop the line, and what was promised to them must be given back.
    """
    groups = session.snapshot.groups
    pods = session.snapshot.pods
    found: Mask = (
        session.may_be_served
        & (session.pending_counts > 0)
        & (session.placed_counts < groups.min_member)
    )
    if not session.needs_whole_gangs or not found.any():
        return np.zeros(len(groups), dtype=np.bool_)
    found &= ~session.specs.strict[groups.queue]
    waiting = np.flatnonzero(pods.status == StatusCode.PENDING)
    found[pods.group[waiting[_fits_somewhere(session, waiting)]]] = False
    found[pods.group[waiting[pods.reserved_node[waiting] >= 0]]] = False
    return found


def _fits_somewhere(session: Session, waiting: Rows) -> Mask:
    """For each of these pods; each class is looked at once."""
    pod_classes = session.pod_classes[waiting]
    fits = np.zeros(len(session.request), dtype=np.bool_)
    for pod_class in np.unique(pod_classes).tolist():
        fits[pod_class] = session.node_scores(pod_class).fits_an_empty_node
    found: Mask = fits[pod_classes]
    return found
