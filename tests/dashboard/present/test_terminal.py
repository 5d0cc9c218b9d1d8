"""What is copied for a terminal does there what it says, whatever is in it."""

from __future__ import annotations

import subprocess

import pytest
from django.test import RequestFactory

from dashboard.present.terminal import copies, copies_of_manifest


def words_of(line: str) -> list[str]:
    """As a shell gives them to the program, whose name is taken by a function that prints them and
    what it is sent.
    """
    program = line.partition(" ")[0]
    script = f"{program}() {{ printf '%s\\0' \"$@\"; cat; }}\n{line}\n"
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    return done.stdout.split("\0")


@pytest.mark.parametrize(
    "text",
    [
        "a: b",
        "a: |\n  END\n",
        "x: |-\nEND\ntouch /tmp/never\n",
        "END\nEND_\nrm -rf x",
        "$(id) `id` \\ 'q' \"d\"",
    ],
)
def test_a_document_goes_to_the_program_and_nowhere_else(text: str):
    request = RequestFactory().get("/")

    for line in copies_of_manifest(request, text, ["apply", "-f", "-"], "apply/").values():
        assert words_of(line)[-1] == f"{text.rstrip()}\n"


@pytest.mark.parametrize("name", ["team.a", "a b", "$(id)", "'; id; '"])
def test_names_are_single_words(name: str):
    request = RequestFactory().get("/")

    assert words_of(copies(request, ["queue", "open", name], "queues/x/open/")["cli"])[:3] == [
        "queue",
        "open",
        name,
    ]
