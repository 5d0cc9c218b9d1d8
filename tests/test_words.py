"""One word for one thing: what pages, API, command line, errors and docs used to say otherwise is
said nowhere any more.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PLACES = (
    "templates",
    "dashboard",
    "scheduler",
    "static/js",
    "docs",
    "README.md",
    "CONTRIBUTING.md",
    "examples",
)
ENDINGS = {".html", ".py", ".js", ".md", ".yaml"}

RETIRED = {
    r"[Nn]othing stands against": "No rule is broken, or: Can be saved, 1 warning",
    r"[Tt]o mend|[Mm]end (it|or)\b": "Fix",
    r"\b[Ll]et in(to)?\b": "admitted",
    r"left to promise": "still reservable",
    r"[Pp]ut in force": "Apply policy",
    r"is made\. Grant": "Account ruth created",
    r"[Ll]ast here": "Last sign-in",
    (
        r"under its limit|over the limit|an empty limit|[Oo]f limit|>Limit<|Limit of|higher "
        r"limit"
    ): "capability",
    r"[Hh]as not been looked at yet": "what keeps it from being tried",
    r"\b[Cc]an not\b": "cannot",
    r"\b(he|his|him|himself)\b": "they, their",
    r"[Ss]eeds? 00[0-9]": "the queue design and the others of docs/origins.md",
    r"\bthe contract\b(?!s)": "what it is: Volcano's six counts, the shape of Kubernetes",
    r"No scheduling session since": "No scheduling for 12 s (normally every 1 s)",
    r"The last session ended": "No scheduling for 12 s (normally every 1 s)",
    r"TreeWork": "TreeEdit",
    r"\bfarewell\(|[._-]farewell|[Ff]arewell\b(?=\.html| =)": "close_first, CloseThenDelete",
    r"def \w*told\w*\(": "what it gives: count_in_words",
}


def written() -> list[Path]:
    places = [ROOT / place for place in PLACES]
    files = [
        file for place in places for file in ([place] if place.is_file() else place.rglob("*"))
    ]
    return [file for file in files if file.suffix in ENDINGS and "migrations" not in file.parts]


@pytest.fixture(scope="module")
def lines() -> list[tuple[str, str]]:
    return [
        (f"{file.relative_to(ROOT)}:{number}", line)
        for file in written()
        for number, line in _numbered(file)
    ]


def _numbered(file: Path) -> list[tuple[int, str]]:
    return list(enumerate(file.read_text(encoding="utf-8").splitlines(), start=1))


@pytest.mark.parametrize("retired", RETIRED)
def test_a_retired_word_stands_nowhere(retired: str, lines: list[tuple[str, str]]):
    found = [where for where, line in lines if re.search(retired, line)]

    assert not found, f"say “{RETIRED[retired]}” instead"
