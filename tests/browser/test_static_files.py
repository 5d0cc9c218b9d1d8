"""What browsers load: one palette, nothing that nobody asks for, lines that can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "static"
STYLES = sorted((STATIC / "css").glob("*.css"))
SCRIPTS = sorted((STATIC / "js").glob("*.js"))
PALETTE = STATIC / "css" / "tokens.css"

_COLOUR = re.compile(r"#[0-9a-fA-F]{3,8}\b|\b(?:rgb|hsl)a?\(")
_DEFINED = re.compile(r"^\s*(--[\w-]+):", re.MULTILINE)
_USED = re.compile(r"var\((--[\w-]+)\)|\"(--[\w-]+)\"")
_OF_ONE_PLACE = {
    "--count",
    "--heat",
    "--name-default",
    "--name-wish",
    "--numbers",
    "--resource",
    "--resources",
}


def _blocks(text: str, selector: str) -> set[str]:
    """The properties that are defined for this selector alone."""
    found = re.findall(rf"^{re.escape(selector)} \{{(.*?)^\}}", text, re.MULTILINE | re.DOTALL)
    return {name for block in found for name in _DEFINED.findall(block)}


@pytest.mark.parametrize(
    "path",
    [path for path in STYLES if path != PALETTE],
    ids=lambda path: path.name,
)
def test_colours_stand_in_the_palette_alone(path: Path):
    assert _COLOUR.findall(path.read_text()) == []


def test_no_colour_is_defined_twice_for_a_theme():
    names = _DEFINED.findall(PALETTE.read_text())

    dark = _blocks(PALETTE.read_text(), '[data-bs-theme="dark"]')
    twice = {name for name in names if names.count(name) > 1}

    assert twice == dark  # once in light, once in dark, and all others once


@pytest.mark.parametrize("path", [*STYLES, *SCRIPTS], ids=lambda path: path.name)
def test_every_colour_that_is_asked_for_is_there(path: Path):
    bootstrap = (STATIC / "vendor" / "bootstrap" / "bootstrap.min.css").read_text()
    known = (
        set(_DEFINED.findall(PALETTE.read_text()))
        | _OF_ONE_PLACE
        | set(re.findall(r"--bs-[\w-]+", bootstrap))
    )
    own = set(re.findall(r"(--[\w-]+):", path.read_text()))

    asked = {name for pair in _USED.findall(path.read_text()) for name in pair if name}

    assert asked - known - own == set()


def test_every_file_is_loaded_by_something():
    pages = [*(ROOT / "templates").rglob("*.html"), *(ROOT / "dashboard").rglob("*.py")]
    texts = "\n".join(path.read_text() for path in [*pages, *STYLES, *SCRIPTS])

    files = [
        path
        for path in STATIC.rglob("*")
        if path.suffix in {".js", ".css", ".svg"} and "axe-core" not in path.parts
    ]

    assert [path.name for path in files if path.name not in texts] == []


@pytest.mark.parametrize("path", [*STYLES, *SCRIPTS], ids=lambda path: path.name)
def test_lines_can_be_read(path: Path):
    """Pictures inside a style sheet are the exception: they are one value."""
    long = [
        line for line in path.read_text().splitlines() if len(line) > 100 and "url(" not in line
    ]

    assert long == []
