"""Jobs, nodes, records, policy and accounts in a real browser, as admin, queue admin, submitter and
viewer; two browsers where it is live.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from channels.layers import channel_layers
from playwright.sync_api import Page, expect

from scheduler.models import Job
from scheduler.services.jobs.bulk import carry_out_bulk_runs
from scheduler.services.jobs.submit import command_job
from tests.browser.server import ConsoleServer
from tests.browser.test_manners import violations
from tests.dashboard.conftest import RedisServer
from tests.dashboard.work import small_cluster, submitted

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Opens = Callable[..., Page]
Acts = Callable[..., Any]


@pytest.fixture
def console(
    transactional_db: None,
    console_process: ConsoleServer,
    browser_redis: RedisServer,
    act: Acts,
    settings: Any,
) -> ConsoleServer:
    """The server with a small cluster at work and four people."""
    settings.REDIS_URL = browser_redis.url
    layer = {"BACKEND": "dashboard.live.layer.NewsLayer", "CONFIG": {"hosts": [browser_redis.url]}}
    settings.CHANNEL_LAYERS = {"default": layer}
    channel_layers.backends.clear()
    act(small_cluster)
    return console_process


def row(page: Page, key: str) -> Any:
    return page.locator(f'tr[data-key="{key}"]')


def is_live(page: Page) -> None:
    expect(page.locator("#pill")).to_have_text("Live")


class TestJobs:
    def test_a_filter_becomes_chips_that_can_be_taken_off(self, signed_in: Opens):
        page = signed_in("/jobs/")
        page.get_by_role("searchbox").fill("user:sam state:running")
        page.get_by_role("searchbox").press("Enter")

        expect(page.locator(".job-table tbody tr")).to_have_count(1)
        page.get_by_role("link", name="Remove state:running").click()
        expect(page.locator(".job-table tbody tr")).to_have_count(2)

    def test_what_is_mistyped_is_told(self, signed_in: Opens):
        page = signed_in("/jobs/")
        page.goto("/jobs/?q=gpus%3E8")

        expect(page.get_by_role("alert")).to_contain_text("There is no field “gpus”")

    def test_a_new_job_appears_by_itself_and_ticks_stay(self, signed_in: Opens, act: Acts):
        page = signed_in("/jobs/")
        is_live(page)
        row(page, "default/label").get_by_role("checkbox").check()

        act(submitted, "brand-new", "batch", "bert")

        expect(row(page, "default/brand-new")).to_be_visible()
        expect(row(page, "default/label").get_by_role("checkbox")).to_be_checked()

    def test_who_sees_one_queue_is_told_as_soon(self, signed_in: Opens, act: Acts):
        """No session runs here: it is the news of the job itself that brings it."""
        page = signed_in("/jobs/", "sam")
        is_live(page)

        act(submitted, "brand-new", "vision", "sam")
        expect(row(page, "default/brand-new")).to_be_visible()
        page.goto("/jobs/default/brand-new/")
        is_live(page)
        act(command_job, "default", "brand-new", "Cancel")

        expect(page.locator(".queue-head .phase")).to_have_text("Terminated")

    def test_an_action_on_many_has_a_page_that_can_be_left_and_found_again(
        self,
        signed_in: Opens,
        act: Acts,
    ):
        page = signed_in("/jobs/", "sam")
        page.get_by_label("this page").check()
        page.get_by_role("button", name="Suspend…").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Suspend 2 of 2 jobs?")
        page.get_by_label("Reason").fill("holiday")
        page.get_by_role("button", name="Suspend 2 jobs").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Suspend: 0 of 2 done")

        page.goto("/jobs/")
        page.get_by_role("link", name="See how far it is").click()
        act(carry_out_bulk_runs)

        expect(page.get_by_role("heading", level=1)).to_have_text("Suspend: 2 of 2 done")
        expect(row(page, "default/train-1")).to_contain_text("suspended")

    def test_a_viewer_can_choose_nothing(self, signed_in: Opens):
        page = signed_in("/jobs/", "vera")

        expect(page.locator(".job-table tbody tr")).to_have_count(2)
        expect(page.locator('input[name="job"]:enabled')).to_have_count(0)
        expect(page.get_by_role("link", name="Submit a job")).to_have_count(0)

    def test_views_and_columns_are_kept(self, signed_in: Opens):
        page = signed_in("/jobs/", "sam")
        page.goto("/jobs/?q=state:running")
        page.get_by_text("Views").click()
        page.get_by_label("Save this view as").fill("running now")
        page.get_by_label("share it with everybody").check()
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_text("The view “running now” is kept")).to_be_visible()
        page.get_by_text("Columns").click()
        page.locator(".menu-body").get_by_label("Priority").check()
        page.get_by_role("button", name="Show these").click()
        expect(page.get_by_role("columnheader", name="Priority")).to_be_visible()

        other = signed_in("/jobs/", "vera")
        other.get_by_text("Views").click()
        other.get_by_role("link", name=re.compile("running now")).click()
        expect(other.locator(".job-table tbody tr")).to_have_count(1)

    def test_without_javascript_the_table_works(self, signed_in: Opens):
        page = signed_in("/jobs/", java_script_enabled=False)
        row(page, "default/train-1").get_by_role("checkbox").check()
        page.get_by_role("button", name="Cancel…").click()

        expect(page.get_by_role("heading", level=1)).to_have_text("Cancel 1 of 1 job?")


class TestSubmit:
    def test_check_then_submit(self, signed_in: Opens):
        page = signed_in("/jobs/-/new/", "sam")
        page.get_by_label("Name", exact=True).fill("fresh")
        page.get_by_label("Pods").fill("40")
        page.get_by_label("Needed to start").fill("40")
        page.get_by_role("button", name="Check").click()
        expect(page.locator("#verdict")).to_contain_text("Can never run")
        expect(page.locator("#verdict")).to_contain_text("ExceedsCapability")

        page.get_by_label("Pods").fill("1")
        page.get_by_label("Needed to start").fill("1")
        page.get_by_role("button", name="Check").click()
        expect(page.locator("#verdict")).to_contain_text("Starts now")
        expect(page.get_by_label("Name", exact=True)).to_have_value("fresh")
        page.get_by_role("button", name="Submit").click()

        expect(page.get_by_role("heading", level=1)).to_have_text("fresh")

    def test_the_form_turns_into_yaml_and_back(self, signed_in: Opens):
        page = signed_in("/jobs/-/new/", "sam")
        page.get_by_label("Name", exact=True).fill("fresh")
        page.get_by_role("button", name="YAML").click()
        expect(page.locator("#yaml")).to_contain_text("name: fresh")

        page.get_by_role("button", name="Form").click()

        expect(page.get_by_label("Name", exact=True)).to_have_value("fresh")

    def test_a_clone_is_begun_from_the_jobs_page(self, signed_in: Opens):
        page = signed_in("/jobs/default/train-1/", "sam")
        page.get_by_role("link", name="Clone").click()

        expect(page.locator("form[data-check]")).to_be_visible()
        assert "train-3" in page.locator("#name, #yaml").first.input_value()

    def test_a_viewer_is_told_whom_to_ask(self, signed_in: Opens):
        page = signed_in("/jobs/-/new/", "vera")

        expect(page.get_by_text("Ask an admin of a queue for the role “submitter”")).to_be_visible()


class TestJob:
    def test_the_reason_stands_on_top_and_goes_when_it_is_untrue(self, signed_in: Opens, act: Acts):
        page = signed_in("/jobs/default/train-2/")
        is_live(page)
        expect(page.get_by_role("region", name="Why it waits")).to_contain_text(
            re.compile(r"in session\s+\d+")
        )
        page.get_by_text(re.compile(r"All \d+ checks")).click()
        expect(page.get_by_role("region", name="Checks")).to_contain_text("short")

        act(command_job, "default", "train-2", "Cancel")

        expect(page.get_by_role("region", name="Why it waits")).to_have_count(0)
        expect(page.locator(".queue-head .phase")).to_have_text("Terminated")

    def test_the_gang_has_its_marker_and_its_elastic_part_apart(self, signed_in: Opens):
        page = signed_in("/jobs/default/train-1/")

        expect(page.locator(".members:not(.elastic) li")).to_have_count(2)
        expect(page.locator(".members.elastic li")).to_have_count(2)
        expect(page.locator(".marker")).to_have_text("2 needed")

    def test_the_owner_suspends_in_a_dialog_and_the_other_browser_sees_it(self, signed_in: Opens):
        watching = signed_in("/jobs/default/train-1/", "admin")
        is_live(watching)
        page = signed_in("/jobs/default/train-1/", "sam")
        page.get_by_role("link", name="Suspend…").click()
        page.locator("#dialog").get_by_label("Reason").fill("not now")
        page.locator("#dialog").get_by_role("button", name="Suspend train-1").click()

        expect(page.locator(".queue-head .phase")).to_have_text(re.compile("Abort"))
        expect(watching.locator(".queue-head .phase")).to_have_text(re.compile("Abort"))
        watching.locator(".tabs").get_by_role("link", name="Timeline").click()
        expect(watching.locator(".timeline")).to_contain_text("Reason: not now")

    def test_a_viewer_has_no_buttons_and_is_told_whom_to_ask(self, signed_in: Opens):
        page = signed_in("/jobs/default/train-1/", "vera")

        expect(page.get_by_role("link", name="Suspend…")).to_have_count(0)
        expect(page.get_by_text("Ask sam, or an operator of vision")).to_be_visible()


class TestNodes:
    def test_a_drain_says_whom_it_evicts_and_both_browsers_see_it(self, signed_in: Opens):
        watching = signed_in("/nodes/", "vera")
        is_live(watching)
        page = signed_in("/nodes/n1/")
        page.get_by_role("link", name="Drain…").click()
        expect(page.locator("#dialog")).to_contain_text("pods evicted")
        page.locator("#dialog").get_by_role("button", name="Drain n1").click()

        expect(page.get_by_text("n1 is cordoned, with 8 pods told to leave")).to_be_visible()
        expect(row(watching, "n1")).to_contain_text("Cordoned")

    def test_the_map_leads_to_the_node(self, signed_in: Opens):
        page = signed_in("/nodes/", "sam")
        page.get_by_role("link", name="Map", exact=True).click()
        page.get_by_role("link", name=re.compile("n2")).click()

        expect(page.get_by_role("heading", level=1)).to_have_text("n2")
        expect(page.get_by_role("link", name="Drain…")).to_have_count(0)


class TestRecordsAndPolicy:
    def test_pausing_is_seen_everywhere_at_once(self, signed_in: Opens):
        watching = signed_in("/jobs/", "sam")
        is_live(watching)
        page = signed_in("/sessions/")
        page.get_by_role("link", name="Pause scheduling…").click()
        page.locator("#dialog").get_by_label("Reason").fill("change window")
        page.locator("#dialog").get_by_role("button", name="Pause scheduling").click()
        expect(
            watching.get_by_text("Scheduling is paused by admin: “change window”")
        ).to_be_visible()

        page.get_by_role("link", name="Resume scheduling…").click()
        page.locator("#dialog").get_by_role("button", name="Resume scheduling").click()
        expect(watching.get_by_text("Scheduling is paused")).to_have_count(0)

    def test_durations_are_drawn_and_a_session_is_saved(self, signed_in: Opens):
        page = signed_in("/sessions/")
        expect(page.locator("[data-durations] canvas")).to_be_visible()
        with page.expect_download() as download:
            page.get_by_role("link", name="save").first.click()

        assert download.value.suggested_filename.startswith("session-")

    def test_the_record_says_what_changed(self, signed_in: Opens, act: Acts):
        page = signed_in("/nodes/n2/")
        page.get_by_role("link", name="Cordon…").click()
        page.locator("#dialog").get_by_label("Reason").fill("dust")
        page.locator("#dialog").get_by_role("button", name="Cordon n2").click()
        expect(page.get_by_text("Cordoned:")).to_be_visible()

        page.goto("/audit/?q=dust")
        expect(page.locator(".audit-table")).to_contain_text("unschedulable")
        page.locator(".audit-table tbody tr").first.get_by_role("link").first.click()
        expect(page.locator("ins")).to_have_text("yes")

    def test_events_come_in_by_themselves(self, signed_in: Opens, act: Acts):
        page = signed_in("/activity/")
        is_live(page)

        act(command_job, "default", "nightly", "Cancel")

        expect(page.locator(".feed")).to_contain_text("cancelled on request")

    def test_a_policy_is_checked_in_place_and_kept(self, signed_in: Opens):
        page = signed_in("/policy/")
        editor = page.locator("#text")
        good = editor.input_value()
        editor.fill(good.replace("allocate", "dance"))
        page.get_by_role("button", name="Check").click()
        expect(page.locator("#verdict")).to_contain_text("This policy cannot be used")
        expect(page.locator("#verdict")).to_contain_text("dance")

        editor.fill(good.replace(", backfill", ""))
        page.get_by_role("button", name="Check").click()
        expect(page.locator("#verdict .diff-removed")).to_have_count(1)
        page.get_by_role("button", name="Apply policy").click()
        expect(page.get_by_text("applied. The next session follows it.")).to_be_visible()


class TestAccounts:
    def test_a_token_is_shown_once(self, signed_in: Opens):
        page = signed_in("/account/", "vera")
        page.get_by_label("New token for").fill("notebook")
        page.get_by_role("button", name="Create token").click()
        expect(page.locator("#new-token")).to_contain_text("fum_")

        page.goto("/account/")
        expect(page.locator("#new-token")).to_have_count(0)
        page.get_by_role("button", name="Revoke the token notebook").click()
        expect(page.get_by_text("is revoked")).to_be_visible()

    def test_a_queue_admin_makes_a_viewer_a_submitter(self, signed_in: Opens):
        page = signed_in("/users/-/grants/", "ruth")
        page.goto("/users/-/grants/?queue=vision")
        expect(page.get_by_text("inherited from")).to_be_visible()
        page.get_by_label("To", exact=True).select_option("user:vera")
        page.get_by_label("submitter").check()
        page.get_by_role("button", name="Grant", exact=True).click()
        expect(page.get_by_text("vera is submitter on vision and below.")).to_be_visible()

        other = signed_in("/jobs/-/new/", "vera")
        expect(other.locator(".choice")).to_have_count(1)

    def test_the_time_zone_counts_on_every_page(self, signed_in: Opens):
        page = signed_in("/account/", "sam", timezone_id="Europe/Berlin")
        page.get_by_label("Time zone").select_option("Pacific/Kiritimati")
        page.locator("form", has=page.get_by_label("Time zone")).get_by_role(
            "button", name="Save"
        ).click()
        page.goto("/sessions/")

        told, exact = page.evaluate(
            "() => { const t = document.querySelector('time[data-moment]'); return "
            "[t.textContent, t.dateTime]; }"
        )
        hour = (int(exact[11:13]) + 14) % 24
        assert re.search(rf"\b{hour:02}:\d\d(:\d\d)? GMT\+14$", told)


PAGES = [
    "/jobs/",
    "/jobs/?q=state:waiting+colour:red",
    "/jobs/default/train-1/",
    "/jobs/default/train-2/",
    "/jobs/default/train-2/timeline/",
    "/jobs/default/train-1/events/",
    "/jobs/default/train-1/evictions/",
    "/jobs/default/train-1/yaml/",
    "/jobs/default/train-1/cancel/",
    "/jobs/-/new/",
    "/jobs/-/new/?as=yaml",
    "/jobs/-/bulk/?action=cancel&all=1",
    "/nodes/",
    "/nodes/?view=map",
    "/nodes/n1/",
    "/nodes/n1/drain/",
    "/sessions/",
    "/sessions/1/",
    "/sessions/-/pause/",
    "/activity/",
    "/audit/",
    "/policy/",
    "/account/",
    "/users/",
    "/users/sam/",
    "/users/-/new/",
    "/users/-/grants/",
]


def test_axe_finds_nothing(signed_in: Opens):
    page = signed_in("/jobs/", reduced_motion="reduce")
    found: dict[str, list[str]] = {}
    for path in PAGES:
        page.goto(path)
        is_live(page)
        if problems := violations(page):
            found[path] = problems

    assert found == {}


def test_jobs_are_as_they_were_left(act: Acts, console: ConsoleServer):
    """The fixture itself: without it each test above would prove less than it says."""
    assert act(lambda: dict(Job.objects.values_list("name", "phase"))) == {
        "train-1": "Running",
        "train-2": "Pending",
        "label": "Running",
        "nightly": "Running",
    }
