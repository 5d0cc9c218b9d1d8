"""What the API server refuses, in words: a `Rejected` that names the object and the field.

So every door tells it as it tells any other refusal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from scheduler.admission.violations import Rejected, Violation
from scheduler.clusters.kubernetes.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Denied,
    Forbidden,
    Invalid,
    NoAnswer,
    NotFound,
    ServerError,
    TooMany,
    Unauthorized,
)


class ClusterAway(Rejected):
    """The API server does not answer: later it may."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What was tried: with which object, and what was to become of it ("created")."""

    noun: str
    name: str
    deed: str
    queue: str

    def rejected(self, rule: str, place: str, message: str, fix: str = "") -> Rejected:
        return Rejected([Violation(rule, self.queue, place, message, fix)], by_state=True)

    def away(self, message: str) -> ClusterAway:
        violation = Violation(
            "cluster_away", self.queue, "metadata.name", message, "try again later"
        )
        return ClusterAway([violation], by_state=True)


def refusal_of_server(attempt: Attempt, problem: ApiError) -> Rejected:
    noun = attempt.noun
    name = attempt.name
    deed = attempt.deed
    told = in_a_sentence(problem.message)
    match problem:
        case NoAnswer():
            message = (
                f"It is not known whether the {noun} {name} was {deed}: the API server did not "
                f"answer ({told}). Look at the {noun} before you try again."
            )
            return attempt.away(message)
        case ServerError() | TooMany() | Unauthorized():
            message = f"The {noun} {name} was not {deed}: the API server does not answer ({told})."
            return attempt.away(message)
        case Denied():
            return Rejected(list(_denials(attempt, problem)), by_state=problem.status == 409)
        case AlreadyExists():
            message = f"There is already a {noun} {name} in the cluster."
            fix = "choose another name, or change the one that is there"
            return attempt.rejected("already_exists", "metadata.name", message, fix)
        case Conflict():
            message = f"The {noun} {name} is being changed in the cluster all the time: {told}."
            return attempt.rejected("changed_in_cluster", "metadata", message, "try again")
        case Forbidden():
            message = f"The cluster does not allow that the {noun} {name} is {deed}: {told}."
            fix = "give the account of Fumarole this right: manage.py kubernetes install"
            return attempt.rejected("forbidden_in_cluster", "metadata.name", message, fix)
        case NotFound():
            message = f"There is no {noun} {name} in the cluster."
            return attempt.rejected(f"{noun}_not_found", "metadata.name", message)
        case Invalid():
            return Rejected(list(_invalid_fields(attempt, problem)))
    message = f"The {noun} {name} was not {deed}, because the API server refused it: {told}."
    return attempt.rejected("refused_in_cluster", "metadata.name", message)


def _denials(attempt: Attempt, problem: Denied) -> Iterator[Violation]:
    """As the webhook says it. Our own names the rules and fields as they are named here."""
    for cause in problem.details.get("causes") or [{"message": problem.refusal}]:
        rule = str(cause.get("reason") or "refused_in_cluster")
        place = str(cause.get("field") or "metadata.name")
        message = str(cause.get("message") or problem.refusal)
        yield Violation(rule, attempt.queue, place, message)


def _invalid_fields(attempt: Attempt, problem: Invalid) -> Iterator[Violation]:
    causes = problem.details.get("causes") or [{"message": problem.message}]
    for cause in causes:
        place = str(cause.get("field") or "spec")
        told = in_a_sentence(str(cause.get("message") or problem.message))
        message = f"The cluster refuses {place} of the {attempt.noun} {attempt.name}: {told}."
        yield Violation("refused_in_cluster", attempt.queue, place, message)


def in_a_sentence(text: str) -> str:
    return " ".join(text.split()).rstrip(".")
