"""vcctl in the hands of somebody who may not see others' work: no command names it."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.models import SchedulingSession
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.accounts.tokens import create_token
from tests.dashboard.cli.conftest import typed
from tests.dashboard.test_others_work import SECRET, cluster  # noqa: F401 - a fixture
from tests.dashboard.work import person

pytestmark = pytest.mark.django_db

LINES = (
    "vcctl queue list",
    "vcctl queue tree",
    "vcctl queue view vision",
    "vcctl queue view research",
    "vcctl queue get vision -o yaml",
    "vcctl queue children research",
    "vcctl queue explain research",
    "vcctl queue history vision --commands",
    "vcctl job list --all-namespaces",
    "vcctl job view default/train-1",
    "vcctl job view default/train-2 -o json",
    "vcctl job explain default/train-2",
    "vcctl pod list --all-namespaces",
    "vcctl node list",
    "vcctl session list",
    "vcctl session view {session}",
    "vcctl session view {failed}",
    "vcctl export vision",
    "vcctl audit",
    "vcctl whoami",
    "vcctl api GET evictions/",
    "vcctl api GET events/?page_size=500",
    "vjobs",
    "vqueues",
)


@pytest.mark.parametrize("name", ["sam", "ruth"])
def test_no_command_names_work_that_the_reader_may_not_see(
    server: str,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
):
    numbers = dict(SchedulingSession.objects.order_by("number").values_list("state", "number"))
    monkeypatch.setenv("VCCTL_SERVER", server)
    monkeypatch.setenv("VCCTL_TOKEN", _token(name))

    done = {
        line: typed(line.format(session=numbers["Done"], failed=numbers["Failed"]))
        for line in LINES
    }

    assert {
        line: ended.out + ended.err
        for line, ended in done.items()
        if SECRET in ended.out + ended.err
    } == {}
    assert sum(ended.code == 0 for ended in done.values()) >= len(LINES) - 4, {
        line: ended.err for line, ended in done.items() if ended.code
    }


def _token(name: str) -> Any:
    return create_token(person(name).user, "cli", ["admin"], by=SYSTEM).secret
