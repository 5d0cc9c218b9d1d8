"""The key of this machine's command line."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from scheduler.models import ApiToken
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.accounts.cli_token import ensure_cli_token
from scheduler.services.accounts.tokens import revoke_token, token_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def key_file(tmp_path: Path, settings: Any) -> Path:
    settings.VAR_DIR = tmp_path
    return tmp_path / "cli-token"


def test_a_start_makes_a_key_of_the_administrator_for_its_owner_only(key_file: Path):
    admin = get_user_model().objects.create_superuser("admin")

    ensure_cli_token()

    assert token_user(key_file.read_text().strip())[0] == admin
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600


def test_a_good_key_stays_at_the_next_start(key_file: Path):
    get_user_model().objects.create_superuser("admin")
    ensure_cli_token()
    before = key_file.read_text()

    ensure_cli_token()

    assert key_file.read_text() == before
    assert ApiToken.objects.count() == 1


def test_a_key_that_was_revoked_or_lost_is_made_anew(key_file: Path):
    get_user_model().objects.create_superuser("admin")
    ensure_cli_token()
    revoke_token(ApiToken.objects.get(), by=SYSTEM)
    before = key_file.read_text()

    ensure_cli_token()
    assert key_file.read_text() != before
    key_file.unlink()
    ensure_cli_token()

    assert token_user(key_file.read_text().strip())
    assert ApiToken.objects.filter(revoked_at=None).count() == 1


def test_without_an_administrator_there_is_no_key(key_file: Path):
    ensure_cli_token()

    assert not key_file.exists()
