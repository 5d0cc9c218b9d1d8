"""The search of the queue tree: what its words find, and that a word which is not known is refused
with what is.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from dashboard.forms.queue_query import (
    FIELDS,
    QUALITIES,
    STATES,
    matching,
    read_search,
    with_ancestors,
)
from dashboard.present.queues import present_queues
from scheduler.models import Queue
from scheduler.selectors.queues.listing import queue_rows
from tests.dashboard.sample import add_queue, amounts, load_tree, set_figures
from tests.dashboard.work import text

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def tree() -> None:
    """language borrows and waits, vision lends, serving is suspended, batch closes and is starved.

    Archive is closed and warned.
    """
    load_tree()
    add_queue(
        "archive",
        "research",
        state="Closed",
        wish="Closed",
        reclaimable=False,
        warnings=[{"code": "x", "message": "odd"}],
    )
    set_figures("archive", amounts(0, 500), amounts(0, 1), amounts(0, 500))
    Queue.objects.filter(name="archive").update(capability=amounts(0, 400))


@pytest.fixture
def admin() -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create(username="admin", is_superuser=True))
    return client


def found(query: str) -> list[str]:
    rows = list(present_queues(queue_rows()).values())
    return sorted(matching(rows, read_search(query, [row["name"] for row in rows])))


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("lang", ["language"]),
        ("A b", ["batch"]),
        ("nothing", []),
        ("is:waiting is:leaf", ["batch", "language"]),
        ("is:waiting is:borrowing", ["language"]),
        ("is:borrowing is:leaf", ["archive", "language"]),
        ("is:lending", ["batch", "default", "production", "serving", "vision"]),
        ("is:starved -lang", ["batch"]),
        ("is:warned", ["archive"]),
        ("is:overlimit", ["archive"]),
        ("is:suspended", ["serving"]),
        ("is:closing,closed", ["archive", "batch"]),
        ("state:clos", ["archive", "batch"]),
        ("state:open,suspended is:leaf", ["default", "language", "serving", "vision"]),
        ("is:running is:parent", ["production", "research", "root"]),
        ("is:idle", ["archive", "default", "serving"]),
        ("is:leaf -is:reclaimable", ["archive"]),
        ("below:research", ["archive", "language", "research", "vision"]),
        ("below:research -lang -state:closed is:leaf", ["vision"]),
        (
            "-research below:production,research is:leaf",
            ["archive", "batch", "language", "serving", "vision"],
        ),
        ("IS:Suspended", ["serving"]),
        ("-", []),
    ],
)
def test_words_that_must_all_hold(query: str, names: list[str]):
    assert found(query) == names


def test_in_a_tree_what_leads_to_the_found_stays(admin: Client):
    rows = list(present_queues(queue_rows()).values())

    assert with_ancestors(rows, ["language"]) == {"root", "research", "language"}
    page = text(admin.get("/queues/?q=lang"))
    assert re.findall(r'<tr role="row" data-key="([^"]+)"', page)[:3] == [
        "root",
        "research",
        "language",
    ]
    assert "<span data-found>1</span> found" in page


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (
            "is:wating",
            "There is no “is:wating”: did you mean “waiting”? There are is:waiting, is:running,",
        ),
        (
            "state:foo",
            (
                "There is no “state:foo”. There are state:open, state:closing, state:closed, "
                "state:suspended, state:unknown."
            ),
        ),
        ("is:waiting,lazy", "There is no “is:lazy”"),
        (
            "stat:open",
            "There is no word “stat:”: did you mean “state:”? There are is:, state:, "
            "below:, owner: and"
            " parts of names.",
        ),
        ("-colour:red", "There is no word “colour:”."),
        ("is:", "“is:” has no value: write something like is:waiting."),
        ("below:reserch", "There is no queue “reserch”: did you mean “research”?"),
        ("x" * 2000, "A search has at most 1024 characters."),
    ],
)
def test_a_word_that_is_not_known_is_refused_with_what_is(admin: Client, query: str, said: str):
    answer = admin.get("/queues/", {"q": query})
    page = text(answer)

    assert answer.status_code == 400
    assert said in page
    assert "The search did not run." in page
    assert (
        '<tr role="row" data-key' not in page.partition("<template")[0]
    )  # a refused search shows nothing that could be taken for found


def test_a_queue_out_of_sight_is_not_known_to_a_search():
    assert read_search("below:research", ["vision"]).problems == ("There is no queue “research”.",)


def test_each_quality_can_be_asked_for_and_each_asked_for_can_be():
    every: set[str] = set()
    for row in present_queues(queue_rows()).values():
        every.update(row["is"])

    assert every <= set(QUALITIES)
    assert set(QUALITIES) - every == {"unknown"}  # no queue of the sample is in that state


def test_the_page_gives_its_script_the_words(admin: Client):
    page: Any = admin.get("/queues/")

    assert page.context["known"] == {
        "is": list(QUALITIES),
        "state": list(STATES),
        "texts": ["owner"],
        "fields": FIELDS,
    }
    assert "<dt>owner:ml</dt>" in text(page)
    script = Path("static/js/queue-search.js").read_text()
    assert not any(f'"{word}"' in script for word in QUALITIES)  # it has no list of its own


def test_a_long_name_is_there_whole(admin: Client):
    name = "team-" + "x" * 200
    add_queue(name)

    page = admin.get("/queues/")
    assert f">{name}</a>" in text(page)
    assert page.context["has_long_names"]
