"""The words of the reason card."""

from __future__ import annotations

import pytest

from dashboard.present.reasons import help_words, ordinal, usual_words
from scheduler.domain.reasons import ReasonCode
from scheduler.selectors.jobs.page import PlaceInLine


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (1, "1st"),
        (2, "2nd"),
        (3, "3rd"),
        (4, "4th"),
        (11, "11th"),
        (12, "12th"),
        (22, "22nd"),
        (113, "113th"),
    ],
)
def test_places_are_counted_as_people_do(number: int, words: str):
    assert ordinal(number) == words


def standing(*usual: float) -> PlaceInLine:
    low, median, high = usual or (0, 0, 0)
    return PlaceInLine(3, 14, (), (low, median, high) if usual else None, 50 if usual else 4)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (standing(480, 840, 1500), "usual wait 8 to 25 min (median 14 min of the last 50 starts)"),
        (standing(30, 60, 180), "usual wait 30 s to 3 min (median 1 min of the last 50 starts)"),
        (standing(2, 2, 2), "usual wait 2 s (median 2 s of the last 50 starts)"),
        (standing(), "no estimate: fewer than 5 jobs of this size have started here"),
    ],
)
def test_the_usual_wait_in_words(given: PlaceInLine, words: str):
    assert usual_words(given) == words


@pytest.mark.parametrize("code", ReasonCode)
def test_every_reason_says_what_would_help_with_and_without_figures(code: ReasonCode):
    figures = {"resource": "nvidia.com/gpu", "level": "vision", "limit": 20_000, "short": 4_000}

    assert all("{" not in help_words(code, given) for given in (figures, {}, {"queue": "vision"}))


def test_help_has_figures_with_their_unit():
    figures = {"resource": "nvidia.com/gpu", "level": "vision", "limit": 20_000, "short": 4_000}

    assert (
        help_words("ExceedsCapability", figures)
        == "Ask for 20 GPU in all at most, or ask an admin of vision for a higher capability."
    )
    assert (
        help_words("AwaitingEvaluation", {"leaving": 3})
        == "When its old pods have stopped, it waits for a place again."
    )
    assert (
        help_words("WaitingForQuota", figures | {"leaving": 0})  # here it is an amount
        == "It starts when 4 GPU more come free in vision, as jobs there end."
    )
