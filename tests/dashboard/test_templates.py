"""Templates: each name that is used exists, and each template is used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.template.loader import get_template

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "templates"

# Django and the packages ask for these by name.
ASKED_FOR_BY_OTHERS = {
    "400.html",
    "403.html",
    "403_csrf.html",
    "404.html",
    "500.html",
    "503.html",
    "drf_spectacular/swagger_ui.html",
    "registration/login.html",
    "rest_framework/api.html",
}
# Of pages that are shown whole or as a part, by the name that views/queue_deletion.py puts in.
OF_DELETION = {
    f"queues/{part}{name}.html" for part in ("", "_") for name in ("delete", "close_first")
}

NAMES = sorted(str(path.relative_to(TEMPLATES)) for path in TEMPLATES.rglob("*.html"))


def used_names() -> set[str]:
    files = [*TEMPLATES.rglob("*.html"), *(ROOT / "dashboard").rglob("*.py")]
    found: set[str] = set()
    for file in files:
        found.update(re.findall(r'"([a-z0-9_/]+\.html)"', file.read_text()))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_template_can_be_read(name: str):
    get_template(name)


def test_each_template_that_is_named_exists():
    assert used_names() - set(NAMES) == set()


def test_each_template_is_used():
    unused = set(NAMES) - used_names() - ASKED_FOR_BY_OTHERS - OF_DELETION

    assert unused == set()


@pytest.mark.parametrize("sheet", sorted((ROOT / "static/css").glob("*.css")), ids=lambda p: p.name)
def test_every_block_of_a_style_sheet_is_closed(sheet: Path):
    """Or all rules after it are lost without a word."""
    rules = re.sub(r"/\*.*?\*/", "", sheet.read_text(), flags=re.DOTALL)

    assert rules.count("{") == rules.count("}")
