"""A superuser's account is not for admins who are none: nobody becomes one, or takes one over, with
a role alone.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from scheduler.models import ApiToken
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.accounts.grants import grant_role
from scheduler.services.accounts.tokens import create_token
from scheduler.services.demo.setup import ensure_builtin_objects
from tests.dashboard.work import signed_in

pytestmark = pytest.mark.django_db

TAKEOVERS = {
    "password": {"password": "a brand new password"},
    "active": {"isActive": False},
    "demoted": {"isClusterAdmin": False},
    "email": {"email": "mine@example.com"},
    "groups": {"groups": []},
}


@pytest.fixture(autouse=True)
def people(django_user_model: Any) -> None:
    """boss and chief are superusers; anna is admin of root by a role."""
    ensure_builtin_objects()
    for name in ("boss", "chief"):
        django_user_model.objects.create_superuser(name, password="an old password")
    for name in ("anna", "ben"):
        django_user_model.objects.create_user(name, password="an old password")
    grant_role(user="anna", role="admin", queue="root", by=SYSTEM)


def ask(client: Client, method: str, path: str, body: Any = None) -> Any:
    return getattr(client, method)(f"/api/v1/{path}", body or {}, content_type="application/json")


def state_of(django_user_model: Any, name: str) -> tuple[Any, ...]:
    return tuple(
        django_user_model.objects.filter(username=name).values_list(
            "password", "is_active", "is_superuser", "email"
        )
    )


@pytest.mark.parametrize("body", TAKEOVERS.values(), ids=TAKEOVERS)
def test_an_admin_by_role_changes_nothing_of_a_superuser(
    django_user_model: Any, body: dict[str, Any]
):
    before = state_of(django_user_model, "boss")

    answer = ask(signed_in("anna"), "patch", "users/boss/", body)

    assert answer.status_code == 403
    assert "Only a superuser may change the account of a superuser" in answer.json()["detail"]
    assert state_of(django_user_model, "boss") == before


def test_nor_deletes_it_nor_makes_or_revokes_its_tokens():
    boss = ApiToken.objects.create(
        user_id=_pk("boss"),
        name="x",
        prefix="fum_x",
        digest="x",
        scopes=["read"],
    )
    anna = signed_in("anna")

    assert ask(anna, "delete", "users/boss/").status_code == 403
    assert (
        ask(
            anna,
            "post",
            "tokens/",
            {"name": "mine", "scopes": ["admin"], "user": "boss"},
        ).status_code
        == 403
    )
    assert ask(anna, "delete", f"tokens/{boss.pk}/").status_code == 403
    assert ApiToken.objects.filter(user_id=_pk("boss"), revoked_at=None).count() == 1


def _pk(name: str) -> int:
    return int(get_user_model().objects.get(username=name).pk)


@pytest.mark.parametrize("whom", ["anna", "ben"])
def test_nor_makes_anybody_a_superuser(django_user_model: Any, whom: str):
    anna = signed_in("anna")

    assert ask(anna, "patch", f"users/{whom}/", {"isClusterAdmin": True}).status_code == 403
    assert (
        ask(anna, "post", "users/", {"username": "new", "isClusterAdmin": True}).status_code == 403
    )
    assert not django_user_model.objects.get(username=whom).is_superuser
    assert not django_user_model.objects.filter(username="new").exists()


def test_the_pages_hold_to_it_and_offer_nothing_else(django_user_model: Any):
    anna = signed_in("anna")
    before = state_of(django_user_model, "boss")

    page = anna.get("/users/boss/").content.decode()
    changed = anna.post(
        "/users/boss/",
        {"do": "save", "active": "1", "cluster_admin": "1", "password": "a brand new password"},
    )
    deleted = anna.post("/users/boss/", {"do": "delete"})
    promoted = anna.post("/users/anna/", {"do": "save", "active": "1", "cluster_admin": "1"})

    assert 'name="password"' not in page
    assert "only a superuser can change this account" in page
    assert (changed.status_code, deleted.status_code, promoted.status_code) == (403, 403, 403)
    assert state_of(django_user_model, "boss") == before
    assert 'name="cluster_admin"' not in anna.get("/users/ben/").content.decode()


def test_with_a_token_neither():
    user = get_user_model().objects.get(username="anna")
    secret = create_token(user, "mine", ["admin"], by=SYSTEM).secret
    client = Client(headers={"Authorization": f"Bearer {secret}"})

    assert ask(client, "patch", "users/boss/", TAKEOVERS["password"]).status_code == 403


def test_an_admin_by_role_still_manages_the_others(django_user_model: Any):
    anna = signed_in("anna")

    assert (
        ask(
            anna,
            "patch",
            "users/ben/",
            {"password": "a brand new password", "isActive": False},
        ).status_code
        == 200
    )
    assert ask(anna, "post", "users/", {"username": "new"}).status_code == 201
    assert ask(anna, "delete", "users/ben/").status_code == 200


def test_superusers_change_each_other(django_user_model: Any):
    assert (
        ask(signed_in("chief"), "patch", "users/boss/", {"isClusterAdmin": False}).status_code
        == 200
    )
    assert not django_user_model.objects.get(username="boss").is_superuser
