"""Changes of the queue tree in one transaction.

The tree is read once, kept up to date in memory, and written in a few statements.

So a thousand queues cost one look at the tree and not a thousand. What is read stays true until the
transaction ends, because whoever changes the tree, or what a queue's state depends on, waits for
the locks that are taken here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db import transaction
from django.utils import timezone

from scheduler import notify
from scheduler.admission.facts import Facts
from scheduler.admission.reading.queue import QueueReading
from scheduler.admission.rules.quotas import queues_concerned, queues_rearranged
from scheduler.admission.violations import Rejected
from scheduler.clusters.kubernetes.queue_writes import QueueWrite
from scheduler.conf import is_kubernetes
from scheduler.domain.lifecycle import derive
from scheduler.domain.plans import Change, Load, Plan
from scheduler.domain.queue_fields import (
    stored_values,
)
from scheduler.domain.queues import ROOT, QueueSpec, QueueState, QueueTree
from scheduler.models import AuditEntry, Command, Queue
from scheduler.models.prepared import PreparedInsert
from scheduler.selectors.queues.facts import scene_of, unknown_of
from scheduler.selectors.queues.loads import queue_loads
from scheduler.selectors.queues.surroundings import Around, queues_around, scene_around
from scheduler.selectors.queues.tree import StoredQueue, stored_queues, tree_of
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import Actor
from scheduler.services.cluster.queue_writes import (
    Sent,
    are_queues_in_cluster,
    rehearsal,
    send_queues,
    shows_in_mirror,
)
from scheduler.services.locks import alone_with_pods, lock_tree
from scheduler.services.notices.queues import say_quotas
from scheduler.services.queues.rows import (
    insert_queues,
    write_requested_states,
    write_specs,
)
from scheduler.services.queues.states import (
    StoredTree,
    alone_with_states,
    drop_deletions,
    settle_states,
)
from scheduler.services.queues.warnings import settle_warnings
from scheduler.services.records import audit
from scheduler.services.records.events import EventNote, record_events
from scheduler.services.sessions.requests import want_session

_NEW_COMMAND = PreparedInsert(Command)


@contextmanager
def tree_transaction(*, dry_run: bool = False) -> Iterator[None]:
    """For whoever makes a `TreeEdit`: one transaction, which is undone after a dry run.

    Queues of a real cluster are part of no transaction: the API server decides about each. Only a
    dry run is one, because nothing of it is sent.
    """
    if are_queues_in_cluster() and not dry_run:
        yield
        return
    with rehearsal(dry_run), transaction.atomic():
        yield
        if dry_run:
            transaction.set_rollback(True)


@dataclass(slots=True)
class _Image:
    """The tree as it is by now, what is already decided but not yet written included."""

    queues: dict[str, StoredQueue]
    tree: QueueTree
    facts: Facts
    parents: dict[str, str]
    found: QueueTree  # as it was before


class TreeEdit:
    """To be made inside of a `tree_transaction`, which has the tree to itself from then on.

    Nothing is written before `settle`. Of queues in a real cluster only a mirror is stored here:
    nothing is locked, and `settle` sends the changes to the API server.

    All queues are read, unless `expect_one` says which one it will be about. `only_life` reads no
    more of them than the states need: enough for commands. `with_pods` is for
    whoever deletes pods, or may forbid that it is placed. Without `locks` it is for planning alone:
    it must not be settled.
    """

    def __init__(
        self, *, only_life: bool = False, with_pods: bool = False, locks: bool = True
    ) -> None:
        self.is_in_cluster = are_queues_in_cluster()
        self.only_plans = not locks
        if locks and not self.is_in_cluster:
            _lock(with_pods=with_pods)
        self._only_life = only_life
        self._around: Around | None = None
        self._new: dict[str, Queue] = {}
        self._respecified: set[str] = set()
        self._versions: Counter[str] = Counter()
        self._authors: dict[str, str] = {}
        self._orders: list[Command] = []
        self._entries: list[AuditEntry] = []
        self._notes: list[EventNote] = []
        self._noted: set[str] = set()  # whose changes of state are in the notes already
        self._reopened: set[str] = set()
        self._gone: list[str] = []
        self._before: dict[str, QueueSpec] = {}  # as this edit found those that it changes
        self.failures: Mapping[str, Rejected] = {}
        self.is_shown = True
        self.warns = False

    def expect_one(self, around: Around) -> None:
        """Nothing but this will be changed, so the tree around it is all that will be read.

        Where a real cluster writes the tree, it may be broken in ways that only show in the whole.
        """
        if not is_kubernetes():
            self._around = around

    @cached_property
    def _image(self) -> _Image:
        if self._around is None:
            queues = stored_queues(only_life=self._only_life)
        else:
            queues = queues_around(self._around, only_life=self._only_life)
        parents = {}
        for name, queue in queues.items():
            parents[name] = queue.spec.parent
        if self._only_life:
            tree = tree_of(queues)
            return _Image(queues, tree, _life_of(queues), parents, tree)
        if self._around is None:
            tree, facts = scene_of(queues)
        else:
            tree, facts = scene_around(self._around, queues)
        return _Image(queues, tree, facts, parents, tree)

    @property
    def tree(self) -> QueueTree:
        return self._image.tree

    @property
    def facts(self) -> Facts:
        return self._image.facts

    @property
    def unknown(self) -> frozenset[str]:
        return self.facts.unknown

    def seen_by(self, by: Actor) -> Actor:
        """The caller with their rights on the tree as it is now.

        What they have just created below a queue of theirs is theirs too.
        """
        mine = access.access_for(by)
        if not mine.everything:
            mine = replace(mine, parents=self._image.parents)
        return replace(by, access=mine)

    def uid_of(self, name: str) -> str:
        if name in self._new:
            return str(self._new[name].uid)
        if self._expects_many:
            return self._uids[name]
        return str(Queue.objects.values_list("uid", flat=True).get(name=name))

    @cached_property
    def _uids(self) -> dict[str, str]:
        uids: dict[str, str] = {}
        for name, uid in Queue.objects.values_list("name", "uid"):
            uids[name] = str(uid)
        return uids

    def loads(self, name: str) -> Mapping[str, Load]:
        """What is in the queues, with pods and users of at least this one and those below it."""
        if self._expects_many:
            return self._all_loads
        return queue_loads(self.tree.subtree_names(name))

    _expects_many = False

    def expect_many(self) -> None:
        """Many orders will be given: what is in the queues is counted once for all of them."""
        self._expects_many = True

    @cached_property
    def _all_loads(self) -> Mapping[str, Load]:
        return queue_loads(self.tree.queues)

    # What is done, in memory

    def add(self, proposed: QueueReading, by: Actor) -> Queue:
        spec = proposed.spec
        self._require_read(spec)
        image = self._image
        row = Queue(
            name=spec.name,
            wish=spec.state.value,
            is_unknown=proposed.is_unknown,
            state_since=timezone.now(),
            updated_by=by.name[:150],
            **stored_values(spec),
        )
        self._new[spec.name] = row
        image.tree = image.tree.with_queue(spec)
        image.parents[spec.name] = spec.parent
        if proposed.is_unknown:
            image.facts = replace(image.facts, unknown=image.facts.unknown | {spec.name})
        self.warns = True
        return row

    def respecify(self, spec: QueueSpec, by: Actor) -> None:
        """Change everything but the state that is asked for: only an order changes that."""
        self._require_read(spec)
        image = self._image
        self._before.setdefault(spec.name, image.tree[spec.name])
        image.tree = image.tree.with_queue(replace(spec, state=image.tree[spec.name].state))
        image.parents[spec.name] = spec.parent
        self._respecified.add(spec.name)
        self._touch(spec.name, by.name)
        self.warns = True

    def carry_out(self, planned: Plan, actor: str) -> None:
        """Set the state that is asked for, and note every state that follows from it."""
        if planned.requested is None:
            return
        image = self._image
        self._before.setdefault(planned.queue, image.tree[planned.queue])
        image.tree = image.tree.with_queue(
            replace(image.tree[planned.queue], state=planned.requested)
        )
        image.facts = replace(image.facts, unknown=image.facts.unknown - {planned.queue})
        self._touch(planned.queue, actor)
        self._note_changes(planned)

    def _note_changes(self, planned: Plan) -> None:
        """Also of the queue itself where it keeps its state: it may no longer be inherited."""
        sentences = {}
        for change in planned.state_changes:
            sentences[change.name] = change.sentence
        sentences[planned.queue] = planned.message
        for name, sentence in sentences.items():
            self.note(EventNote("Queue", name, planned.command.value, sentence, queue=name))
        for change in planned.changes:
            self._noted.add(change.name)
            if change.after.state not in (QueueState.CLOSING, QueueState.CLOSED):
                self._reopened.add(change.name)

    def _require_read(self, spec: QueueSpec) -> None:
        """Another queue would be judged without what is around it."""
        if self._around is None:
            return
        stays = spec.name in self.tree and self.tree[spec.name].parent == spec.parent
        if spec.name not in self._around.changed or not (
            stays or (spec.parent or ROOT) in self._around.parents
        ):
            raise LookupError(f"the tree was not read around {spec.name} below {spec.parent}")

    def _touch(self, name: str, author: str) -> None:
        self._versions[name] += 1
        self._authors[name] = author[:150]

    def remove(self, names: Iterable[str]) -> None:
        """Their rows have been deleted."""
        image = self._image
        for name in names:
            self._before.setdefault(name, image.tree[name])
            image.tree = image.tree.without(name)
            del image.queues[name], image.parents[name]
            self._gone.append(name)
            self._versions.pop(name, None)
            self._respecified.discard(name)
        self.warns = True

    def renew_states(self) -> None:
        """The states as they follow from what was decided so far, for the rules that ask for them.

        Else they are those that this edit found.
        """
        facts = self.facts
        derived = derive(self.tree, facts.live_podgroups, facts.unknown)
        states = {name: standing.state for name, standing in derived.items()}
        self._image.facts = replace(facts, states=states)

    def note(self, note: EventNote) -> None:
        self._notes.append(note)

    def record(self, by: Actor, action: str, name: str, **more: Any) -> AuditEntry:
        entry = audit.entry(by, action, "Queue", name, queue=name, **more)
        self._entries.append(entry)
        return entry

    def record_consequences(self, deed: AuditEntry, changes: Iterable[Change]) -> None:
        """What became of other queues by this deed.

        Whoever looks for one of them in the audit log finds who did it, and why.
        """
        for change in changes:
            entry = audit.consequence(
                deed,
                change.name,
                before=change.before.state,
                after=change.after.state,
                message=change.sentence,
            )
            self._entries.append(entry)

    def keep_order(self, row: Command) -> None:
        self._orders.append(row)

    # What is written

    def settle(self) -> None:
        """Write everything, once, at the end.

        With what follows from it: states, warnings, events, news, and a session that takes it into
        account. Raises `Rejected` where a real cluster refuses it.
        """
        if self.is_in_cluster:
            self.settle_in_cluster()
            self._raise_failures()
            return
        now = timezone.now()
        moved = {*self._new, *self._versions, *self._gone}
        if self._new:
            insert_queues(self._new, self.tree, self._image.queues)
        self._update(now)
        _NEW_COMMAND.insert(self._orders)
        if moved:
            drop_deletions(self._reopened)
            settled = settle_states(self._stored(), silent=self._noted)
            self._record_moves(settled.changes)
            self._image.queues.update(settled.queues)
        audit.write(self._entries)
        if self.warns:
            concerned = queues_concerned(moved, self._image.found, self.tree)
            settle_warnings(
                self._image.queues,
                self.tree,
                self.facts.total,
                only=concerned,
                rearranged=queues_rearranged(moved, self._image.found, self.tree),
            )
        record_events(self._notes, now)
        say_quotas(self._before, self.tree.queues, now)
        ordered = {row.target_name for row in self._orders}
        noted = {note.name for note in self._notes}
        notify.queues_changed(moved | ordered | noted)
        if self._new or self._respecified:
            notify.access_changed()  # grants count for what is below: another tree is another sight
        if moved:
            transaction.on_commit(want_session)

    # What is sent to a real cluster

    def settle_in_cluster(self) -> None:
        """Send every change, keep a record of those that were made, and wait for the mirror.

        `failures` says what the API server refused, by queue. `is_shown` is False where the mirror
        does not have it all yet.
        """
        writes = self._cluster_writes()
        sent = send_queues(writes)
        self.failures = sent.failures
        with transaction.atomic():
            self._record_sent(sent)
        self.is_shown = shows_in_mirror(writes, sent.versions)

    def _cluster_writes(self) -> list[QueueWrite]:
        """Parents are created before their children, and deleted after them."""
        writes = []
        made = [self.tree[name] for name in self._new if name in self.tree]
        for spec in sorted(made, key=lambda spec: self.tree.depth(spec.name)):
            writes.append(QueueWrite(spec.name, None, spec))
        for name in sorted(self._versions):
            if name in self.tree and name not in self._new:
                writes.append(self._write_of(name, self.tree[name]))
        for name in self._gone:
            if name not in self._new:
                writes.append(self._write_of(name, None))
        return writes

    def _write_of(self, name: str, after: QueueSpec | None) -> QueueWrite:
        return QueueWrite(name, self._before[name], after, self.uid_of(name))

    def _record_sent(self, sent: Sent) -> None:
        now = timezone.now()
        entries = [entry for entry in self._entries if self._was_done(entry, sent)]
        for row in self._orders:
            failure = sent.failures.get(row.target_name)
            if failure is not None:
                row.result = Command.FAILED
                row.message = str(failure)
        _NEW_COMMAND.insert(self._orders)
        audit.write(entries)
        notes = [note for note in self._notes if note.name not in sent.failures]
        record_events(notes, now)
        say_quotas(self._without_failures(sent), self.tree.queues, now)
        ordered = {row.target_name for row in self._orders}
        notify.queues_changed({*sent.versions, *ordered, *(note.name for note in notes)})

    def _without_failures(self, sent: Sent) -> Mapping[str, QueueSpec]:
        return {name: spec for name, spec in self._before.items() if name not in sent.failures}

    def _was_done(self, entry: AuditEntry, sent: Sent) -> bool:
        if entry.name in sent.failures:
            return False
        return entry.name in sent.versions or entry.follows not in sent.failures

    def _raise_failures(self) -> None:
        if not self.failures:
            return
        refusals = list(self.failures.values())
        if len(refusals) == 1:
            raise refusals[0]
        violations = [violation for refusal in refusals for violation in refusal.violations]
        by_state = any(refusal.by_state for refusal in refusals)
        raise type(refusals[-1])(violations, by_state=by_state)

    def _record_moves(self, changes: Iterable[Change]) -> None:
        """States that changed because a queue above was moved, below a closed one for instance."""
        moves = {}
        for entry in self._entries:
            if entry.action == "UpdateQueue":
                moves[entry.name] = entry
        for change in changes:
            if change.name in self._noted or not change.changes_state:
                continue
            moved = []
            for name in self.tree.ancestors(change.name):
                if name in moves:
                    moved.append(name)
            if moved:
                self.record_consequences(moves[moved[0]], [change])

    def _update(self, now: datetime) -> None:
        if not self._versions:
            return
        queues = self._image.queues
        for name in self._versions:
            spec = self.tree[name]
            parent = None
            if spec.parent:
                parent = queues[spec.parent].pk
            is_unknown = name in self.unknown
            queues[name] = replace(queues[name], spec=spec, parent_pk=parent, is_unknown=is_unknown)
        if self._respecified:
            write_specs([queues[name] for name in sorted(self._respecified)])
        touched = []
        for name in sorted(self._versions):
            touched.append(queues[name])
        write_requested_states(touched, self._versions, self._authors, now)

    def _stored(self) -> StoredTree:
        queues = self._image.queues
        tree = self.tree
        if self._around is not None:
            left = {spec.parent for spec in self._before.values()}
            tree = tree.realms({*self._new, *self._versions}, left)
        return StoredTree(
            queues,
            tree,
            {name: queue.standing for name, queue in queues.items()},
            self.unknown,
        )


def _lock(*, with_pods: bool) -> None:
    lock_tree()
    if with_pods:
        alone_with_pods()
    alone_with_states()


def _life_of(queues: Mapping[str, StoredQueue]) -> Facts:
    return Facts(unknown=unknown_of(queues))
