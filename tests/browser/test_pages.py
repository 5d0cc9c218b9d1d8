"""Overview, tree and queue page in a real browser: what they say, that they stay true, and that
they lead on.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from playwright.sync_api import Page, expect

from scheduler import notify
from scheduler.models import ClusterState, PodGroup, QueueSample
from tests.dashboard.sample import GPU, add_gang, add_queue

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Opens = Callable[..., Page]
Acts = Callable[..., Any]


def wait_for_quota(name: str) -> None:
    with transaction.atomic():
        PodGroup.objects.filter(name=name).update(
            reason_code="WaitingForQuota", reason_message="Needs 8 GPU at once; 3 short."
        )
        ClusterState.objects.update(
            last_session=F("last_session") + 1, last_session_at=timezone.now()
        )
        notify.session_finished()


class TestOverview:
    def test_it_answers_the_four_questions(self, signed_in: Opens):
        page = signed_in("/")

        expect(page.get_by_role("region", name="Is it healthy?")).to_contain_text(
            "Database answers"
        )
        expect(page.get_by_role("region", name="How full is it?")).to_contain_text("47 of 64 GPU")
        expect(page.get_by_role("region", name="Who is starved?")).to_contain_text("batch")
        expect(page.get_by_role("region", name="What is stuck?")).to_contain_text("train-late")

    def test_what_is_not_known_is_said_to_be_unknown(self, signed_in: Opens):
        page = signed_in("/")

        expect(page.get_by_role("region", name="Is it healthy?")).to_contain_text(
            "No session has run yet"
        )
        expect(page.get_by_role("region", name="Is it healthy?")).to_contain_text(
            "Nodes none known"
        )

    def test_it_stays_true_by_itself_and_leads_to_the_queue(self, signed_in: Opens, act: Acts):
        page = signed_in("/")
        expect(page.locator("#pill")).to_have_text("Live")

        act(wait_for_quota, "train-late")

        expect(page.get_by_role("region", name="What is stuck?")).to_contain_text("3 short.")
        page.get_by_role("region", name="What is stuck?").get_by_role(
            "link", name=re.compile("WaitingForQuota")
        ).click()
        page.wait_for_url("**/jobs/?q=reason:WaitingForQuota")

    def test_a_silent_scheduler_is_told_with_how_long_it_has_been_silent(
        self,
        signed_in: Opens,
        act: Acts,
    ):
        def fall_silent() -> None:
            ClusterState.objects.update(last_session_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
            notify.cluster_changed()

        page = signed_in("/queues/vision/")
        expect(page.locator("#pill")).to_have_text("Live")
        act(fall_silent)

        told = page.locator("#site-banner time[data-since]")
        expect(told).to_have_attribute("datetime", "2026-01-02T03:04:05+00:00")
        expect(told).to_have_attribute("title", re.compile(r"\(2026-01-02T03:04:05\+00:00\)$"))
        expect(told).to_have_text(re.compile(r"^\d+ d$"))
        expect(page.locator("#site-banner")).to_contain_text(
            "(normally every 1 s). Is the scheduler worker running?"
        )

    def test_paused_scheduling_is_told_on_every_page(self, signed_in: Opens, act: Acts):
        def pause() -> None:
            ClusterState.objects.update(paused=True, paused_by="admin", pause_reason="maintenance")
            notify.cluster_changed()

        page = signed_in("/queues/vision/")
        expect(page.locator("#pill")).to_have_text("Live")
        act(pause)

        expect(page.locator("#site-banner")).to_contain_text(
            "Scheduling is paused by admin: “maintenance”"
        )
        expect(page).to_have_title(re.compile(r"^\(1\) "))


class TestTree:
    def test_search_finds_by_name_and_state_and_keeps_the_way_there(self, signed_in: Opens):
        page = signed_in("/queues/")
        expect(page.locator("#pill")).to_have_text("Live")
        page.keyboard.press("/")
        page.keyboard.type("lang")

        expect(page.locator("tbody tr:visible")).to_have_count(3)
        expect(page).to_have_url(re.compile("q=lang"))
        page.get_by_role("searchbox", name="Search queues").fill("state:suspended")
        expect(page.locator("tbody tr:visible")).to_have_count(3)
        page.reload()
        expect(page.locator("tbody tr:visible")).to_have_count(3)

    def test_one_resource_is_shown_with_all_its_figures(self, signed_in: Opens):
        page = signed_in("/queues/")
        page.get_by_role("group", name="Resource").get_by_role("link", name="GPU").click()

        row = page.locator('tr[data-key="language"]')
        figures = {
            "allocated": "30",
            "promised": "0",
            "deserved": "20",
            "guarantee": "8",
            "limit": "64",
            "pending": "20",
        }
        for name, text in figures.items():
            expect(row.locator(f'[data-n="{name}"] [data-v]')).to_have_text(text)

    def test_the_flat_table_sorts(self, signed_in: Opens):
        page = signed_in("/queues/?view=table")
        page.get_by_role("columnheader", name="GPU").get_by_role("link").click()
        page.get_by_role("columnheader", name="GPU").get_by_role("link").click()

        names = page.locator("tbody tr").evaluate_all("rows => rows.map(row => row.dataset.key)")
        assert names[:3] == ["root", "research", "language"]

    def test_the_map_shows_each_queue_and_leads_to_it(self, signed_in: Opens):
        page = signed_in("/queues/?view=map&resource=gpu")

        expect(page.locator(".icicle a")).to_have_count(7)  # default deserves none
        page.locator('.icicle a[data-key="language"]').click()
        page.wait_for_url("**/queues/language/")

    def test_actions_of_a_row_open_without_leaving_the_page(self, signed_in: Opens):
        page = signed_in("/queues/")
        expect(page.locator("#pill")).to_have_text("Live")
        page.get_by_role("link", name="Actions for vision").click()

        expect(page.locator("#dialog").get_by_role("link", name="Suspend…")).to_be_visible()
        expect(page.locator("#dialog")).to_contain_text("vision is already Open.")
        page.keyboard.press("Escape")
        expect(page.locator("#dialog")).to_be_hidden()

    def test_a_thousand_queues_are_patched_quickly_and_none_is_lost(
        self,
        signed_in: Opens,
        act: Acts,
    ):
        def grow() -> None:
            for team in range(10):
                add_queue(f"team-{team}")
                for number in range(20):
                    add_queue(f"team-{team}-{number}", f"team-{team}")
            notify.queues_changed()

        page = signed_in("/queues/")
        expect(page.locator("#pill")).to_have_text("Live")
        act(grow)

        expect(page.locator("tbody tr")).to_have_count(218)
        names = page.locator("tbody tr").evaluate_all("rows => rows.map(row => row.dataset.key)")
        assert names.index("team-3-0") == names.index("team-3") + 1


class TestQueuePage:
    def test_jobs_say_why_they_wait_and_stay_true(self, signed_in: Opens, act: Acts):
        page = signed_in("/queues/language/")
        expect(page.locator("#pill")).to_have_text("Live")
        act(wait_for_quota, "train-late")

        row = page.locator('#tab-jobs tr[data-key="default/train-late"]')
        expect(row).to_contain_text("WaitingForQuota")
        expect(row).to_contain_text("3 short.")
        act(add_gang, "language", "another", phase="Pending")
        act(notify.jobs_changed)
        expect(page.locator('#tab-jobs tr[data-key="default/another"]')).to_be_visible()

    def test_a_parent_shows_its_children_first_and_how_its_share_is_divided(self, signed_in: Opens):
        page = signed_in("/queues/research/")

        expect(page.get_by_role("link", name="Children")).to_have_attribute("aria-current", "page")
        expect(page.locator(".division").first).to_contain_text("language 20 GPU")
        expect(page.locator("#queue-tree tbody tr")).to_have_count(2)

    def test_history_is_drawn(self, signed_in: Opens, act: Acts):
        def sample() -> None:
            now = timezone.now()
            for minute in range(30):
                data = {
                    "allocated": {GPU: 1000 * minute},
                    "deserved": {GPU: 20_000},
                    "guarantee": {},
                    "capability": {},
                    "pending": {},
                    "state": "Open",
                }
                QueueSample.objects.create(
                    queue_name="vision",
                    seconds=0,
                    at=now - timedelta(minutes=minute),
                    data=data,
                )

        act(sample)
        page = signed_in("/queues/vision/history/")

        expect(page.locator("#history canvas")).to_be_visible()
        expect(page.locator("#history")).to_contain_text("Allocated")

    def test_what_is_pending_has_a_scale_of_its_own(self, signed_in: Opens, act: Acts):
        """Many times what the queue has, it would press all other lines to the floor."""

        def sample() -> None:
            now = timezone.now()
            for minute in range(10):
                data = {
                    "allocated": {GPU: 8000},
                    "deserved": {GPU: 20_000},
                    "pending": {GPU: 900_000},
                    "state": "Open",
                }
                QueueSample.objects.create(
                    queue_name="vision",
                    seconds=0,
                    at=now - timedelta(minutes=minute),
                    data=data,
                )

        act(sample)
        page = signed_in("/queues/vision/history/")

        expect(page.locator("#history .u-legend")).to_contain_text("Pending (right)")
        scales = page.locator("#history").evaluate(
            "({ plot }) => ['y', 'pending'].map((name) => plot.scales[name].max)"
        )
        assert scales == [pytest.approx(22), pytest.approx(990)]
        zeros = page.locator("#history").evaluate(
            "({ plot }) => ['y', 'pending'].map((name) => plot.valToPos(0, name))"
        )
        assert zeros[0] == pytest.approx(zeros[1], abs=1)

    def test_without_history_it_says_when_there_will_be_some(self, signed_in: Opens):
        page = signed_in("/queues/vision/history/")

        expect(page.locator("#history")).to_contain_text("Nothing has been collected yet")

    @pytest.mark.parametrize(
        ("tab", "words"),
        [
            ("activity", "Nothing has happened to this queue yet."),
            ("access", "inherited from root"),
            ("yaml", "kind: Queue"),
            ("children", "has no children"),
        ],
    )
    def test_each_tab_is_an_address(self, signed_in: Opens, tab: str, words: str):
        page = signed_in(f"/queues/vision/{tab}/")

        expect(page.locator(f"#tab-{tab}")).to_contain_text(words)
