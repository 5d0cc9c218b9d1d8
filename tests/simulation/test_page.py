"""The page of a comparison: every plot is there, and nothing in it comes from elsewhere."""

from __future__ import annotations

import re

import pytest

from scheduler.simulation.measures import Line
from scheduler.simulation.page import Result, main_resource, page, part_rows, table_rows

GPU = "nvidia.com/gpu"
WAIT = {"count": 2, "p50": 3.0, "p95": 1234.0, "max": 1234.0}


def figures(resource=GPU, **more):
    return {
        "jobs": 9,
        "finished": 7,
        "binds": 20,
        "evictions": 1,
        "evictionsPerBind": 0.05,
        "evictionsByAction": {"reclaim": 1},
        "mostEvicted": 1,
        "held": {"cpu": 0.2, resource: 0.9},
        "useful": {"cpu": 0.1, resource: 0.8},
        "lost": {"cpu": 0.0, resource: 0.025},
        "waits": {"all": WAIT, "bySize": {"1 GPU": WAIT}, "byQueue": {}, "largestTenth": WAIT},
        "shortfall": {"vision": 0.25},
        "guaranteeUnmetSeconds": {},
        "sessions": 30,
        "cpuSeconds": 1.25,
        "cpuSecondsByPart": {"allocate": 1.0, "between sessions": 0.25},
        **more,
    }


@pytest.fixture
def results():
    lines = [Line(0.0, 0.0, 0.0, 0.0, 0.0), Line(60.0, 0.9, 0.8, 0.025, 40.0)]
    return [
        Result("fumarole", figures(), lines),
        Result("my <own>.yaml", figures(cpuSecondsByPart={"reclaim": 2.0}), lines),
    ]


def test_there_is_a_plot_of_everything_that_policies_are_compared_by(results):
    captions = re.findall("<figcaption>(.*?)</figcaption>", page("Title", "about", results))

    for wanted in (" held", " useful", " lost", " waited for", "Median wait", "95th", "Shortfall"):
        assert any(wanted in caption for caption in captions), wanted


def test_each_policy_has_a_line_in_each_plot_over_time_and_differs_by_more_than_colour(results):
    text = page("Title", "about", results)

    strokes = re.findall('<polyline fill="none" stroke="(.*?)".*?stroke-dasharray="(.*?)"', text)
    assert len(strokes) == 4 * 2
    assert len({colour for colour, _ in strokes}) == len({dash for _, dash in strokes}) == 2


def test_names_are_written_as_they_are(results):
    text = page("A & B", "about", results)

    assert "my &lt;own&gt;.yaml" in text
    assert "<own>" not in text
    assert "<title>A &amp; B</title>" in text


def test_the_table_has_a_cell_for_each_policy(results):
    rows = dict(table_rows(results, GPU))

    assert rows["nvidia.com/gpu lost to evictions"] == ["2.5%", "2.5%"]
    assert rows["95th percentile of waits"] == ["1,234 s", "1,234 s"]
    assert rows["largest shortfall of a queue"] == ["25.0%", "25.0%"]


def test_a_part_that_a_policy_does_not_have_is_left_open(results):
    assert part_rows(results) == [
        ("allocate", ["1.0 s", "-"]),
        ("between sessions", ["0.2 s", "-"]),
        ("reclaim", ["-", "2.0 s"]),
    ]


def test_a_cluster_without_gpus_is_judged_by_its_cpus():
    assert main_resource([Result("a", figures(resource="memory"), [])]) == "cpu"
