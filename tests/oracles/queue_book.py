"""The life of a queue and its admission as the written rules have them (docs/origins.md), on plain
dictionaries.

Written from the text alone. It imports nothing of the product, is slow and recursive on purpose,
and knows whole numbers only, so that a mistake in the product is not made here again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

ROOT = "root"
DEFAULT = "default"
MAX_DEPTH = 5
Amounts = dict[str, int]


@dataclass
class Entry:
    """One queue: what its owner asked for."""

    name: str
    parent: str = ROOT
    wish: str = "Open"
    weight: int = 1
    capability: Amounts = field(default_factory=dict)
    deserved: Amounts = field(default_factory=dict)
    guarantee: Amounts = field(default_factory=dict)


@dataclass(frozen=True)
class Ruling:
    """What a command comes to: a refusal that names who comes first, or a new wish, or nothing."""

    refused: str = ""
    first: str = ""
    wish: str = ""


class Book:
    def __init__(self) -> None:
        self.queues = {ROOT: Entry(ROOT, parent=""), DEFAULT: Entry(DEFAULT)}
        self.live: dict[str, int] = {}
        self.total: Amounts | None = None

    def children(self, name: str) -> list[str]:
        return sorted(entry.name for entry in self.queues.values() if entry.parent == name)

    def subtree(self, name: str) -> list[str]:
        return [name, *(below for child in self.children(name) for below in self.subtree(child))]

    def above(self, name: str) -> list[str]:
        """From root down to the parent."""
        parent = self.queues[name].parent
        return [*self.above(parent), parent] if parent in self.queues else []

    # The model of states.

    def wanted_closed(self, name: str) -> bool:
        entry = self.queues.get(name)
        return entry is not None and (entry.wish == "Closed" or self.wanted_closed(entry.parent))

    def wanted_suspended(self, name: str) -> bool:
        entry = self.queues.get(name)
        return (
            entry is not None
            and not self.wanted_closed(name)
            and (entry.wish == "Suspended" or self.wanted_suspended(entry.parent))
        )

    def state(self, name: str) -> str:
        if self.wanted_closed(name):
            drained = not self.live.get(name) and all(
                self.state(child) == "Closed" for child in self.children(name)
            )
            return "Closed" if drained else "Closing"
        return "Suspended" if self.wanted_suspended(name) else "Open"

    def topmost(self, name: str, wish: str) -> str:
        return next((above for above in self.above(name) if self.queues[above].wish == wish), "")

    def standing(self, name: str) -> tuple[str, str, str]:
        """state, closedBy, suspendedBy."""
        state = self.state(name)
        own = self.queues[name].wish
        closed_by = (
            self.topmost(name, "Closed") if self.wanted_closed(name) and own != "Closed" else ""
        )
        suspended_by = (
            self.topmost(name, "Suspended") if state == "Suspended" and own != "Suspended" else ""
        )
        return state, closed_by, suspended_by

    def standings(self) -> dict[str, tuple[str, str, str]]:
        return {name: self.standing(name) for name in self.queues}

    # Commands.

    def rule_on(self, name: str, command: str) -> Ruling:
        if name == ROOT:
            return Ruling() if command in ("Open", "Resume") else Ruling(refused="protected_queue")
        return {
            "Open": self._open,
            "Close": self._close,
            "Suspend": self._suspend,
            "Resume": self._resume,
        }[command](name)

    def _open(self, name: str) -> Ruling:
        first = next((above for above in self.above(name) if self.queues[above].wish != "Open"), "")
        if first:
            return Ruling(refused="parent_not_open", first=first)
        return Ruling(wish="Open") if self.queues[name].wish != "Open" else Ruling()

    def _close(self, name: str) -> Ruling:
        return Ruling(wish="Closed") if self.queues[name].wish != "Closed" else Ruling()

    def _suspend(self, name: str) -> Ruling:
        first = self.topmost(name, "Closed")
        if first:
            return Ruling(refused="parent_not_open", first=first)
        if self.state(name) == "Closed" or self.queues[name].wish == "Suspended":
            return Ruling()
        return Ruling(wish="Suspended")

    def _resume(self, name: str) -> Ruling:
        inherits = self.topmost(name, "Suspended") and not self.wanted_closed(name)
        if inherits:
            return Ruling(refused="parent_not_open", first=self.topmost(name, "Suspended"))
        return Ruling(wish="Open") if self.queues[name].wish == "Suspended" else Ruling()

    def warnings_of(self, name: str, command: str) -> set[str]:
        """The warnings of a command that changes the queue."""
        found = set()
        if command == "Suspend" and self.state(name) == "Closing":
            found.add("drain_cancelled")
        if command == "Close":
            waiting = [queue for queue in self.subtree(name) if self.live.get(queue)]
            before = {queue: self._held(queue) for queue in waiting}
            self.queues[name].wish, own = "Closed", self.queues[name].wish
            after = {queue: self._held(queue) for queue in waiting}
            self.queues[name].wish = own
            if any(before[queue] and not after[queue] for queue in waiting):
                found.add("pending_jobs_start")
            if any(after.values()):
                found.add("held_above" if self.topmost(name, "Suspended") else "held_below")
        return found

    def _held(self, name: str) -> bool:
        return any(self.queues[queue].wish == "Suspended" for queue in [*self.above(name), name])

    # Admission of queues: the set of (rule, field).

    def refusals(self, new: Entry, old: Entry | None) -> set[tuple[str, str]]:
        moves = old is None or new.parent != old.parent
        quotas = moves or any(
            getattr(new, part) != getattr(old, part)
            for part in ("capability", "deserved", "guarantee")
        )
        found = self._own_rules(new)
        if old is None and new.name in self.queues:
            found.add(("already_exists", "metadata.name"))
        if moves:
            found |= self._place_rules(new)
        if quotas:
            found |= self._cluster_rule(new) | self._tree_rules(new, moves)
        return found

    def _own_rules(self, new: Entry) -> set[tuple[str, str]]:
        fields = {
            "capability": "spec.capability",
            "deserved": "spec.deserved",
            "guarantee": "spec.guarantee.resource",
        }
        found = {
            ("negative_quantity", f"{path}.{resource}")
            for part, path in fields.items()
            for resource, amount in getattr(new, part).items()
            if amount < 0
        }
        for low, high in (
            ("guarantee", "deserved"),
            ("deserved", "capability"),
            ("guarantee", "capability"),
        ):
            small = getattr(new, low)
            large = getattr(new, high)
            for resource in small.keys() & large.keys():
                if small[resource] > large[resource] >= 0:
                    found.add((f"{low}_exceeds_{high}", f"{fields[low]}.{resource}"))
        if not 1 <= new.weight <= 65535:
            found.add(("weight_out_of_range", "spec.weight"))
        return found

    def _place_rules(self, new: Entry) -> set[tuple[str, str]]:
        if new.parent == new.name:
            return {("self_parent", "spec.parent")}
        below = self.subtree(new.name) if new.name in self.queues else [new.name]
        if new.parent in below:
            return {("parent_cycle", "spec.parent")}
        if new.parent not in self.queues:
            return {("parent_not_found", "spec.parent")}
        found = set()
        depth = len(self.above(new.parent)) + 1
        height = (
            max(len(self.above(queue)) for queue in below) - len(self.above(new.name))
            if new.name in self.queues
            else 0
        )
        if depth + height > MAX_DEPTH:
            found.add(("max_depth_exceeded", "spec.parent"))
        if new.parent != ROOT and self.live.get(new.parent):
            found.add(("parent_has_allocated_pods", "spec.parent"))
        return found

    def _cluster_rule(self, new: Entry) -> set[tuple[str, str]]:
        if self.total is None:
            return set()
        return {
            ("guarantee_exceeds_cluster", f"spec.guarantee.resource.{resource}")
            for resource, amount in new.guarantee.items()
            if amount > self.total.get(resource, 0)
        }

    def _tree_rules(self, new: Entry, moves: bool) -> set[tuple[str, str]]:
        """Rules 13 to 16 on the tree as it would be.

        Nobody is above it when there is no such place.
        """
        has_place = new.parent in self.queues and new.parent not in (
            self.subtree(new.name) if new.name in self.queues else [new.name]
        )
        there = self.queues.get(new.name)
        self.queues[new.name] = new if has_place else replace(new, parent="")
        try:
            return self._rules_below(new) | (self._rules_above(new, moves) if has_place else set())
        finally:
            if there is None:
                del self.queues[new.name]
            else:
                self.queues[new.name] = there

    def _rules_above(self, new: Entry, moves: bool) -> set[tuple[str, str]]:
        found = {
            ("capability_exceeds_ancestor", f"spec.capability.{resource}")
            for resource, amount in new.capability.items()
            if amount > self._limit_above(new.name, resource)
        }
        unset = {
            resource
            for queue in self.subtree(new.name)
            for resource in self.queues[queue].capability
        } - new.capability.keys()
        if moves and any(
            self._asked_below(new.name, resource) > self._limit_above(new.name, resource)
            for resource in unset
        ):
            found.add(
                ("capability_exceeds_ancestor", "spec.parent")
            )  # what comes along must fit there too
        return found | (self._sum_rules(new.parent) if new.parent != ROOT else set())

    def _limit_above(self, name: str, resource: str) -> int:
        """The capability of the nearest queue above that sets one; root is not looked at."""
        limits = [
            self.queues[above].capability for above in reversed(self.above(name)) if above != ROOT
        ]
        return next((limit[resource] for limit in limits if resource in limit), 10**9)

    def _rules_below(self, new: Entry) -> set[tuple[str, str]]:
        found = {
            ("capability_below_descendant", f"spec.capability.{resource}")
            for resource, amount in new.capability.items()
            if any(self._asked_below(child, resource) > amount for child in self.children(new.name))
        }
        return found | self._sum_rules(new.name)

    def _asked_below(self, name: str, resource: str) -> int:
        own = self.queues[name].capability.get(resource)
        return (
            own
            if own is not None
            else max(
                (self._asked_below(child, resource) for child in self.children(name)), default=-1
            )
        )

    def _sum_rules(self, parent: str) -> set[tuple[str, str]]:
        found = set()
        for part, path in (("guarantee", "spec.guarantee.resource"), ("deserved", "spec.deserved")):
            shares = [getattr(self.queues[child], part) for child in self.children(parent)]
            for resource in {resource for share in shares for resource in share}:
                together = sum(share.get(resource, 0) for share in shares)
                if together > getattr(self.queues[parent], part).get(resource, 0):
                    found.add((f"children_{part}_exceeds_parent", f"{path}.{resource}"))
        return found

    # Deletion, and work that comes.

    def blockers(self, name: str, *, cascade: bool) -> set[tuple[str, str]]:
        """(rule, queue) of all that stands against it."""
        if name in (ROOT, DEFAULT):
            return {("protected_queue", name)}
        doomed = self.subtree(name) if cascade else [name]
        found = set()
        for queue in doomed:
            if queue == DEFAULT:
                found.add(("protected_queue", queue))
                continue
            found |= {("has_children", queue)} if self.children(queue) and not cascade else set()
            found |= {("queue_not_closed", queue)} if self.state(queue) != "Closed" else set()
            found |= {("has_podgroups", queue)} if self.live.get(queue) else set()
        return found

    def work_refusals(self, name: str) -> set[str]:
        if name not in self.queues:
            return {"queue_not_found"}
        if name == ROOT:
            return {"queue_is_root"}
        found = {"queue_not_leaf"} if self.children(name) else set()
        return found if self.state(name) in ("Open", "Suspended") else found | {"queue_not_open"}
