"""Label selectors as Kubernetes writes them."""

from __future__ import annotations

import pytest

from scheduler.domain.label_selectors import LabelRequirement, NotASelector, parse_selector


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("", ()),
        ("team=a", (LabelRequirement("team", ("a",)),)),
        ("team==a", (LabelRequirement("team", ("a",)),)),
        ("team!=a", (LabelRequirement("team", ("a",), negated=True),)),
        (
            "team != a , stage",
            (LabelRequirement("team", ("a",), negated=True), LabelRequirement("stage")),
        ),
        ("!old", (LabelRequirement("old", negated=True),)),
        ("zone in (x, y)", (LabelRequirement("zone", ("x", "y")),)),
        (
            "zone notin (x,y),team=a",
            (LabelRequirement("zone", ("x", "y"), negated=True), LabelRequirement("team", ("a",))),
        ),
        ("kubernetes.io/os=linux", (LabelRequirement("kubernetes.io/os", ("linux",)),)),
        ("team=", (LabelRequirement("team", ("",)),)),
        ("in=a", (LabelRequirement("in", ("a",)),)),
    ],
)
def test_what_can_be_read(text: str, read: tuple[LabelRequirement, ...]):
    assert parse_selector(text) == read


@pytest.mark.parametrize(
    "text",
    [
        "=a",
        "team=a=b",
        "team>a",
        "team in x",
        "zone in (x",
        "zone in ((x))",
        "a b",
        "team=!a",
        "!",
        ",",
        "team!==a",
        "ü=1",
        "a,,b",
    ],
)
def test_what_cannot_be_read_is_refused(text: str):
    with pytest.raises(NotASelector, match="is not"):
        parse_selector(text)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 100_000 + "!",
        "a=" * 50_000,
        "a in (" * 20_000,
        "a in (" + "b," * 50_000,
        " " * 100_000 + "!",
        "!" * 99_999,
    ],
)
def test_long_nonsense_is_refused_soon(text: str):
    with pytest.raises(NotASelector):
        parse_selector(text)
