"""What the documents tell to type is marked as such, so that test_lines_run.py finds it and runs
it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.reading import BASE, DOCUMENTS, blocks, outside_blocks, shell_blocks

LANGUAGES = {"sh", "bash", "python", "yaml", "json", "ini", "nginx", "text"}
_COMMAND = (
    r"(\$ |manage\.py |\./manage\.py |python3? |pip |make |curl |export |\.venv/bin/|vcctl "
    r"|v(sub|jobs|queues|cancel|suspend|resume)\b)"
)
each_document = pytest.mark.parametrize(
    "document", DOCUMENTS, ids=lambda path: str(path.relative_to(BASE))
)


@each_document
def test_every_block_says_its_language(document: Path):
    unknown = [
        f"{document.name}:{block.line}"
        for block in blocks(document)
        if block.language not in LANGUAGES
    ]

    assert unknown == []


@each_document
def test_no_command_stands_in_a_block_that_is_not_run(document: Path):
    in_text = [
        line
        for block in blocks(document)
        if block.language == "text"
        for line in block.text.splitlines()
    ]
    indented = [
        line.removeprefix("    ") for _, line in outside_blocks(document) if line.startswith("    ")
    ]
    usage = re.compile(r"\[OPTIONS\]$")  # how a command is called in general

    assert [
        line
        for line in [*in_text, *indented]
        if re.match(_COMMAND, line) and not usage.search(line)
    ] == []


@each_document
def test_commands_within_a_sentence_can_be_typed_as_they_stand(document: Path):
    """manage.py is no program, and the Python of the system lacks the libraries."""
    lines = outside_blocks(document)

    assert [
        f"{document.name}:{number}"
        for number, line in lines
        if re.search(r"`(python3? |(\./)?manage\.py )", line)
    ] == []


@each_document
def test_what_is_said_to_be_run_elsewhere_is(document: Path):
    for block in shell_blocks(document):
        if block.marker.startswith("run by "):
            runner = BASE / block.marker.removeprefix("run by ")
            assert (
                str(document.relative_to(BASE)) in runner.read_text()
                or document.name in runner.read_text()
            )
