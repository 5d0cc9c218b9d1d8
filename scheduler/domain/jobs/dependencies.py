"""Which tasks of a job wait for which others, and which may begin first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dependency:
    """The tasks that must be under way before one may begin: all of them, or any."""

    names: tuple[str, ...] = ()
    any_will_do: bool = False

    def is_met(self, under_way: Collection[str]) -> bool:
        met = [name in under_way for name in self.names]
        if met and self.any_will_do:
            return any(met)
        return all(met)


def needed_tasks(task: Mapping[str, object]) -> list[str]:
    """Names of the tasks that this one waits for, as a manifest or the stored task has them."""
    depends_on = task.get("dependsOn")
    if isinstance(depends_on, Mapping):
        names = depends_on.get("name")
    else:
        names = None
    if isinstance(names, list):
        return [str(name) for name in names]
    if names:
        return [str(names)]
    return []


ITERATIONS = ("all", "any")
"""How many of the tasks that are named must be under way; all, where nothing is said."""


def dependency_of(task: Mapping[str, object]) -> Dependency:
    depends_on = task.get("dependsOn")
    if isinstance(depends_on, Mapping):
        iteration = depends_on.get("iteration")
    else:
        iteration = None
    return Dependency(tuple(needed_tasks(task)), iteration == "any")


def waits_for_itself(dependencies: Mapping[str, Iterable[str]]) -> list[str]:
    """Tasks that could never begin, because they wait for each other in a ring."""
    waiting = {}
    for name, needed in dependencies.items():
        waiting[name] = len(set(needed) & dependencies.keys())
    followers: dict[str, list[str]] = {}
    for name, needed in dependencies.items():
        for other in set(needed) & dependencies.keys():
            followers.setdefault(other, []).append(name)
    free = [name for name, left in waiting.items() if not left]
    while free:
        name = free.pop()
        del waiting[name]
        for follower in followers.get(name, ()):
            waiting[follower] -= 1
            if not waiting[follower]:
                free.append(follower)
    return sorted(waiting)


def first_to_begin(
    replicas: Mapping[str, int], dependencies: Mapping[str, Dependency]
) -> list[str]:
    """Tasks that wait for no other, or only for others that have no pods at all: the gang."""
    empty = set()
    for name, count in replicas.items():
        if not count:
            empty.add(name)
    first: list[str] = []
    for name in replicas:
        if dependencies.get(name, Dependency()).is_met(empty):
            first.append(name)
    return first
