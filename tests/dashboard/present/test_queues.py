"""What a reader sees of a queue: figures with their denominators, words for what is unset or
unknown, the bar's geometry.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from dashboard.present.amounts import in_page_order, short_name, shown, with_unit
from dashboard.present.queues import present_queues
from dashboard.present.quotas import (
    Limit,
    Quota,
    bar_figures,
    bar_note,
    bar_sentence,
    bar_spans,
    bar_text,
    present_quota,
)
from scheduler.domain.resources import Resources, parse_quantity
from scheduler.models import Queue
from scheduler.selectors.queues.listing import queue_rows
from tests.dashboard.sample import GPU, add_gang, add_queue, amounts, load_tree, set_figures


def gpus(
    allocated: int | None = 0,
    deserved: int | None = 16,
    limit: int | None = 32,
    pending: int | None = 0,
    guarantee: int | None = None,
    source: str = "",
    lent: int = 0,
) -> Quota:
    def thousand(number: int | None) -> int | None:
        return None if number is None else number * 1000

    return Quota(
        GPU,
        thousand(allocated),
        thousand(deserved),
        thousand(guarantee),
        thousand(pending),
        Limit(thousand(limit), source),
        lent * 1000,
    )


ASK = "ask"
USE = "use"
BORROW = "borrow"
PROMISE = "promise"
LEND = "lend"
OVER = "over"
GUARANTEE = "guarantee"
DESERVED = "deserved"


def span(quota: Quota, kind: str) -> tuple[int, int]:
    """Where it starts and how wide it is; (0, 0) where it is not drawn."""
    drawn = {found.kind: found for found in bar_spans(quota)}
    if kind not in drawn:
        return 0, 0
    return drawn[kind].start, drawn[kind].width


def test_allocated_within_deserved_is_solid():
    quota = gpus(allocated=8)

    assert span(quota, USE) == (0, 250)
    assert span(quota, BORROW)[1] == 0
    assert (bar_text(quota), bar_note(quota)) == ("8 of 32 GPU", "")


def test_what_is_above_deserved_is_borrowed():
    quota = gpus(allocated=22)

    assert span(quota, USE) == (0, 500)
    assert span(quota, BORROW) == (500, 187)
    assert bar_note(quota) == "6 borrowed"


def test_of_what_is_unused_only_what_a_sibling_uses_is_lent():
    assert span(gpus(allocated=8, lent=6), LEND) == (250, 187)
    assert bar_note(gpus(allocated=8, lent=6)) == "6 lent"
    assert span(gpus(allocated=8), LEND)[1] == 0


def test_what_is_promised_follows_what_is_allocated_and_lies_over_what_is_leaving():
    assert span(replace(gpus(allocated=8, pending=8), promised=4000), PROMISE) == (250, 125)
    assert span(replace(gpus(allocated=8, pending=8), promised=4000), ASK) == (375, 250)
    assert span(replace(gpus(allocated=32), promised=4000, leaving=4000), PROMISE) == (875, 125)
    assert (
        bar_note(replace(gpus(allocated=20), promised=4000, leaving=2000))
        == "4 borrowed, 4 promised, 2 leaving"
    )
    assert (
        bar_note(replace(gpus(allocated=34), leaving=2000)) == "18 borrowed, 2 leaving"
    )  # above its capability only until they are gone


def test_what_is_asked_for_stands_behind_what_is_allocated_and_ends_at_the_limit():
    assert span(gpus(allocated=8, pending=8), ASK) == (250, 250)
    assert span(gpus(allocated=8, pending=80), ASK) == (250, 750)


def test_above_the_limit_the_bar_is_capped_and_says_so():
    quota = gpus(allocated=40)

    assert span(quota, OVER)[1] > 0
    assert sum(span(quota, USE)) <= 1000
    assert bar_note(quota) == "8 over its capability"


def test_ticks_stand_at_guarantee_and_deserved_and_are_absent_where_unset():
    quota = gpus(guarantee=8)

    assert span(quota, GUARANTEE) == (247, 6)
    assert span(quota, DESERVED) == (493, 14)
    assert span(gpus(deserved=None), DESERVED)[1] == 0
    assert span(gpus(), GUARANTEE)[1] == 0


def test_without_a_limit_the_end_stays_open():
    quota = gpus(allocated=9, deserved=9, limit=None)

    assert span(quota, USE)[1] == 900
    assert bar_text(quota) == "9 GPU, no capability set"


def test_unknown_is_not_zero():
    quota = gpus(allocated=None, pending=None)

    assert bar_text(quota) == "not evaluated yet"
    assert present_quota(quota)["allocated"] == present_quota(quota)["pending"] == "unknown"
    assert span(quota, USE)[1] == 0


def test_the_sentence_says_all_that_the_bar_shows():
    assert bar_sentence(gpus(22, 16, 32, 4, 8)) == (
        "GPU: allocated 22 of 32 GPU, deserved 16, guarantee 8, capability 32, pending 4, "
        "6 borrowed."
    )
    assert "capability 32 inherited from team-a" in bar_sentence(gpus(8, source="team-a"))
    assert "capability none" in bar_sentence(gpus(limit=None))
    assert "deserved unset" in bar_sentence(gpus(deserved=None))


def test_the_figures_of_a_bar_are_data_in_a_fixed_order():
    quota = replace(gpus(22, 16, 32, 4, 8), promised=2000, leaving=1000)

    assert bar_figures(quota) == "GPU|22 of 32 GPU|2|16|8|32|4|6 borrowed|1 leaving"
    assert bar_figures(gpus(8, pending=None, source="team-a")) == (
        "GPU|8 of 32 GPU||16|unset|32 inherited from team-a|"
    )
    assert bar_figures(gpus(None)).endswith("|not evaluated yet by a session")


@pytest.mark.parametrize(
    ("resource", "text", "words"),
    [
        ("cpu", "180", "180 CPU"),
        ("cpu", "500m", "0.5 CPU"),
        ("cpu", "1m", "0.001 CPU"),
        ("cpu", "382999m", "383 CPU"),
        ("memory", "3Ei", "3 Ei"),
        ("cpu", "12345", "12 345 CPU"),
        ("cpu", "33333m", "33.3 CPU"),
        ("memory", "12Gi", "12 Gi"),
        ("memory", "1536Gi", "1.5 Ti"),
        ("memory", "0", "0"),
        ("memory", "512", "512 B"),
        (GPU, "22", "22 GPU"),
        ("example.com/licence", "3", "3 licence"),
        ("pods", "7", "7 pods"),
    ],
)
def test_amounts_are_written_for_people(resource: str, text: str, words: str):
    assert with_unit(resource, parse_quantity(resource, text)) == words


def test_a_share_of_a_device_is_shown_as_a_fraction():
    assert shown(GPU, 2500) == "2.5"


def test_accelerators_come_first_and_pods_not_at_all():
    assert in_page_order(["memory", "pods", "cpu", "storage", GPU, "amd.com/gpu"]) == [
        "amd.com/gpu",
        GPU,
        "cpu",
        "memory",
        "storage",
    ]
    assert in_page_order(["example.com/licence", "huawei.com/Ascend910", "cpu"]) == [
        "huawei.com/Ascend910",
        "cpu",
        "example.com/licence",
    ]
    assert short_name(GPU) == "GPU"


@pytest.mark.django_db
class TestTheTree:
    @pytest.fixture(autouse=True)
    def tree(self, db: None) -> None:
        load_tree()

    def test_rows_stand_in_the_order_of_the_tree_with_their_depth(self):
        rows = present_queues(queue_rows())

        assert [(name, row["depth"]) for name, row in rows.items()] == [
            ("root", 0),
            ("default", 1),
            ("production", 1),
            ("batch", 2),
            ("serving", 2),
            ("research", 1),
            ("language", 2),
            ("vision", 2),
        ]

    def test_an_unset_limit_is_taken_from_above_and_says_from_whom(self):
        rows = present_queues(queue_rows())

        assert rows["batch"]["resources"][GPU]["limitFrom"] == "production"
        assert rows["batch"]["resources"][GPU]["limit"] == "48"
        assert rows["language"]["resources"][GPU]["limitFrom"] == "the cluster"
        assert rows["vision"]["resources"][GPU]["limitFrom"] == ""

    def test_one_sibling_borrows_what_the_other_lends(self):
        rows = present_queues(queue_rows())

        assert rows["language"]["resources"][GPU]["note"] == "10 borrowed"
        assert (
            rows["vision"]["resources"][GPU]["note"] == "10 lent"
        )  # of the 12 that it leaves unused
        assert rows["serving"]["resources"][GPU]["note"] == ""

    def test_gangs_are_counted_for_the_queue_and_for_all_below_it(self):
        rows = present_queues(queue_rows())

        assert (
            rows["language"]["running"],
            rows["research"]["running"],
            rows["research"]["subtree"]["running"],
        ) == (3, 0, 4)

    def test_a_draining_queue_says_how_much_is_left(self):
        assert present_queues(queue_rows())["batch"]["stateNote"] == "3 gangs left"

    def test_a_draining_queue_says_of_how_many(self):
        Queue.objects.filter(name="batch").update(conditions=[{"type": "Draining", "total": 7}])

        assert present_queues(queue_rows())["batch"]["stateNote"] == "3 of 7 gangs left"

    def test_bars_of_one_scale_are_as_long_as_their_limits(self):
        rows = present_queues(queue_rows())

        assert rows["root"]["resources"][GPU]["scale"] == 1000  # 64 GPU, the longest
        assert rows["vision"]["resources"][GPU]["scale"] == 2000  # 32 GPU: half as long

    def test_who_asks_deserves_and_has_not_is_starved(self):
        starved = [name for name, row in present_queues(queue_rows()).items() if row["starved"]]

        assert starved == ["batch", "language"]

    def test_a_queue_that_no_session_has_seen_is_unknown(self):
        add_queue("fresh")

        assert (
            present_queues(queue_rows())["fresh"]["resources"]["cpu"]["text"] == "not evaluated yet"
        )

    def test_a_resource_that_only_one_queue_names_is_shown_for_all(self):
        add_queue("special", deserved=Resources.parse({"example.com/fpga": 2}))
        set_figures("special", Resources(), Resources.parse({"example.com/fpga": 2}), Resources())

        assert "example.com/fpga" in present_queues(queue_rows())["vision"]["resources"]

    def test_reading_the_tree_takes_three_queries_whatever_its_size(
        self, django_assert_num_queries
    ):
        for number in range(20):
            add_queue(f"more-{number}", "research")
            add_gang(f"more-{number}", f"gang-{number}")

        with django_assert_num_queries(3):
            queue_rows()

    def test_amounts_are_exact(self):
        set_figures(
            "vision",
            amounts(8, "53500m", "300Gi"),
            amounts(20, 300, "1Ti"),
            amounts(8, "53500m", "300Gi"),
        )

        assert present_queues(queue_rows())["vision"]["resources"]["cpu"]["allocated"] == "53.5"
