"""Tokens: what one may be used for, and that it reaches nothing beyond its scope and its life."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from scheduler.domain.access import Forbidden, ScopeTooNarrow, SignInNeeded
from scheduler.models import ApiToken
from scheduler.services.accounts.actors import SYSTEM, Actor, Door
from scheduler.services.accounts.grants import grant_role
from scheduler.services.accounts.tokens import create_token, revoke_token
from scheduler.services.accounts.users import save_user
from scheduler.services.demo.setup import ensure_builtin_objects

pytestmark = pytest.mark.django_db
SOON = timedelta(hours=1)
LATER = timedelta(days=30)


@pytest.fixture
def boss(django_user_model: Any) -> Any:
    ensure_builtin_objects()
    return django_user_model.objects.create_superuser("boss", password="an old password")


def made(
    user: Any,
    name: str,
    scope: str = "admin",
    lives: timedelta | None = None,
) -> tuple[ApiToken, Client]:
    """A token, and a client that uses it."""
    ends = None if lives is None else timezone.now() + lives
    new = create_token(user, name, [scope], by=SYSTEM, expires_at=ends)
    return new.token, Client(headers={"Authorization": f"Bearer {new.secret}"})


def make(client: Client, name: str, scope: str, lives: timedelta | None = None, **more: Any) -> Any:
    ends = {} if lives is None else {"expiresAt": (timezone.now() + lives).isoformat()}
    body = {"name": name, "scopes": [scope], **ends, **more}
    return client.post("/api/v1/tokens/", body, content_type="application/json")


def revoke(client: Client, token: ApiToken) -> int:
    return int(client.delete(f"/api/v1/tokens/{token.pk}/").status_code)


class TestMaking:
    def test_a_token_for_reading_makes_none_and_says_that_its_scope_is_the_reason(self, boss: Any):
        _, reading = made(boss, "reading", "read")

        for scope in ("read", "admin"):
            answer = make(reading, "another", scope)
            assert answer.status_code == 403
            assert "The token in use does not have the scope" in answer.json()["detail"]
        assert ApiToken.objects.count() == 1

    @pytest.mark.parametrize(
        ("own", "asked"), [("submit", "operate"), ("submit", "admin"), ("operate", "admin")]
    )
    def test_none_is_made_that_may_do_more(self, boss: Any, own: str, asked: str):
        _, narrow = made(boss, "narrow", own)

        answer = make(narrow, "wider", asked)

        assert answer.status_code == 403
        assert answer.json()["scope"] == asked
        assert make(narrow, "the same", own).status_code == 201

    @pytest.mark.parametrize("lives", [None, LATER], ids=["no end", "a later end"])
    def test_none_is_made_that_lives_longer(self, boss: Any, lives: timedelta | None):
        _, short = made(boss, "short", "admin", SOON)

        answer = make(short, "longer", "read", lives)

        assert answer.status_code == 403
        assert "Sign in with your password" in answer.json()["detail"]
        assert make(short, "shorter", "read", SOON / 2).status_code == 201

    def test_for_somebody_else_the_same_holds(self, boss: Any, django_user_model: Any):
        django_user_model.objects.create_user("ann")
        _, short = made(boss, "short", "admin", SOON)

        assert make(short, "for ann", "read", user="ann").status_code == 403
        assert make(short, "for ann", "read", SOON / 2, user="ann").status_code == 201

    def test_who_is_signed_in_makes_any(self, boss: Any):
        browser = Client()
        browser.force_login(boss)

        assert make(browser, "for ever", "admin").status_code == 201


class TestRevoking:
    def test_one_for_reading_revokes_itself_and_no_other(self, boss: Any):
        other, _ = made(boss, "other", "read")
        itself, reading = made(boss, "reading", "read")

        assert revoke(reading, other) == 403
        assert revoke(reading, itself) == 200
        assert ApiToken.objects.get(pk=other.pk).revoked_at is None

    def test_none_is_revoked_that_may_do_more_or_lives_longer(self, boss: Any):
        wider, _ = made(boss, "wider", "admin", SOON / 2)
        longer, _ = made(boss, "longer", "submit")
        within, _ = made(boss, "within", "submit", SOON / 2)
        _, client = made(boss, "in use", "submit", SOON)

        assert (revoke(client, wider), revoke(client, longer), revoke(client, within)) == (
            403,
            403,
            200,
        )


class TestAccounts:
    def test_no_token_sets_the_password_of_its_own_account(self, boss: Any):
        _, everything = made(boss, "everything")

        answer = everything.patch(
            "/api/v1/users/boss/",
            {"password": "a brand new password"},
            content_type="application/json",
        )

        assert answer.status_code == 403
        boss.refresh_from_db()
        assert boss.check_password("an old password")

    def test_one_with_an_end_gives_no_way_in_that_stays(self, boss: Any, django_user_model: Any):
        django_user_model.objects.create_user("ann")
        _, short = made(boss, "short", "admin", SOON)

        for body in ({"password": "a brand new password"}, {"isClusterAdmin": True}):
            assert (
                short.patch("/api/v1/users/ann/", body, content_type="application/json").status_code
                == 403
            )
        assert (
            short.patch(
                "/api/v1/users/ann/", {"email": "a@example.com"}, content_type="application/json"
            ).status_code
            == 200
        )


class TestWords:
    WRITES = (
        ("post", "/api/v1/queues/", {"metadata": {"name": "team"}}),
        ("patch", "/api/v1/queues/default/", {"spec": {"weight": 3}}),
        ("delete", "/api/v1/queues/default/", {}),
        ("post", "/api/v1/queues/default/close/", {}),
        ("post", "/api/v1/cluster/pause/", {}),
        ("post", "/api/v1/users/", {"username": "ann"}),
        ("post", "/api/v1/grants/", {"user": "boss", "role": "viewer", "queue": "default"}),
        ("post", "/api/v1/jobs/", {"metadata": {"name": "job"}}),
        ("post", "/api/v1/apply/", {"kind": "Queue", "metadata": {"name": "team"}}),
        ("post", "/api/v1/views/", {"name": "mine"}),
    )

    @pytest.mark.parametrize("kind", ["superuser", "admin of root"])
    def test_a_cluster_admins_token_for_reading_names_the_scope(
        self,
        boss: Any,
        django_user_model: Any,
        kind: str,
    ):
        user = boss
        if kind == "admin of root":
            user = django_user_model.objects.create_user("anna")
            grant_role(user="anna", role="admin", queue="root", by=SYSTEM)
        _, reading = made(user, "reading", "read")

        for method, path, body in self.WRITES:
            answer = getattr(reading, method)(path, body, content_type="application/json")
            assert answer.status_code == 403, path
            assert "The token in use does not have the scope" in answer.json()["detail"], path
            assert answer.json()["scope"] in ("submit", "operate", "admin"), path

    def test_who_lacks_the_role_is_told_of_the_role(self, boss: Any, django_user_model: Any):
        ann = django_user_model.objects.create_user("ann")
        grant_role(user="ann", role="viewer", queue="root", by=SYSTEM)
        _, reading = made(ann, "reading", "read")

        detail = reading.post(
            "/api/v1/queues/", {"metadata": {"name": "team"}}, content_type="application/json"
        ).json()["detail"]

        assert "You need the permission “admin”" in detail


def test_services_ask_too_whoever_calls_them(boss: Any):
    token, _ = made(boss, "short", "submit", SOON)
    other, _ = made(boss, "other", "admin")
    by = Actor("boss", Door.API, boss, scopes=frozenset(["submit"]), token=token)

    with pytest.raises(ScopeTooNarrow):
        create_token(boss, "wider", ["admin"], by=by)
    with pytest.raises(SignInNeeded):
        create_token(boss, "longer", ["submit"], by=by)
    with pytest.raises(Forbidden):
        revoke_token(other, by=by)
    with pytest.raises(Forbidden):
        save_user({"password": "a brand new password"}, by=by, username="boss")
