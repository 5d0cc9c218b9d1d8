"""The first start: what an installation begins with, whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from scheduler.models import Node, Queue
from scheduler.services.demo import sample
from scheduler.services.demo.setup import first_start

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def own_folder(settings: Any, tmp_path: Path) -> Path:
    settings.VAR_DIR = tmp_path
    return tmp_path


def test_the_first_start_makes_an_administrator_and_a_cluster_and_the_second_nothing(
    own_folder: Path,
):
    made = first_start()

    assert made.password_file == own_folder / "admin-password"
    password = made.password_file.read_text().strip()
    assert get_user_model().objects.get().check_password(password)
    assert (own_folder / "admin-password").stat().st_mode & 0o777 == 0o600
    assert (Node.objects.count(), Queue.objects.count()) == (40, 13)
    assert first_start().password_file is None


def test_without_the_demo_it_starts_empty(settings: Any):
    settings.SCHEDULER = {**settings.SCHEDULER, "demo": False}

    assert first_start().password_file
    assert set(Queue.objects.values_list("name", flat=True)) == {"root", "default"}


def test_a_first_start_that_is_interrupted_begins_anew(monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as killed:
        killed.setattr(sample, "submit_numbers", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            first_start()
    assert not get_user_model().objects.exists()

    assert first_start().sample_loaded


def _interrupted(*_args: object, **_kwargs: object) -> None:
    raise KeyboardInterrupt
