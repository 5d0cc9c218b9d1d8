"""The log of a pod in the browser: followed while it is written, searched, not for all."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from scheduler.models import Pod
from tests.browser.test_forecasts import take_pictures
from tests.worlds import job, node

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Opens = Callable[..., Page]
Acts = Callable[..., Any]
PAGE = "/jobs/default/train/pods/train-worker-0/"


def a_job_runs() -> None:
    place = node("log-node", cpu="8")
    job("train", replicas=1)
    began = timezone.now() - timedelta(seconds=10)
    Pod.objects.update(phase="Running", node=place, started_at=began)


def it_ends() -> None:
    Pod.objects.update(phase="Succeeded", exit_code=0, finished_at=timezone.now())


def test_a_log_is_followed_searched_and_ends_with_its_pod(signed_in: Opens, act: Acts):
    act(a_job_runs)
    page = signed_in(PAGE)
    text = page.locator("#log-text")
    expect(text).to_contain_text("train-worker-0 starts on log-node")

    page.get_by_role("button", name="Follow", exact=True).click()
    expect(page.get_by_text("Following.")).to_be_visible()
    seen = text.inner_text().count("\n")
    page.wait_for_function(
        "seen => document.getElementById('log-text').textContent.split('\\n').length > seen + 3",
        arg=seen,
    )
    lines = [line for line in text.inner_text().splitlines() if line.startswith("step ")]
    assert [int(line.split()[1]) for line in lines] == list(range(1, len(lines) + 1))

    page.get_by_label("Find").fill("STARTS ON")
    expect(page.locator("#log-find [role=status]")).to_have_text("1 of 1")
    take_pictures(page, "pod-log")

    act(it_ends)
    expect(page.locator("#log-words")).to_have_text("train-worker-0 has ended: it succeeded.")
    expect(text).to_contain_text("bye")
    expect(page.get_by_role("button", name="Follow", exact=True)).to_be_visible()


def test_who_may_only_look_has_no_log_and_the_page_needs_no_script(signed_in: Opens, act: Acts):
    act(a_job_runs)

    reader = signed_in(PAGE, name="reader")
    plain = signed_in(PAGE, java_script_enabled=False)

    expect(reader.get_by_text("Operators of the queue and the owner")).to_be_visible()
    expect(reader.locator("#log-text")).to_have_count(0)
    expect(plain.locator("#log-follow")).to_be_hidden()
    plain.get_by_label("times").check()
    plain.get_by_role("button", name="Show").click()
    expect(plain.locator("#log-text")).to_contain_text("Z train-worker-0 starts on log-node")
