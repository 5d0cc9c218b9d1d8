"""READ_ONLY through every door but the API's (see `api/test_any_write.py`): pages, vcctl, webhooks,
tasks of workers, and commands of an admin on the machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.urls import URLPattern, URLResolver, get_resolver

from scheduler import tasks
from scheduler.models import AuditEntry, Job
from tests.dashboard.work import signed_in, small_cluster

pytestmark = pytest.mark.django_db

NOT_PAGES = ("api/", "admin/", "admission/", "metrics", "healthz", "readyz")
SIGNING_ON = ("/accounts/sign-on/", "/accounts/sign-on/back/", "/accounts/code/")
STILL_WORK = ("/accounts/login/", "/accounts/logout/", *SIGNING_ON)
_PLACE = re.compile(r"<(?:(\w+):)?\w+>|\(\?P<\w+>([^)|]+)[^)]*\)")
_EXAMPLES = {"int": "1", "uuid": "6f0c5f0e-0000-4000-8000-000000000000"}


@pytest.fixture(autouse=True)
def read_only(settings: Any) -> None:
    small_cluster()
    settings.READ_ONLY = True


def page_paths() -> list[str]:
    """An address for each route of a page."""
    return [f"/{path}" for path in _paths(get_resolver().url_patterns) if _is_page(path)]


def _is_page(path: str) -> bool:
    return not path.startswith(NOT_PAGES)


def _paths(patterns: list[URLPattern | URLResolver], before: str = "") -> Iterator[str]:
    for pattern in patterns:
        path = before + _PLACE.sub(_example, str(pattern.pattern).strip("^$"))
        if isinstance(pattern, URLPattern):
            yield path
        else:
            yield from _paths(pattern.url_patterns, path)


def _example(place: re.Match[str]) -> str:
    kind, first_word = place.groups()
    if first_word and first_word.isidentifier():
        return first_word
    if first_word and first_word.startswith(("\\d", "[0-9]")):
        return "1"
    return _EXAMPLES.get(kind or "", "x")


def test_nothing_is_taken_from_any_page():
    admin = signed_in("admin")
    before = AuditEntry.objects.count()
    paths = [path for path in page_paths() if path not in STILL_WORK]
    assert len(paths) > 60

    answers = {path: admin.post(path, {"reason": "x"}) for path in paths}
    refused = {path: answer for path, answer in answers.items() if answer.status_code == 503}

    assert {answer.status_code for answer in answers.values()} == {503, 405}  # some only show
    assert len(refused) > 35
    assert all(answer["Retry-After"] for answer in refused.values())
    assert AuditEntry.objects.count() == before


def test_every_page_says_so_and_one_can_sign_out():
    admin = signed_in("admin")

    assert "read-only at the moment" in admin.get("/queues/").content.decode()
    assert admin.post("/accounts/logout/").status_code == 302


def test_webhooks_answer_as_ever_and_save_nothing(client: Any):
    before = Job.objects.count(), AuditEntry.objects.count()
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1",
            "operation": "CREATE",
            "kind": {"group": "scheduling.volcano.sh", "version": "v1beta1", "kind": "Queue"},
            "object": {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "Queue",
                "metadata": {"name": "new"},
                "spec": {},
            },
        },
    }

    answer = client.post("/admission/queues/validate", review, content_type="application/json")

    assert answer.json()["response"]["allowed"] is True
    assert (Job.objects.count(), AuditEntry.objects.count()) == before


def test_workers_submit_no_sample_jobs_and_begin_no_planned_change(
    monkeypatch: pytest.MonkeyPatch, settings: Any
):
    kept: list[str] = []
    monkeypatch.setattr(
        "scheduler.services.change_sets.calendar.keep_calendar", lambda: kept.append("calendar")
    )
    monkeypatch.setattr(
        "scheduler.services.demo.workload.continue_stream", lambda: kept.append("sample jobs")
    )

    for read_only in (True, False):
        settings.READ_ONLY = read_only
        tasks.keep_calendar()
        tasks.generate_work()
        assert kept == ([] if read_only else ["calendar", "sample jobs"])


def test_commands_of_an_admin_change_nothing_either(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "new.yaml"
    file.write_text("kind: Namespace\nmetadata: {name: new}\n")
    said = StringIO()

    call_command("apply", str(file), dry_run=True, stdout=said)
    assert "1 object of 1 changed (dry run)." in said.getvalue()
    for words in (("apply", str(file)), ("workload", "steady"), ("workload", "--stop")):
        with pytest.raises(SystemExit) as ended:
            call_command(*words)
        assert ended.value.code
        assert "is read-only (READ_ONLY=1). Nothing was changed." in capsys.readouterr().err
    call_command("workload", stdout=said)
    assert "Submitting now" in said.getvalue()
