"""One's own account, users, groups and roles."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

from scheduler.models import (
    ApiToken,
    AuditEntry,
    Grant,
    Preference,
)
from tests.dashboard.work import PASSWORD, signed_in, small_cluster, text

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def test_a_token_is_shown_once():
    client = signed_in("sam")
    made = client.post("/account/tokens/", {"name": "laptop", "scope": "submit", "days": "30"})

    secret = made.context["new"].secret
    assert secret in text(made)
    assert "no-store" in made["Cache-Control"]
    assert secret not in text(client.get("/account/"))
    assert ApiToken.objects.get().scopes == ["submit"]


def test_one_revokes_ones_own_tokens_only():
    signed_in("sam").post("/account/tokens/", {"name": "laptop", "scope": "read", "days": ""})
    token = ApiToken.objects.get()

    signed_in("vera").post(f"/account/tokens/{token.pk}/revoke/")
    assert ApiToken.objects.get().revoked_at is None
    signed_in("sam").post(f"/account/tokens/{token.pk}/revoke/")
    assert ApiToken.objects.get().revoked_at is not None


@pytest.mark.parametrize(
    ("old", "new", "again", "said"),
    [
        ("wrong", "another long one", "another long one", "The old password is not right."),
        (PASSWORD, "short", "short", "too short"),
        (PASSWORD, "another long one", "another wrong one", "The two new passwords differ."),
    ],
)
def test_a_password_is_changed_by_who_knows_the_old_one(old: str, new: str, again: str, said: str):
    answer = signed_in("sam").post("/account/password/", {"old": old, "new": new, "again": again})

    assert said in text(answer)
    assert get_user_model().objects.get(username="sam").check_password(PASSWORD)


def test_a_changed_password_keeps_one_signed_in_and_is_in_the_record():
    client = signed_in("sam")
    client.post(
        "/account/password/",
        {"old": PASSWORD, "new": "another long one", "again": "another long one"},
    )

    assert client.get("/account/").status_code == 200
    assert get_user_model().objects.get(username="sam").check_password("another long one")
    entry = AuditEntry.objects.get(action="ChangePassword")
    assert "another" not in json.dumps([entry.before, entry.after, entry.message])


def test_time_zone_and_theme_are_kept():
    client = signed_in("sam")
    client.post("/account/display/", {"time_zone": "Asia/Tokyo", "theme": "dark"})
    wrong = client.post("/account/display/", {"time_zone": "Mars/Base", "theme": "dark"})

    assert "There is no time zone “Mars/Base”." in text(wrong)
    page = text(client.get("/jobs/"))
    assert 'data-time-zone="Asia/Tokyo"' in page
    assert 'data-theme="dark"' in page
    assert Preference.objects.get().theme == "dark"


def test_a_queue_admin_grants_and_revokes_below_his_queue_only():
    ruth = signed_in("ruth")
    ruth.post("/users/-/grant/", {"who": "user:vera", "role": "submitter", "queue": "language"})
    refused = ruth.post(
        "/users/-/grant/",
        {"who": "user:vera", "role": "admin", "queue": "root"},
        follow=True,
    )

    made = Grant.objects.get(user__username="vera", queue__name="language")
    assert "There is no queue root." in text(refused)  # she may not see it
    assert not Grant.objects.filter(user__username="vera", queue__name="root").exists()
    shown = text(ruth.get("/users/-/grants/", {"queue": "language"}))
    assert "inherited from" in shown  # ruth's own role, from research
    ruth.post(f"/users/-/grants/{made.pk}/revoke/")
    assert not Grant.objects.filter(pk=made.pk).exists()


def test_accounts_are_made_switched_off_and_deleted_by_a_cluster_admin():
    admin = signed_in("admin")
    made = admin.post(
        "/users/-/new/", {"username": "newt", "password": "a fine long one", "active": "1"}
    )
    assert made["Location"] == "/users/newt/"

    admin.post("/users/newt/", {"do": "save", "email": "n@example.com"})
    assert get_user_model().objects.get(username="newt").is_active is False
    admin.post("/users/newt/", {"do": "delete"})
    assert not get_user_model().objects.filter(username="newt").exists()
    assert signed_in("ruth").post("/users/sam/", {"do": "delete"}).status_code == 403


def test_what_another_admin_changed_of_an_account_meanwhile_is_kept():
    admin = signed_in("admin")
    labs = [Group.objects.create(name=name) for name in ("lab-a", "lab-b", "lab-c")]
    sam = get_user_model().objects.get(username="sam")
    sam.groups.set([labs[0]])
    opened = admin.get("/users/sam/").context["opened"]
    get_user_model().objects.filter(username="sam").update(email="new@example.org")
    sam.groups.add(labs[1])

    admin.post(
        "/users/sam/",
        {"do": "save", "opened": opened, "email": "", "active": "1", "groups": ["lab-c"]},
    )

    sam.refresh_from_db()
    assert sam.email == "new@example.org"
    assert sorted(sam.groups.values_list("name", flat=True)) == ["lab-b", "lab-c"]


def test_the_last_admin_can_not_be_deleted():
    answer = signed_in("admin").post("/users/admin/", {"do": "delete"})

    assert "is the last cluster admin" in text(answer)


@pytest.mark.parametrize("given", [{"active": "1"}, {"cluster_admin": "1"}, {}])
def test_the_last_admin_can_neither_switch_himself_off_nor_lay_it_down(given: dict[str, str]):
    answer = signed_in("admin").post("/users/admin/", given)

    admin = get_user_model().objects.get(username="admin")
    assert "is the last cluster admin" in text(answer)
    assert (admin.is_active, admin.is_superuser) == (True, True)


def test_one_of_two_admins_may_lay_it_down():
    get_user_model().objects.filter(username="ruth").update(is_superuser=True)

    signed_in("admin").post("/users/admin/", {"active": "1"})

    assert not get_user_model().objects.get(username="admin").is_superuser


@pytest.mark.parametrize("path", ["/users/", "/users/sam/"])
def test_when_somebody_was_here_and_his_address_are_for_cluster_admins(path: str):
    sam = get_user_model().objects.get(username="sam")
    sam.email = "sam@example.com"
    sam.last_login = sam.date_joined
    sam.save()

    told, kept = (text(signed_in(name).get(path)) for name in ("admin", "ruth"))

    assert "sam@example.com" in told
    assert "ast sign-in" in told
    assert "sam" in kept
    assert "sam@example.com" not in kept
    assert "ast sign-in" not in kept
