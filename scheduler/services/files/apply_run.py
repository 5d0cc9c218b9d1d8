"""One file on its way in, and which rows its bringer may see."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from scheduler.domain.access import Access, Permission
from scheduler.models import Pod, Queue
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import Actor
from scheduler.services.cluster.queue_writes import are_queues_in_cluster
from scheduler.services.locks import alone_with_pods, lock_tree
from scheduler.services.queues.transaction import TreeEdit


class ApplyRun:
    """The apply of one file: who brings it, and its open transaction on the queue tree.

    A rehearsal has no transaction. It writes nothing and locks nothing.
    """

    def __init__(self, by: Actor, *, with_pods: bool = False, is_rehearsal: bool = False) -> None:
        self.by = by
        self.is_rehearsal = is_rehearsal
        self._edit: TreeEdit | None = None
        if with_pods and not are_queues_in_cluster():
            lock_tree()
            alone_with_pods()

    @property
    def edit(self) -> TreeEdit:
        if self._edit is None:
            self._edit = TreeEdit(with_pods=True, locks=not self.is_rehearsal)
            self._edit.expect_many()
        return self._edit

    def put_down(self) -> None:
        """Write the changed queues, before other code reads or changes them.

        To a real cluster they are sent at the end, when everything in the file was found right.
        """
        if self._edit is not None and not self._edit.is_in_cluster:
            self._edit.settle()
            self._edit = None

    def send(self) -> None:
        """Send the changed queues to a real cluster now: jobs may be for them."""
        if self._edit is not None:
            self._edit.settle()
            self._edit = None

    def finish(self, *, warns: bool) -> None:
        if warns:
            self.edit.warns = True
        self.put_down()
        if self._edit is not None:
            self._edit.settle()


def visible_row(rows: QuerySet[Any], by: Actor) -> Any:
    """The stored object, or None.

    One out of sight is not there: whoever may make one of its name finds that taken, and nobody
    else.
    """
    row = rows.first()
    if row is not None and is_in_sight(row, access.access_for(by)):
        return row
    return None


def is_in_sight(row: Any, seen: Access) -> bool:
    """What the caller may not see is not there for them.

    What belongs to no queue is for those who may delete it, who see everything.
    """
    if isinstance(row, Pod):
        gang = row.podgroup
    else:
        gang = row
    queue = getattr(gang, "queue", None)
    if isinstance(row, Queue):
        queue = row
    return queue is None or seen.may(Permission.VIEW, queue.place)
