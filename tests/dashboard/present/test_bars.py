"""Bars as they are put into pages."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from dashboard.present.bars import FIGURES, Span, bar_html, figures_text, rectangles, scaled
from dashboard.present.quotas import Limit, Quota, present_quota, quota_bar
from scheduler.domain.resources import Resources
from scheduler.models import Node
from tests.dashboard.sample import load_tree

_OTHER_PICTURES = {
    "templates/cluster/tiles/sessions.html",
    "templates/parts/patterns.html",
    "templates/sessions/_times.html",
}
"""A chart of columns, the patterns that bars are filled with, and the keys beside a bar."""

ROOT = Path(__file__).resolve().parents[3]


class _Attributes(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.of: dict[str, dict[str, str | None]] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.of.setdefault(tag, dict(attrs))


def test_a_span_without_width_is_not_drawn():
    spans = [Span("use", 0, 250), Span("borrow", 250, 0), Span("lend", 250, -3)]

    assert rectangles(spans) == '<rect class="use" x="0" width="250"/>'


def test_titles_and_labels_are_escaped():
    drawn = bar_html(rectangles([Span("use", 0, 10, "<b>")]), label='"><script>')

    assert "<script>" not in drawn
    assert "<b>" not in drawn
    assert _Attributes(drawn).of["svg"]["aria-label"] == '"><script>'


def test_a_bar_without_a_label_is_hidden_from_those_who_listen():
    assert _Attributes(bar_html("")).of["svg"]["aria-hidden"] == "true"


def test_nothing_is_drawn_beyond_the_end():
    assert [scaled(amount, 8) for amount in (0, 2, 8, 9)] == [0, 250, 1000, 1000]
    assert scaled(3, 0) == 0


def test_a_tooltip_has_a_place_for_each_figure_even_without_any():
    assert figures_text("GPU", remarks=["a 3"]).split("|") == ["GPU", *[""] * len(FIGURES), "a 3"]


def test_the_script_names_the_figures_in_the_same_order():
    script = (ROOT / "static" / "js" / "tooltip.js").read_text()
    (names,) = re.findall(r"const FIGURES = \[(.*?)\];", script, re.DOTALL)

    assert re.findall(r'"(\w+)"', names) == list(FIGURES)


def test_bars_to_one_scale_have_a_track_as_long_as_their_limit():
    quota = present_quota(Quota("cpu", 2000, None, None, 0, Limit(4000, "root")), largest=8000)

    drawn = _Attributes(quota_bar(quota, absolute=True))

    assert drawn.of["svg"]["viewbox"] == "0 0 2000 16"
    assert drawn.of["svg"]["class"] == "bar absolute inherited"
    assert drawn.of["rect"] == {"class": "track", "x": "0", "width": "1000"}


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/", "/queues/", "/queues/production/children/", "/nodes/"])
def test_pages_show_bars_and_not_their_markup(path: str):
    load_tree()
    Node.objects.create(name="n-1", allocatable=Resources.parse({"cpu": "8"}))
    client = Client()
    client.force_login(get_user_model().objects.create(username="admin", is_superuser=True))

    page = client.get(path).content.decode()

    assert '<svg class="bar' in page
    assert "&lt;svg" not in page


def test_no_template_and_no_script_draws_a_bar_itself():
    drawing = re.compile(r"class=.bar[ \"']|<rect")
    pages = ROOT / "templates"
    files = [*pages.rglob("*.html"), *(ROOT / "static" / "js").glob("*.js")]

    found = {str(path.relative_to(ROOT)) for path in files if drawing.search(path.read_text())}

    assert found == _OTHER_PICTURES
