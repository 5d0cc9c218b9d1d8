"""10,000 jobs in one list that is scrolled: few rows are in the document, and nothing else is lost
by it: not the place, not the ticks, not what screen readers are told.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from scheduler import notify
from scheduler.models import Job, PodGroup, Queue
from tests.browser.test_manners import AXE
from tests.dashboard.sample import add_gang

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Opens = Callable[..., Page]
Acts = Callable[..., Any]
MANY = 10_000
JOBS = 1_000  # enough where it does not matter how many
FEW = 400  # rows in the document
CHECK = f"""() => {{ {AXE};
  return axe.run(document).then((found) => found.violations.map((one) => one.id));
}}"""
TO_THE_END = "() => scrollTo({ top: document.body.scrollHeight, behavior: 'instant' })"


@pytest.fixture(autouse=True)
def jobs(act: Acts, console: Any, request: pytest.FixtureRequest) -> None:
    act(_submit_many, getattr(request, "param", JOBS))


def _submit_many(many: int) -> None:
    PodGroup.objects.all().delete()
    queue = Queue.objects.get(name="batch")
    made = Job.objects.bulk_create(
        Job(namespace="default", name=f"job-{number:05d}", queue=queue, min_available=1)
        for number in range(many)
    )
    PodGroup.objects.bulk_create(
        PodGroup(
            namespace="default",
            name=job.name,
            queue=queue,
            job=job,
            phase="Pending",
            reason_message="Waits for its turn. " * (number % 9),
        )
        for number, job in enumerate(made)
    )


def rows(page: Page) -> Locator:
    return page.locator(".job-table tbody tr[data-key]")


def row(page: Page, number: int) -> Locator:
    return page.locator(f'tr[data-key="default/job-{number:05d}"]')


def is_scrolled(page: Page) -> Page:
    expect(page.locator("#pill")).to_have_text("Live")
    expect(page.locator(".long-list")).to_be_visible()
    return page


def at_the_end(page: Page) -> Page:
    is_scrolled(page).evaluate(TO_THE_END)
    expect(row(page, 0)).to_be_attached()
    page.evaluate(TO_THE_END)
    expect(row(page, 0)).to_be_in_viewport()
    return page


@pytest.mark.parametrize("jobs", [MANY], indirect=True)
@pytest.mark.parametrize("viewport", [(1440, 900), (360, 780)], ids=["desktop", "phone"])
def test_the_last_of_many_is_a_scroll_away_with_few_rows_in_the_document(
    signed_in: Opens, viewport: tuple[int, int]
):
    width, height = viewport
    page = signed_in("/jobs/", viewport={"width": width, "height": height})

    at_the_end(page)

    expect(page.locator(".long-list")).to_have_attribute("aria-rowcount", str(MANY + 1))
    expect(row(page, 0)).to_have_attribute("aria-rowindex", str(MANY + 1))
    assert rows(page).count() <= FEW
    assert page.evaluate(CHECK) == []


def test_who_opens_a_job_and_comes_back_is_where_they_were(signed_in: Opens):
    page = at_the_end(signed_in("/jobs/"))
    expect(row(page, 20)).to_be_attached()
    page.mouse.wheel(0, -400)
    link = row(page, 8).get_by_role("link", name="job-00008")
    expect(link).to_be_in_viewport()
    link.evaluate("(one) => one.scrollIntoView({ block: 'center', behavior: 'instant' })")
    page.wait_for_function("() => history.state?.place")
    place = link.bounding_box()

    link.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("job-00008")
    page.go_back()

    expect(link).to_be_in_viewport()
    there = link.bounding_box()
    assert place is not None
    assert there is not None
    assert abs(there["y"] - place["y"]) < 3


def test_ticks_are_kept_when_their_rows_leave_the_document(signed_in: Opens):
    page = is_scrolled(signed_in("/jobs/"))
    row(page, JOBS - 1).get_by_role("checkbox").check()
    page.locator("#content").focus()  # the row that has the focus would stay
    at_the_end(page)
    expect(row(page, JOBS - 1)).to_have_count(0)
    row(page, 3).get_by_role("checkbox").check()
    expect(page.locator("[data-picked]")).to_have_text("2 chosen")

    page.evaluate("() => scrollTo({ top: 0, behavior: 'instant' })")
    expect(row(page, JOBS - 1).get_by_role("checkbox")).to_be_checked()
    page.get_by_role("button", name="Suspend…").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("Suspend 2 of 2 jobs?")


def test_a_new_job_comes_on_top_and_moves_nobody_below(signed_in: Opens, act: Acts):
    page = is_scrolled(signed_in("/jobs/"))
    far = at_the_end(signed_in("/jobs/"))
    place = row(far, 3).bounding_box()

    act(_submit_one)

    expect(rows(page).first).to_have_attribute("data-key", "default/newest")
    expect(page.locator(".long-list")).to_have_attribute("aria-rowcount", str(JOBS + 2))
    assert row(far, 3).bounding_box() == place


def test_ticks_are_kept_when_news_push_their_rows_down(signed_in: Opens, act: Acts):
    """The last row of the page becomes the first of the next."""
    page = is_scrolled(signed_in("/jobs/"))
    last = row(page, JOBS - 50).get_by_role("checkbox")
    last.check()
    page.locator("#content").focus()

    act(_submit_one)

    expect(rows(page).first).to_have_attribute("data-key", "default/newest")
    expect(page.locator("[data-picked]")).to_have_text("1 chosen")
    expect(last).to_be_checked()


def _submit_one() -> None:
    add_gang("batch", "newest", phase="Pending")
    notify.jobs_changed(["default/newest"])


def test_the_filter_looks_through_all_of_them(signed_in: Opens):
    page = is_scrolled(signed_in("/jobs/"))
    page.keyboard.press("/")
    page.keyboard.type("name:job-0000*")
    page.keyboard.press("Enter")

    expect(page).to_have_url(re.compile("job-0000"))
    expect(rows(page)).to_have_count(10)
    expect(page.locator(".long-list")).to_have_count(0)


def test_keys_go_to_the_end_and_from_row_to_row(signed_in: Opens):
    page = is_scrolled(signed_in("/jobs/"))
    page.locator("#content").focus()
    page.keyboard.press("End")
    expect(row(page, 3)).to_be_attached()
    link = row(page, 3).get_by_role("link", name="job-00003")
    link.focus()
    for _ in range(2):  # the queue of this job, the tick of the next
        page.keyboard.press("Tab")

    expect(row(page, 2).get_by_role("checkbox")).to_be_focused()


def test_oldest_first_is_scrolled_the_other_way(signed_in: Opens):
    page = is_scrolled(signed_in("/jobs/?sort=oldest"))
    page.evaluate(TO_THE_END)

    expect(row(page, JOBS - 1)).to_be_attached()
    expect(row(page, JOBS - 1)).to_have_attribute("aria-rowindex", str(JOBS + 1))


def test_without_javascript_it_is_pages(signed_in: Opens):
    page = signed_in("/jobs/", java_script_enabled=False)

    page.get_by_role("link", name="Further").click()

    expect(rows(page)).to_have_count(50)
    expect(rows(page).first).to_have_attribute("data-key", f"default/job-{JOBS - 51:05d}")


def test_on_paper_there_are_the_jobs_near_the_window_and_no_empty_sheets(signed_in: Opens):
    page = signed_in("/jobs/")
    expect(page.locator(".long-list-note")).to_contain_text("1\u2009000 jobs")

    page.emulate_media(media="print")

    expect(page.locator(".on-paper")).to_have_text(
        "Printed are the jobs near the window. Filter the list to print others."
    )
    printed = rows(page).count()
    assert printed < FEW
    assert page.evaluate("document.querySelectorAll('tr[data-room]').length") > 0
    table = page.locator(".job-table").bounding_box()
    assert table["height"] < printed * 120
