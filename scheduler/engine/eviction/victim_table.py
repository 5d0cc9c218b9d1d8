"""All that podgroups offer when room is made, as columns: one question is put to all at once.

The table stays between the gangs that ask. Whoever went is taken out, and what their gangs still
offer is looked at anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np

from scheduler.domain.nodes import Amounts, Mask
from scheduler.domain.tables import IS_ALLOCATED, Floats, Ints, Rows
from scheduler.engine.eviction.candidate_gangs import SPARE, GangCandidates
from scheduler.engine.eviction.gang_victims import Victim
from scheduler.engine.plugins.gang import roles_count


class VictimTable:
    """One row for each victim, those of a podgroup side by side: its members beyond the minimum in
    the order in which they go, then the gang as a whole.

    Rows stay where they are. `is_left` marks those that are offered at present. `amounts` are
    resources by victims, `frees` marks where there are any, and `most` is what no victim has more
    of. Of victims that cost the same, those with a lower `turn` go first.
    """

    def __init__(self, candidates: GangCandidates, groups: Rows) -> None:
        self.session = candidates.session
        self._members = candidates.of_groups(groups)
        self._victims: dict[int, Victim] = {}  # those that somebody has looked at
        self._fill(list(self._members.spare_places()))

    def _fill(self, spare_places: list[Rows]) -> None:
        members = self._members
        nobody = np.zeros(0, dtype=np.intp)
        spare = np.concatenate([nobody, *spare_places])
        count = len(members.groups)
        # Stable: the spare members of a gang stay in their order, and the gang comes after them.
        number = np.concatenate([members.numbers[spare], np.arange(count)])
        order = np.argsort(number, kind="stable")
        self._number: Rows = number[order]
        self._place: Rows = np.concatenate([spare, np.full(count, -1)])[order]
        self.is_spare: Mask = self._place >= 0
        self.gang_rows: Rows = np.flatnonzero(~self.is_spare)  # by podgroup, the row of the gang
        self.group: Rows = members.groups[self._number]
        self.queue: Ints = self.session.snapshot.groups.queue[self.group]
        whole_amounts = members.amounts_by_group()
        amounts = np.concatenate([members.requests[spare], whole_amounts])[order]
        self.amounts: Amounts = np.ascontiguousarray(amounts.T)
        self.frees: Mask = self.amounts != 0
        self.most: Amounts = self.amounts.max(axis=1, initial=0)  # amounts never rise
        work = np.concatenate([members.work[spare] * SPARE, members.work_by_group()])
        self.cost: Floats = work[order]
        self._is_complete = members.are_complete()
        self._is_there: Mask = np.ones(len(members.pods), dtype=np.bool_)
        self._has_protected = bool(members.is_protected.any())
        may_go_whole = self._is_complete & ~members.have_protected()
        self._row_of_member: Rows = np.full(len(members.pods), -1)  # by place; -1: it is not spare
        self._row_of_member[self._place[self.is_spare]] = np.flatnonzero(self.is_spare)
        is_spare_left = np.ones(len(spare), dtype=np.bool_)
        self.is_left: Mask = np.concatenate([is_spare_left, may_go_whole])[order]
        self.turn: Rows = self._turns()

    def _turns(self) -> Rows:
        """By the name of the gang, then in the order in which it offers them."""
        keys = self.session.snapshot.groups.key
        names = [keys[group] for group in self._members.groups.tolist()]
        by_name = sorted(range(len(names)), key=names.__getitem__)
        place = np.empty(len(names), dtype=np.intp)
        place[by_name] = np.arange(len(names))
        turns = np.empty(len(self._number), dtype=np.intp)
        turns[np.argsort(place[self._number], kind="stable")] = np.arange(len(turns))
        return turns

    def __len__(self) -> int:
        return len(self.group)

    @cached_property
    def queues(self) -> Rows:
        """Those that have any victims."""
        return np.unique(self.queue)

    def rows_of_group(self, group: int) -> slice:
        """All rows of this podgroup."""
        groups = self._members.groups
        number = int(np.searchsorted(groups, group))
        if number == len(groups) or groups[number] != group:
            return slice(0, 0)
        return slice(self._rows_of(number).start, int(self.gang_rows[number]) + 1)

    @cached_property
    def on_nodes(self) -> NodeOffers:
        """What each victim would free on each of its nodes."""
        members = self._members
        spare = np.flatnonzero(self.is_spare)
        places = np.concatenate([self._place[spare], np.arange(len(members.pods))])
        rows = np.concatenate([spare, self.gang_rows[members.numbers]])
        nodes = self.session.nodes[members.pods[places]].astype(np.intp)
        width = len(self.session.node_table.names)
        return NodeOffers(rows, nodes, members.requests[places], len(self), width)

    @cached_property
    def members_in_order(self) -> Rows:
        """The offers of members beyond a minimum, in the order in which one is chosen after the
        other: by cost, then by node, then by turn. Nothing of that ever changes.
        """
        offers = self.on_nodes
        rows = np.flatnonzero(self.is_spare[offers.victim])
        victims = offers.victim[rows]
        order = np.lexsort((self.turn[victims], offers.node[rows], self.cost[victims]))
        return rows[order]

    def victim(self, row: int) -> Victim:
        found = self._victims.get(row)
        if found is None:
            found = self._victims[row] = self._new_victim(row)
        return found

    def victims(self, rows: Rows) -> list[Victim]:
        """The same for many."""
        return [self.victim(row) for row in rows.tolist()]

    def _new_victim(self, row: int) -> Victim:
        return Victim(
            row=row,
            gang=self.session.gang(int(self.group[row])),
            pods=self._pods_of(row),
            amounts=self.amounts[:, row].copy(),
            cost=float(self.cost[row]),
            is_spare=bool(self.is_spare[row]),
        )

    def _pods_of(self, row: int) -> Rows:
        members = self._members
        place = self._place[row]
        if place >= 0:
            return members.pods[place : place + 1]
        pods = members.pods[members.places_of(int(self._number[row]))]
        return pods[IS_ALLOCATED[self.session.status[pods]]]

    def rows_beside(self, victim: Victim) -> slice:
        """The rows that are no longer offered when this victim goes, besides its own: a gang takes
        its spare members along, and a member keeps its gang.
        """
        end = int(self.gang_rows[self._number[victim.row]])
        if victim.is_spare:
            return slice(end, end + 1)
        return self._rows_of(int(self._number[victim.row]))

    def _rows_of(self, number: int) -> slice:
        """The rows of the spare members of the podgroup with this number."""
        first = 0
        if number:
            first = int(self.gang_rows[number - 1]) + 1
        return slice(first, int(self.gang_rows[number]))

    def sums_by_group(self, counts: Mask) -> tuple[list[int], Amounts]:
        """What the victims that count would free, by podgroup: those with any, and their sums."""
        firsts = np.append(0, self.gang_rows[:-1] + 1)
        numbers = np.flatnonzero(np.logical_or.reduceat(counts, firsts))
        sums = np.add.reduceat(self.amounts * counts, firsts, axis=1)
        return self._members.groups[numbers].tolist(), sums.T[numbers]

    # What plugins say

    def agreed(self, ask: Callable[[Rows, Rows], Mask]) -> Mask:
        """Which victims may go, by an answer for podgroups and, beside each, a class of its pods.

        A gang goes as a whole only if pods of all its classes may go.
        """
        members = self._members
        groups, pod_classes, pair = self._pairs
        verdicts = ask(groups, pod_classes)
        if verdicts.all():
            return np.ones(len(self), dtype=np.bool_)
        may_go = verdicts[pair]
        stays = ~may_go & IS_ALLOCATED[self.session.status[members.pods]]
        staying = np.bincount(members.numbers[stays], minlength=len(members.groups))
        may_all_go = staying == 0
        agreed: Mask = np.where(self.is_spare, may_go[self._place], may_all_go[self._number])
        return agreed

    @cached_property
    def _pairs(self) -> tuple[Rows, Rows, Rows]:
        """Every podgroup with every class of its pods, each pair once; and the pair of each pod."""
        members = self._members
        classes = len(self.session.request)
        codes = members.group * classes + self.session.pod_classes[members.pods]
        codes, pair = np.unique(codes, return_inverse=True)
        return codes // classes, codes % classes, pair

    # Renewing

    def renew(self, pods: Rows) -> None:
        """These pods have gone. What podgroups offer that had none of them is the same."""
        members = self._members
        places = members.find(pods)
        numbers = members.numbers[places]
        self._is_there[places] = False
        rows = self._row_of_member[places]
        self.is_left[rows[rows >= 0]] = False
        self._take_off_gangs(numbers, places)
        for number in sorted(set(numbers.tolist())):
            self._renew_gang(number)
            self._keep_minimum(number)

    def _take_off_gangs(self, numbers: Rows, places: Rows) -> None:
        """Their gangs are offered without them."""
        members = self._members
        rows = self.gang_rows[numbers]
        requests = members.requests[places]
        np.subtract.at(self.amounts.T, rows, requests)
        self.frees[:, rows] = self.amounts[:, rows] != 0
        nodes = self.session.nodes[members.pods[places]].astype(np.intp)
        self.on_nodes.take_off(rows, nodes, requests)

    def _renew_gang(self, number: int) -> None:
        members = self._members
        row = int(self.gang_rows[number])
        own = members.places_of(number)
        is_there = self._is_there[own]
        work = members.work[own][is_there]
        is_protected = self._has_protected and (members.is_protected[own] & is_there).any()
        self._victims.pop(row, None)
        self.cost[row] = work.sum()
        self.is_left[row] = bool(self._is_complete[number] and len(work) and not is_protected)

    def _keep_minimum(self, number: int) -> None:
        """No more members are offered than the gang can spare now. Those that were offered before
        are as many at most, unless others went than these.
        """
        members = self._members
        own = self._rows_of(number)
        gang = self.session.gang(int(members.groups[number]))
        can_spare = gang.ready - gang.min_member
        if np.count_nonzero(self.is_left[own]) <= can_spare and not roles_count(gang):
            return
        rows = np.flatnonzero(self.is_left[own]) + own.start
        kept = rows[members.beyond_minimum(gang, self._place[rows])]
        self.is_left[own] = False
        self.is_left[kept] = True


class NodeOffers:
    """What each victim would free on each of its nodes, as columns, those of a node side by side.

    `frees` are resources by offers. `victim` is the victim's row in its table.
    """

    def __init__(
        self, victims: Rows, nodes: Rows, requests: Amounts, victim_count: int, width: int
    ) -> None:
        keys, place = np.unique(nodes * victim_count + victims, return_inverse=True)
        frees = np.zeros((len(keys), requests.shape[1]), dtype=np.int64)
        np.add.at(frees, place, requests)
        self._keys = keys
        self._victim_count = victim_count
        self.frees: Amounts = np.ascontiguousarray(frees.T)
        self.victim: Rows = keys % max(1, victim_count)
        self.node: Rows = keys // max(1, victim_count)
        self._starts: Rows = np.searchsorted(self.node, np.arange(width + 1))
        self.nodes: Rows = np.flatnonzero(np.diff(self._starts))
        """Those with any offers."""

    def on(self, node: int) -> slice:
        """The offers on this node."""
        return slice(self._starts[node], self._starts[node + 1])

    def sums_by_node(self, dim: int, counts: Mask) -> Amounts:
        """What the offers that count would free of a resource, on each of `nodes`."""
        sums: Amounts = np.add.reduceat(self.frees[dim] * counts, self._starts[self.nodes])
        return sums

    def least_by_node(self, numbers: Floats) -> Floats:
        """The least number of the offers on each of `nodes`."""
        least: Floats = np.minimum.reduceat(numbers, self._starts[self.nodes])
        return least

    def take_off(self, victims: Rows, nodes: Rows, requests: Amounts) -> None:
        """These victims no longer have a pod that asks for this on the node beside it."""
        places = np.searchsorted(self._keys, nodes * self._victim_count + victims)
        np.subtract.at(self.frees.T, places, requests)


class Offered:
    """The victims that one gang may choose from.

    `is_offered` marks them in their table.
    """

    def __init__(self, table: VictimTable, is_offered: Mask) -> None:
        self.table = table
        self.is_offered = is_offered
        self._count = int(np.count_nonzero(is_offered))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Victim]:
        """Cheapest first."""
        rows = np.flatnonzero(self.is_offered)
        order = np.lexsort((self.table.turn[rows], self.table.cost[rows]))
        return map(self.table.victim, rows[order].tolist())

    def least_of_gangs(self) -> float:
        """What the cheapest of the gangs that may go as a whole costs; without end if none may."""
        rows = self.table.gang_rows
        offered = rows[self.is_offered[rows]]
        return float(self.table.cost[offered].min(initial=np.inf))

    def freed_by_node(self) -> Amounts:
        """What all of them would free together, resources by nodes.

        A member beyond its gang's minimum counts twice if its gang is offered as well.
        """
        offers = self.table.on_nodes
        counts = self.is_offered[offers.victim]
        freed = np.zeros_like(self.table.session.node_table.used)
        for dim in range(len(freed)):
            freed[dim, offers.nodes] = offers.sums_by_node(dim, counts)
        return freed

    def by_group(self) -> dict[int, Amounts]:
        """What each podgroup would lose."""
        return dict(zip(*self._sums_by_group, strict=True))

    def by_queue(self) -> dict[int, Amounts]:
        """What each queue would lose."""
        sums: dict[int, Amounts] = {}
        queues = self.table.session.snapshot.groups.queue
        for group, amounts in zip(*self._sums_by_group, strict=True):
            queue = int(queues[group])
            sums[queue] = sums.get(queue, 0) + amounts
        return sums

    @cached_property
    def _sums_by_group(self) -> tuple[list[int], Amounts]:
        """The podgroups that would lose something, and what."""
        return self.table.sums_by_group(self.is_offered)
