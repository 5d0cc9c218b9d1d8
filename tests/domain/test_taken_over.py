"""What is ours beside another scheduler: added, taken away, and in words."""

from __future__ import annotations

from scheduler.domain.taken_over import NOTHING, TakenOver


def test_what_is_taken_over_adds_up_and_is_given_back_by_name() -> None:
    first = TakenOver(namespaces=("team-a",))

    both = first | TakenOver(namespaces=("team-b",), queues=("research",))

    assert both == TakenOver(("team-a", "team-b"), ("research",))
    assert both - TakenOver(queues=("research",)) == TakenOver(("team-a", "team-b"))
    assert both - both == NOTHING
    assert not NOTHING


def test_it_is_told_in_words() -> None:
    assert TakenOver(("team-a",), ("one", "two")).in_words() == (
        "the namespace team-a and the queues one, two"
    )
    assert NOTHING.in_words() == "nothing"
