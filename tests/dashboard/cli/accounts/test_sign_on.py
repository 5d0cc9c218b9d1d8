"""vcctl sign-on, and a login with a second factor."""

from __future__ import annotations

import contextlib
import re
import time

import pytest
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.contrib.auth import get_user_model

from dashboard.cli.accounts import login
from dashboard.cli.accounts.login import token_with_password
from dashboard.cli.problems import Problem
from dashboard.cli.target import Target
from dashboard.sso import codes
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.demo.setup import ensure_builtin_objects
from tests.dashboard.cli.conftest import Type
from tests.dashboard.sample import PASSWORD


def test_groups_are_mapped_listed_and_unmapped(vcctl: Type):
    said = vcctl("vcctl sign-on map authors --role submitter --queue default")
    again = vcctl("vcctl sign-on map authors --role submitter --queue default")
    listed = vcctl("vcctl sign-on list")
    wrong = vcctl("vcctl sign-on map authors --role emperor")
    gone = vcctl("vcctl sign-on unmap authors --role submitter --queue default")

    assert "The group authors is submitter on default and below." in said.out
    assert again.code == 0
    assert "authors" in listed.out
    assert "“emperor” is not a role (--role)." in wrong.err
    assert "The mapping was deleted." in gone.out
    assert vcctl("vcctl sign-on unmap authors").code == 3


def test_a_login_asks_for_the_code_of_a_second_factor(server: str, monkeypatch: pytest.MonkeyPatch):
    ensure_builtin_objects()
    ann = get_user_model().objects.create_user("ann", password=PASSWORD)
    secret = codes.new_secret()
    first = hotp_value(secret, int(time.time()) // 30)
    recovery = codes.add_second_factor(ann, secret, format_hotp_value(first), by=SYSTEM)
    assert recovery is not None
    target = Target(server, "", "", False, 30.0, "a test")

    monkeypatch.setattr("getpass.getpass", lambda _prompt: "000000")
    with pytest.raises(Problem, match="did not accept the code"):
        token_with_password(target, "ann", PASSWORD)
    monkeypatch.setattr("getpass.getpass", lambda _prompt: recovery[0])

    assert token_with_password(target, "ann", PASSWORD).startswith("fum_")


class TestALoginThatIsRefused:
    @pytest.fixture
    def target(self, server: str) -> Target:
        ensure_builtin_objects()
        get_user_model().objects.create_user("ann", password=PASSWORD)
        return Target(server, "", "", False, 30.0, "a test")

    def test_a_wrong_password_is_named_as_that(self, target: Target):
        with pytest.raises(Problem, match="did not accept the password of ann"):
            token_with_password(target, "ann", "wrong")

    def test_a_form_that_the_server_does_not_take_is_not_blamed_on_the_password(
        self, target: Target, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(login, "_CSRF", re.compile('name="(csrfmiddlewaretoken)"'))

        with pytest.raises(Problem, match="the password was not looked at") as refused:
            token_with_password(target, "ann", PASSWORD)

        assert "CSRF_TRUSTED_ORIGINS" in str(refused.value)

    def test_who_tried_too_many_passwords_is_told_to_wait(self, target: Target):
        for _ in range(10):
            with contextlib.suppress(Problem):
                token_with_password(target, "ann", "wrong")

        with pytest.raises(Problem, match="lets nobody try more passwords for ann now"):
            token_with_password(target, "ann", PASSWORD)
