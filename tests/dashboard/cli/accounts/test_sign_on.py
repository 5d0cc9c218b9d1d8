"""vcctl sign-on, and a login with a second factor."""

from __future__ import annotations

import time

import pytest
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.contrib.auth import get_user_model

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
