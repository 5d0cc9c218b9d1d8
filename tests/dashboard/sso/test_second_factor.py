"""A code after the password: at the one page that takes passwords, and round no other door."""

from __future__ import annotations

from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.contrib.auth import authenticate
from django.contrib.auth.hashers import make_password
from django.test import Client, RequestFactory

from dashboard.sso import codes
from scheduler.models import AuditEntry, SecondFactor
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.accounts.tokens import create_token
from scheduler.services.demo.setup import ensure_builtin_objects
from tests.dashboard.sample import PASSWORD, add_user
from tests.dashboard.sso.provider import Provider
from tests.dashboard.sso.walking import sign_on
from tests.dashboard.work import text

SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"


def code_at(moment: float, secret: str = SECRET) -> str:
    return str(format_hotp_value(hotp_value(secret, int(moment) // 30)))


@pytest.fixture
def clock(time_machine_at: Any) -> Any:
    return time_machine_at


@pytest.fixture
def time_machine_at() -> Any:
    import time_machine

    with time_machine.travel(1_800_000_000, tick=False) as traveller:
        yield traveller


@pytest.fixture
def ann(db: None, clock: Any) -> Any:
    """With a second factor; the code of this moment is used up."""
    ensure_builtin_objects()
    ann = add_user("ann", hashed=make_password(PASSWORD))
    ann.recovery = codes.add_second_factor(ann, SECRET, code_at(1_800_000_000), by=SYSTEM)
    clock.shift(60)
    return ann


def first_step(client: Client) -> Any:
    form = {"username": "ann", "password": PASSWORD, "next": "/queues/"}
    return client.post("/accounts/login/", form)


def is_in(client: Client) -> bool:
    return client.get("/queues/").status_code == 200


def test_the_password_alone_does_not_sign_in(client: Client, ann: Any):
    assert first_step(client)["Location"] == "/accounts/code/"
    assert not is_in(client)


def test_the_code_does(client: Client, ann: Any):
    first_step(client)

    answer = client.post("/accounts/code/", {"code": code_at(1_800_000_060)})

    assert answer["Location"] == "/queues/"
    assert is_in(client)


def test_a_code_counts_once(client: Client, ann: Any):
    for browser in (client, Client()):
        first_step(browser)
        browser.post("/accounts/code/", {"code": code_at(1_800_000_060)})

    assert is_in(client)
    assert not is_in(browser)


def test_nor_does_one_from_before_the_last(client: Client, ann: Any):
    first_step(client)
    client.post("/accounts/code/", {"code": code_at(1_800_000_090)})
    late = Client()
    first_step(late)

    answer = late.post("/accounts/code/", {"code": code_at(1_800_000_060)})

    assert is_in(client)
    assert answer.status_code == 400


def test_a_recovery_code_counts_once(client: Client, ann: Any):
    answers = []
    for code in (ann.recovery[0], ann.recovery[1], ann.recovery[0]):
        browser = Client()
        first_step(browser)
        answers.append(browser.post("/accounts/code/", {"code": code}).status_code)

    assert answers == [302, 302, 400]


def test_wrong_codes_lock_like_wrong_passwords(client: Client, ann: Any, settings: Any):
    settings.AXES_FAILURE_LIMIT = 3
    first_step(client)
    answers = [client.post("/accounts/code/", {"code": "000000"}).status_code for _ in range(4)]

    assert answers == [400, 400, 429, 429]
    right = client.post("/accounts/code/", {"code": code_at(1_800_000_060)})
    assert right.status_code == 429


def test_without_the_first_step_or_too_late_there_is_no_second(
    client: Client, ann: Any, clock: Any
):
    assert client.get("/accounts/code/")["Location"] == "/accounts/login/"
    first_step(client)
    clock.shift(301)

    answer = client.post("/accounts/code/", {"code": code_at(1_800_000_361)})

    assert answer["Location"] == "/accounts/login/"


def test_a_password_that_changed_meanwhile_ends_the_first_step(client: Client, ann: Any):
    first_step(client)
    ann.set_password("another long password")
    ann.save()

    assert client.get("/accounts/code/")["Location"] == "/accounts/login/"


def test_the_tables_of_django_have_no_door_of_their_own(client: Client, ann: Any):
    ann.is_superuser = ann.is_staff = True
    ann.save()

    answer = client.post("/admin/login/", {"username": "ann", "password": PASSWORD})

    assert answer["Location"].startswith("/accounts/login/")
    assert not is_in(client)


def test_whatever_else_asks_with_a_password_is_refused(ann: Any):
    request = RequestFactory().post("/anything")

    assert authenticate(request, username="ann", password=PASSWORD) is None


@pytest.mark.parametrize("path", ["/api/v1/users/~/", "/api/schema/", "/api/docs/"])
def test_the_api_takes_no_password(client: Client, ann: Any, path: str):
    import base64

    basic = base64.b64encode(f"ann:{PASSWORD}".encode()).decode()
    answer = client.get(path, headers={"Authorization": f"Basic {basic}"})

    assert answer.status_code == 401


def test_tokens_go_on_working(client: Client, ann: Any):
    secret = create_token(ann, "t", ["read"], by=SYSTEM).secret

    answer = client.get("/api/v1/users/~/", headers={"Authorization": f"Bearer {secret}"})

    assert answer.json()["status"]["secondFactor"] is True


def test_a_sign_on_asks_for_it_too(client: Client, ann: Any, provider: Provider, clock: Any):
    from django.utils import timezone

    from scheduler.models import Identity

    Identity.objects.create(
        user=ann, issuer=provider.issuer, subject="1", signed_on_at=timezone.now()
    )

    assert sign_on(client)["Location"] == "/accounts/code/"
    client.post("/accounts/code/", {"code": code_at(1_800_000_060)})
    assert is_in(client)
    assert "id_token" in client.session["sign_on"]


def test_without_the_packages_the_account_stays_closed(client: Client, ann: Any, settings: Any):
    settings.HAS_SIGN_ON_PACKAGES = False

    answer = first_step(client)

    assert answer.status_code == 503
    assert "requirements-sso.txt" in text(answer)


def test_secrets_are_not_kept_in_the_clear(ann: Any):
    assert SECRET not in str(list(Authenticator.objects.values_list("data", flat=True)))


def test_a_changed_key_of_the_site_accepts_nothing(client: Client, ann: Any, settings: Any):
    settings.SECRET_KEY = "another key" * 5
    first_step(client)

    assert client.post("/accounts/code/", {"code": ann.recovery[0]}).status_code == 400


# Set up and taken away


def test_it_is_set_up_with_a_code_and_the_password(client: Client, db: None, clock: Any):
    ensure_builtin_objects()
    user = add_user("ben", hashed=make_password(PASSWORD))
    client.force_login(user)
    page = client.get("/account/second-factor/")
    code = code_at(1_800_000_000, page.context["secret"])

    assert client.post("/account/second-factor/", {"code": "1"}).status_code == 400
    wrong = client.post("/account/second-factor/", {"code": code, "password": "no"})
    assert wrong.status_code == 400
    done = client.post("/account/second-factor/", {"code": code, "password": PASSWORD})

    assert len(done.context["codes"]) == 10
    assert SecondFactor.objects.filter(user=user).exists()
    assert AuditEntry.objects.filter(action="AddSecondFactor", name="ben").exists()


def test_it_is_taken_away_with_a_code(client: Client, ann: Any):
    client.force_login(ann)

    assert client.post("/account/second-factor/", {"code": "1"}).status_code == 400
    client.post("/account/second-factor/", {"code": code_at(1_800_000_060), "do": "remove"})

    assert not SecondFactor.objects.exists()
    assert not Authenticator.objects.exists()


def test_new_recovery_codes_end_the_old(client: Client, ann: Any):
    client.force_login(ann)

    answer = client.post("/account/second-factor/", {"code": code_at(1_800_000_060), "do": "renew"})

    assert set(answer.context["codes"]).isdisjoint(ann.recovery)


def test_an_admin_takes_it_away_for_who_lost_it(client: Client, ann: Any):
    from django.contrib.auth import get_user_model

    client.force_login(get_user_model().objects.create_superuser("admin"))
    assert "Remove the second factor" in text(client.get("/users/ann/"))

    client.post("/users/ann/second-factor/")

    assert not SecondFactor.objects.exists()
    entry = AuditEntry.objects.get(action="RemoveSecondFactor")
    assert (entry.actor, entry.name) == ("admin", "ann")


def test_nobody_else_does(client: Client, ann: Any):
    client.force_login(add_user("eve"))

    assert client.post("/users/ann/second-factor/").status_code == 403
    assert SecondFactor.objects.exists()
