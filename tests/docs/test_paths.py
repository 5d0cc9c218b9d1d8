"""Every file and folder that a document names exists, and every link leads to one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.reading import BASE, DOCUMENTS

_ROOMS = "scheduler|dashboard|templates|static|tests|tools|docs|deploy|examples|requirements"
_CORE = "domain|admission|engine|scenarios|simulation"
_LAYERS = f"{_CORE}|models|selectors|clusters|services|management|supervisor"
_WEB = "http|live|present|forms|views|api|cli"
_PATH = re.compile(rf"(?<![\w./~-])(?:{_ROOMS}|{_LAYERS}|{_WEB})/[\w./*-]*")
_LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
_ADDRESS = re.compile(
    r"https?://\S+|`(?:GET|POST|PUT|PATCH|DELETE) "
    r"[^`]*`|`/[^`]*`|api/v1/\S*|api/docs\S*|api/schema\S*"
)
_WRITTEN_BY_COMMANDS = {"docs/cli.md"}
"""Texts that come from the program: they speak of the reader's files."""

each_document = pytest.mark.parametrize(
    "document", DOCUMENTS, ids=lambda path: str(path.relative_to(BASE))
)


def named_paths(document: Path) -> Iterator[str]:
    """What looks like a path of the project, without full stops and commas at its end."""
    text = _ADDRESS.sub(" ", document.read_text())
    for found in _PATH.findall(text):
        path = found.rstrip(".,")
        if "NAME" not in path:
            yield path


def is_there(path: str) -> bool:
    """As written, or below `scheduler/` or `dashboard/`, where documents leave that out."""
    return any(_exists(place, path) for place in (BASE, BASE / "scheduler", BASE / "dashboard"))


def _exists(place: Path, path: str) -> bool:
    if "*" in path:
        return any(place.glob(path))
    return (place / path).exists()


@each_document
def test_every_path_that_is_named_exists(document: Path):
    if str(document.relative_to(BASE)) in _WRITTEN_BY_COMMANDS:
        return

    assert [path for path in named_paths(document) if not is_there(path)] == []


def named_in_tables(document: Path) -> Iterator[str]:
    """Names in the columns of a table whose heads are folders, as paths."""
    heads: list[str] = []
    for line in document.read_text().splitlines():
        if not line.startswith("|"):
            heads = []
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not heads:
            heads = cells
            continue
        for head, cell in zip(heads, cells, strict=True):
            folder = re.fullmatch(r"`(\S+/)`", head)
            if folder:
                yield from (folder[1] + name for name in re.findall(r"`([^`]+)`", cell))


@each_document
def test_every_name_below_a_folder_in_a_table_exists(document: Path):
    assert [path for path in named_in_tables(document) if not is_there(path)] == []


def test_names_in_tables_are_read_as_paths(tmp_path: Path):
    document = tmp_path / "page.md"
    document.write_text("| subject | `scheduler/services/` |\n|---|---|\n| queues | `queues/` |\n")

    assert [*named_in_tables(document)] == ["scheduler/services/queues/"]


@each_document
def test_every_link_leads_to_a_file(document: Path):
    links = _LINK.findall(document.read_text())

    assert [link for link in links if not (document.parent / link).exists()] == []


def test_a_path_that_is_gone_is_noticed(tmp_path: Path):
    document = tmp_path / "page.md"
    document.write_text(
        "See `scheduler/engine/no_such_file.py`, `GET /api/v1/queues/` and `scheduler/engine/`."
    )

    assert [path for path in named_paths(document) if not is_there(path)] == [
        "scheduler/engine/no_such_file.py"
    ]


def test_the_list_of_documents_names_all_of_them():
    named = set(_LINK.findall((BASE / "docs/README.md").read_text()))
    here = {str(path.relative_to(BASE / "docs")) for path in (BASE / "docs").glob("*.md")}
    how_tos = {f"how-to/{path.name}" for path in (BASE / "docs/how-to").glob("*.md")}

    assert (here | how_tos) - named == {"README.md"}
