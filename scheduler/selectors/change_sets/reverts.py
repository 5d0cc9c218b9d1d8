"""How a single entry of the audit log could be undone."""

from __future__ import annotations

from scheduler.domain.reverts import Deed, Inverse, inverse_of
from scheduler.models import AuditEntry
from scheduler.selectors.change_sets.objects import manifests_now


def inverse_of_entry(entry: AuditEntry) -> Inverse:
    deed = Deed(entry.action, entry.kind, entry.name, entry.before, entry.after, entry.follows)
    key = (entry.kind, entry.name)
    return inverse_of(deed, manifests_now([key]).get(key))
