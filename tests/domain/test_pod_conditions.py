"""What is told of thousands of pods is kept once, and every pod gets its own back."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.domain.pod_conditions import in_words, packed, unpacked

AT = "2026-11-16T10:00:00+00:00"
told_of_pods = st.dictionaries(
    st.integers(1, 60),
    st.tuples(
        st.sampled_from(["Schedulable", "Unschedulable"]),
        st.sampled_from(["no room", "pod ns/p may", ""]),
    ),
)


def test_a_gang_that_waits_for_one_thing_has_one_entry():
    stored = packed(
        [
            (number, f"ns/p-{number}", "Unschedulable", "0/3 nodes are unavailable")
            for number in range(10, 10_010)
        ],
        AT,
    )

    assert stored == [
        {
            "reason": "Unschedulable",
            "message": "0/3 nodes are unavailable",
            "pods": [[10, 10_009]],
            "at": AT,
        }
    ]


def test_sentences_that_name_their_pod_are_one_sentence():
    stored = packed(
        [
            (number, f"ns/p-{number}", "Schedulable", f"pod ns/p-{number} may start")
            for number in (1, 2, 4)
        ],
        AT,
    )

    assert [entry["pods"] for entry in stored] == [[[1, 2], [4, 4]]]
    assert unpacked(stored, 4, "ns/p-4") == {
        "reason": "Schedulable",
        "message": "pod ns/p-4 may start",
        "at": AT,
    }
    assert unpacked(stored, 3, "ns/p-3") is None


@settings(deadline=None)
@given(told_of_pods)
def test_every_pod_gets_back_what_was_told_of_it(told):
    stored = packed([(number, f"ns/pod-{number}", *words) for number, words in told.items()], AT)

    for number in range(62):
        found = unpacked(stored, number, f"ns/pod-{number}")
        assert (found and (found["reason"], found["message"])) == told.get(number)


def test_in_words_pods_that_were_told_the_same_are_counted():
    stored = packed(
        [
            (1, "ns/p-1", "WaitingForQuota", "1 short."),
            (2, "ns/p-2", "WaitingForQuota", "1 short."),
            (3, "ns/p-3", "Unschedulable", "pod ns/p-3 can possibly be scheduled."),
        ],
        AT,
    )

    assert in_words(stored) == (
        "1 more pod waits: it can possibly be scheduled. 2 more of its pods wait: 1 short."
    )
    assert in_words([]) == ""
