"""The answer of admission: every rule that is broken, and what is allowed but worth knowing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, slots=True)
class Remedy:
    """One value of the queue itself that would fix it; any one of several is enough."""

    field: str
    value: str


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule.

    `field` is the path in the manifest, `fix` what to write instead in words, `remedies` the same
    as values, where they follow and are this queue's own.
    """

    rule_id: str
    queue: str
    field: str
    message: str
    fix: str = ""
    remedies: tuple[Remedy, ...] = ()


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that is allowed but that the user should know."""

    code: str
    queue: str
    message: str
    field: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """All violations at once, and all notices. Nothing violated means admitted."""

    violations: tuple[Violation, ...] = ()
    notices: tuple[Notice, ...] = ()

    @property
    def allowed(self) -> bool:
        return not self.violations

    def __add__(self, other: Verdict) -> Verdict:
        return Verdict(
            without_repeats(self.violations + other.violations), (*self.notices, *other.notices)
        )


def without_repeats(violations: Iterable[Violation]) -> tuple[Violation, ...]:
    return tuple(dict.fromkeys(violations))


def one_for_each_rule(violations: Iterable[Violation]) -> tuple[Violation, ...]:
    """What several queues of a set break together is said once, with the fixes of all of them."""
    found: dict[tuple[str, str, str], list[Violation]] = {}
    for violation in violations:
        found.setdefault((violation.rule_id, violation.field, violation.message), []).append(
            violation
        )
    return tuple(replace(same[0], fix=_one_of_fixes(same)) for same in found.values())


def _one_of_fixes(same: Sequence[Violation]) -> str:
    """A fix may name several ways itself: "lower b to 1, or raise a to 9"."""
    if len(same) == 1:
        return same[0].fix
    ways: dict[str, None] = {}
    for violation in same:
        ways.update(dict.fromkeys(violation.fix.split(_OR)))
    named = [way for way in ways if way][:_MOST_WAYS]
    if len(named) < 2:
        return "".join(named)
    return f"{', '.join(named[:-1])}{_OR}{named[-1]}"


_OR: Final = ", or "
_MOST_WAYS: Final = 4


def in_words(violations: Iterable[Violation]) -> str:
    """All messages in one line, as Kubernetes joins them."""
    return "; ".join(violation.message for violation in violations)


class Rejected(Exception):
    """What was asked for breaks rules.

    `by_state` says that the object is fine and only the state of things forbids it.
    """

    def __init__(
        self,
        violations: Iterable[Violation],
        notices: Iterable[Notice] = (),
        *,
        by_state: bool = False,
    ) -> None:
        self.violations = tuple(violations)
        self.notices = tuple(notices)
        self.by_state = by_state
        super().__init__(in_words(self.violations))
