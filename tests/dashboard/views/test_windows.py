"""The pages of a safe window, without JavaScript."""

from __future__ import annotations

import re

import pytest
from django.http import HttpResponse

from scheduler.domain.lifecycle import QueueCommand
from scheduler.models import Queue, SafeWindow
from scheduler.services.change_sets.drafts import discard
from scheduler.services.change_sets.windows import begin_window
from scheduler.services.queues.commands import command_queue
from scheduler.services.queues.create_update import update_queue
from tests.dashboard.work import person, signed_in, small_cluster

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def text(response: HttpResponse) -> str:
    return " ".join(response.content.decode().split())


def begun(name: str = "research") -> SafeWindow:
    return begin_window(name, by=person("admin")).window


def where(window: SafeWindow, verb: str = "") -> str:
    return f"/changes/windows/{window.pk}/{verb}"


VISION = "kind: Queue\nmetadata: {name: vision}\nspec: {weight: 7}\n"


def test_the_first_page_shows_what_stops_and_whom_it_affects():
    page = text(signed_in("admin").get("/changes/windows/-/new/?queue=research"))

    assert "Suspend research and begin" in page
    assert "Affects" in page
    assert "sam" in page
    assert "starts its jobs again, to drain" in page
    assert not SafeWindow.objects.exists()


@pytest.mark.parametrize("reader", ["admin", "vera"])
def test_without_a_queue_the_first_page_says_where_to_begin(reader: str):
    page = signed_in(reader).get("/changes/windows/-/new/")

    assert page.status_code == 404
    assert "Open the page of the queue" in text(page)
    assert 'href="/queues/"' in text(page)
    assert "renamed" not in text(page)


def test_suspending_a_draining_queue_warns():
    command_queue("vision", QueueCommand.CLOSE)

    page = text(signed_in("admin").get("/changes/windows/-/new/?queue=vision"))

    assert "banner-warning" in page
    assert "drain" in page


def test_all_steps_are_forms():
    admin = signed_in("admin")
    response = admin.post(
        "/changes/windows/-/new/", {"queue": "research", "name": "Quotas", "reason": "agreed"}
    )
    window = SafeWindow.objects.get()
    assert response.url == where(window)
    page = text(admin.get(where(window)))
    assert f"/queues/vision/edit/?change_set={window.change_set_id}" in page
    assert "Quotas" in page

    added = admin.post(f"/changes/{window.change_set_id}/add/", {"yaml": VISION})
    assert added.url == where(window)  # back to the window, not to the page of the set
    assert "Preview the effect" in text(admin.get(where(window)))
    admin.post(where(window, "apply/"))
    assert Queue.objects.get(name="vision").weight == 7
    assert "Undo: revert" in text(admin.get(where(window)))
    admin.post(where(window, "revert/"))
    assert Queue.objects.get(name="vision").weight == 1
    admin.post(where(window, "apply/"))
    admin.post(where(window, "resume/"))
    assert Queue.objects.get(name="research").state == "Open"
    page = text(admin.get(where(window)))
    assert "Finished" in page
    assert "Undo: suspend research again" in page
    admin.post(where(window, "suspend/"))
    assert "Everything goes back" in text(admin.get(where(window, "abandon/")))
    assert Queue.objects.get(name="vision").weight == 7
    admin.post(where(window, "abandon/"))

    assert Queue.objects.get(name="vision").weight == 1
    assert Queue.objects.get(name="research").state == "Open"
    assert "Abandoned" in text(admin.get(where(window)))


def marks(page: str) -> list[str]:
    return re.findall(r'class="step-mark" data-mark="([^"]*)"', page)


def applied_window() -> SafeWindow:
    window = begun()
    admin = signed_in("admin")
    admin.post(f"/changes/{window.change_set_id}/add/", {"yaml": VISION})
    admin.post(where(window, "apply/"))
    return window


def test_before_it_is_abandoned_the_values_that_go_back_are_shown():
    window = applied_window()

    page = text(signed_in("admin").get(where(window, "abandon/")))

    assert "The change set will be reverted, and research will be Open." in page
    assert "<del>7</del>" in page
    assert "<ins>1</ins>" in page
    assert "Reverted" not in page
    assert Queue.objects.get(name="vision").weight == 7


def test_before_a_draft_is_abandoned_nothing_is_said_to_be_reverted():
    page = text(signed_in("admin").get(where(begun(), "abandon/")))

    assert "The draft will be discarded, and research will be Open." in page
    assert "What goes back" not in page


def test_an_abandoned_window_says_what_was_undone_and_by_whom():
    window = applied_window()
    admin = signed_in("admin")
    admin.post(where(window, "abandon/"))
    admin.get("/")  # the message of the deed is gone then

    page = text(admin.get(where(window)))

    assert marks(page) == ["undone", "undone", "left out", "undone", "left out"]
    assert re.search(r"Applied by admin, <time[^>]*>[^<]*</time>\. Reverted by admin, <time", page)
    assert "The change set was applied and reverted." in page


def test_the_undo_of_the_first_step_keeps_the_edits():
    window = begun()
    admin = signed_in("admin")
    admin.post(f"/changes/{window.change_set_id}/add/", {"yaml": VISION})
    admin.post(where(window, "resume/"))

    page = text(admin.get(where(window)))

    assert marks(page) == ["undone", "done", "left out", "left out", "left out"]
    assert "Nothing was applied" in page


def test_a_finished_window_says_when_its_set_was_reverted_later():
    window = applied_window()
    admin = signed_in("admin")
    admin.post(where(window, "resume/"))
    assert marks(text(admin.get(where(window)))) == ["done"] * 5
    back = admin.post(f"/changes/{window.change_set_id}/revert/").url
    admin.post(f"{back}apply/")

    page = text(admin.get(where(window)))

    assert marks(page) == ["done", "done", "done", "undone", "done"]


def test_a_second_window_is_refused_with_a_way_to_the_first():
    window = begun()

    page = signed_in("admin").get("/changes/windows/-/new/?queue=vision")

    assert page.status_code == 409
    assert "of admin holds research" in text(page)
    assert f'href="{where(window)}"' in text(page)


def test_the_queues_that_it_holds_say_so():
    window = begun()
    admin = signed_in("admin")

    for name in ("research", "vision"):
        page = text(admin.get(f"/queues/{name}/"))
        assert f'href="{where(window)}"' in page
        assert "of admin since" in page
    assert "Held by" not in text(admin.get("/queues/batch/"))
    assert where(window) in text(admin.get("/changes/"))
    child_only = text(signed_in("sam").get("/queues/vision/"))
    assert "Held by a safe window" in child_only
    assert "research" not in child_only.split("Held by a safe window")[1].split("</p>")[0]


def test_what_others_did_stands_on_the_page():
    window = begun()
    admin = signed_in("admin")
    command_queue("research", QueueCommand.RESUME, by=person("ruth"), reason="too long")

    page = text(admin.get(where(window)))

    assert "research is no longer suspended" in page
    assert "ResumeQueue by ruth" in page
    assert "too long" in page
    assert "Suspend research again" in page
    answer = admin.post(where(window, "apply/"))
    assert answer.status_code == 409
    assert "no longer suspended" in text(answer)


def test_a_crossing_change_is_told_and_refuses_the_revert():
    window = begun()
    admin = signed_in("admin")
    admin.post(f"/changes/{window.change_set_id}/add/", {"yaml": VISION})
    admin.post(where(window, "apply/"))
    update_queue("vision", {"spec": {"weight": 9}}, merge=True)

    assert "spec.weight from 7 to 9" in text(admin.get(where(window)))
    for verb in ("revert/", "abandon/"):
        answer = admin.post(where(window, verb))
        assert answer.status_code == 409
    assert "Back to the window" in text(admin.get(where(window, "abandon/")))
    assert Queue.objects.get(name="vision").weight == 9


def test_a_window_whose_queue_or_set_is_gone_can_still_be_led_on():
    window = begun("batch")
    admin = signed_in("admin")
    discard(window.change_set_id, by=person("admin"))
    assert "Begin another change set" in text(admin.get(where(window)))
    admin.post(where(window, "collect/"))
    assert "Edit batch" in text(admin.get(where(window)))

    Queue.objects.filter(name="batch").update(name="renamed")
    page = text(admin.get(where(window)))
    assert "batch was deleted" in page
    admin.post(where(window, "resume/"))

    assert not SafeWindow.objects.get().is_open


def test_who_may_not_see_the_queue_sees_no_window():
    window = begun()

    for name in ("sam", "vera"):
        visitor = signed_in(name)
        assert visitor.get(where(window)).status_code == 404
        assert visitor.post(where(window, "resume/")).status_code == 404
        assert "research" not in text(visitor.get("/changes/")).split("<main")[1]
    assert Queue.objects.get(name="research").wish == "Suspended"


def test_a_viewer_looks_and_can_do_nothing():
    window = begun("vision")
    vera = signed_in("vera")

    page = text(vera.get(where(window)))

    assert "You can look at this window" in page
    assert "can continue it" in page
    assert "Undo" not in page
    assert vera.post(where(window, "resume/")).status_code == 403
    assert vera.get("/changes/windows/-/new/?queue=vision").status_code == 403

    signed_in("admin").post(where(window, "abandon/"))
    ended = text(vera.get(where(window)))
    assert "nothing is left to do" in ended
    assert "continue it" not in ended


def test_a_refusal_that_is_read_again_leads_to_the_page_of_the_window():
    window = begun("batch")
    admin = signed_in("admin")
    assert admin.post(where(window, "apply/")).status_code == 409

    again = admin.get(where(window, "apply/"))

    assert (again.status_code, again.url) == (302, where(window))
    assert signed_in("sam").get(where(window, "resume/")).status_code == 404
    assert SafeWindow.objects.get().is_open
