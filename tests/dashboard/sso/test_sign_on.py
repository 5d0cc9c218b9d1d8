"""A sign-on from end to end: accounts, roles of groups, and that nobody takes another's place."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from scheduler.models import AuditEntry, Grant, GroupMapping, Identity, Job
from scheduler.services.accounts.actors import SYSTEM
from scheduler.services.accounts.grants import grant_role
from scheduler.services.accounts.sign_on import end_old_sign_ons, map_group, unmap_group
from tests.dashboard.sample import add_user
from tests.dashboard.sso.provider import Provider, sign_on_at
from tests.dashboard.sso.walking import come_back, sign_on
from tests.dashboard.work import text


@pytest.fixture
def mapping(provider: Provider) -> GroupMapping:
    return map_group("authors", role="submitter", queue="default", by=SYSTEM)


def roles_of(name: str) -> set[tuple[str, str, bool]]:
    """Role, queue, and whether it came with a group."""
    found = Grant.objects.filter(user__username=name)
    return {(grant.role, grant.queue.name, grant.mapping_id is not None) for grant in found}


def test_the_sign_in_page_offers_it(client: Client, provider: Provider):
    page = text(client.get("/accounts/login/?next=/queues/"))

    assert "Sign in with the provider" in page
    assert "/accounts/sign-on/?next=/queues/" in page


def test_without_a_provider_nothing_is_offered(client: Client, db: None):
    assert "Sign in with" not in text(client.get("/accounts/login/"))
    assert client.get("/accounts/sign-on/").status_code == 404
    assert client.get("/accounts/sign-on/back/").status_code == 404


def test_a_mapped_group_gives_an_account_and_its_roles(client: Client, mapping: GroupMapping):
    answer = sign_on(client, "/queues/")

    assert answer["Location"] == "/queues/"
    assert roles_of("ann") == {("submitter", "default", True)}
    assert not get_user_model().objects.get(username="ann").has_usable_password()
    assert "default" in text(client.get("/queues/"))


def test_the_session_ends_at_a_set_time(client: Client, mapping: GroupMapping):
    sign_on(client)

    session = Session.objects.get(session_key=client.session.session_key)
    left = session.expire_date - timezone.now()
    assert timedelta(hours=7, minutes=50) < left <= timedelta(hours=8)


def test_roles_go_with_the_groups_and_those_by_hand_stay(
    client: Client, provider: Provider, mapping: GroupMapping
):
    sign_on(client)
    grant_role(user="ann", role="submitter", queue="default", by=SYSTEM)
    grant_role(user="ann", role="viewer", queue="root", by=SYSTEM)
    map_group("readers", role="viewer", queue="default", by=SYSTEM)
    provider.claims["groups"] = ["readers"]

    sign_on(Client())

    assert roles_of("ann") == {
        ("submitter", "default", False),
        ("viewer", "root", False),
        ("viewer", "default", True),
    }
    entry = AuditEntry.objects.filter(action="ApplyGroups").order_by("-id")[0]
    assert entry.before == {"ended": ["submitter on default"]}
    assert entry.after == {"given": ["viewer on default"]}


def test_who_loses_all_groups_is_told_so_and_not_let_in(provider: Provider, mapping: GroupMapping):
    sign_on(Client())
    provider.claims["groups"] = ["gardeners"]
    again = Client()

    answer = sign_on(again)

    assert answer.status_code == 403
    assert "None of your groups has a role here. The provider sent: gardeners." in text(answer)
    assert roles_of("ann") == set()
    assert again.get("/queues/").status_code == 302


def test_a_missing_claim_of_groups_gives_no_roles_and_is_named(
    client: Client, provider: Provider, mapping: GroupMapping
):
    del provider.claims["groups"]

    page = text(sign_on(client))

    assert "The provider sent no claim “groups”" in page
    assert not get_user_model().objects.filter(username="ann").exists()


def test_a_mapping_that_is_deleted_takes_its_roles_along_at_once(
    client: Client, mapping: GroupMapping
):
    sign_on(client)

    unmap_group(mapping, by=SYSTEM)

    assert roles_of("ann") == set()


def test_roles_end_some_time_after_the_last_sign_on(client: Client, mapping: GroupMapping):
    sign_on(client)
    grant_role(user="ann", role="viewer", queue="root", by=SYSTEM)
    assert end_old_sign_ons() == 0
    Identity.objects.update(signed_on_at=timezone.now() - timedelta(hours=169))

    assert end_old_sign_ons() == 1

    assert roles_of("ann") == {("viewer", "root", False)}


def test_an_equal_name_does_not_take_over_a_local_account(client: Client, mapping: GroupMapping):
    add_user("Ann")

    answer = sign_on(client)

    assert answer.status_code == 403
    assert "nothing shows that it is yours" in text(answer)
    assert not Identity.objects.exists()


def test_nor_the_work_of_a_deleted_account(client: Client, mapping: GroupMapping):
    Job.objects.create(
        namespace="default", name="old", owner="ann", queue=mapping.queue, min_available=1
    )

    assert sign_on(client).status_code == 403


def test_nor_an_equal_address(client: Client, provider: Provider, mapping: GroupMapping):
    boss = add_user("boss", role="")
    get_user_model().objects.filter(pk=boss.pk).update(email="ann@example.com")
    provider.claims |= {"email": "ann@example.com", "email_verified": True}

    sign_on(client)

    assert client.session["_auth_user_id"] != str(boss.pk)


def test_another_provider_with_the_same_subject_is_somebody_else(
    client: Client, provider: Provider, mapping: GroupMapping
):
    sign_on(client)
    Identity.objects.update(issuer="https://before.example.com")

    assert sign_on(Client()).status_code == 403


@pytest.mark.parametrize("name", ["system", "", "a/b", "..", "x" * 151])
def test_a_name_that_cannot_be_one_is_refused(
    client: Client, provider: Provider, mapping: GroupMapping, name: str
):
    provider.claims["preferred_username"] = name

    assert sign_on(client).status_code == 403


def test_an_account_is_linked_by_its_owner_and_unlinked(
    client: Client, provider: Provider, mapping: GroupMapping
):
    boss = add_user("boss", role="")
    boss.set_password("a long password")
    boss.save()
    client.force_login(boss)
    page = text(client.post("/account/sign-on/link/"))
    address = page.split("url=")[1].split('"')[0].replace("&amp;", "&")

    come_back(client, address)

    assert Identity.objects.get().user == boss
    assert roles_of("boss") == {("submitter", "default", True)}
    assert sign_on(Client()).status_code == 302
    client.post("/account/sign-on/unlink/")
    assert roles_of("boss") == set()
    assert not Identity.objects.exists()


def test_a_link_that_somebody_else_began_is_refused(
    client: Client, provider: Provider, mapping: GroupMapping
):
    client.force_login(add_user("boss", role=""))
    page = text(client.post("/account/sign-on/link/"))
    address = page.split("url=")[1].split('"')[0].replace("&amp;", "&")

    answer = come_back(Client(), address)

    assert answer.status_code == 400
    assert not Identity.objects.exists()


def test_an_account_that_is_switched_off_stays_out(client: Client, mapping: GroupMapping):
    sign_on(client)
    get_user_model().objects.update(is_active=False)

    answer = sign_on(Client())

    assert answer.status_code == 403
    assert "switched off" in text(answer)


def test_accounts_for_all(client: Client, provider: Provider):
    with sign_on_at(provider.issuer, create_users="all"):
        answer = sign_on(client)

    assert answer.status_code == 302
    assert roles_of("ann") == set()


def test_accounts_for_nobody(client: Client, provider: Provider, mapping: GroupMapping):
    with sign_on_at(provider.issuer, create_users="never"):
        answer = sign_on(client)

    assert answer.status_code == 403
    assert "none is made by signing on" in text(answer)


def test_groups_of_a_nested_claim(client: Client, provider: Provider, mapping: GroupMapping):
    provider.claims = {"email": "ann@example.com", "realm_access": {"roles": ["authors", 7]}}
    with sign_on_at(provider.issuer, groups_claim="realm_access.roles", username_claim="email"):
        sign_on(client)

    assert roles_of("ann@example.com") == {("submitter", "default", True)}


# What goes wrong


def test_a_provider_that_is_down(client: Client, provider: Provider):
    provider.status = 500

    answer = client.get("/accounts/sign-on/")

    assert answer.status_code == 503
    assert "It answered with status 500." in text(answer)


def test_a_provider_that_is_not_there(client: Client, db: None):
    with sign_on_at("http://127.0.0.1:9"):
        answer = client.get("/accounts/sign-on/")

    assert answer.status_code == 503
    assert "No connection to it could be made." in text(answer)


def test_a_wrong_secret(client: Client, provider: Provider, mapping: GroupMapping):
    provider.secret = "another"

    answer = sign_on(client)

    assert answer.status_code == 502
    assert "SSO_CLIENT_SECRET" in text(answer)


def test_a_state_that_this_browser_did_not_begin_with(client: Client, provider: Provider):
    there = client.get("/accounts/sign-on/")["Location"]

    answer = come_back(Client(), there)

    assert answer.status_code == 400
    assert "This sign-on was not begun here" in text(answer)


def test_an_answer_that_comes_twice(client: Client, provider: Provider, mapping: GroupMapping):
    there = client.get("/accounts/sign-on/")["Location"]
    come_back(client, there)
    client.logout()

    assert come_back(client, there).status_code == 400


@pytest.mark.parametrize(("ahead", "words"), [(3600, "ahead of"), (-3600, "behind")])
def test_clocks_that_differ(
    client: Client, provider: Provider, mapping: GroupMapping, ahead: float, words: str
):
    provider.clock_ahead = ahead

    answer = sign_on(client)

    assert answer.status_code == 502
    assert f"seconds {words} the clock of this server" in text(answer)


def test_another_issuer(client: Client, provider: Provider):
    provider.issuer_said = "https://elsewhere.example.com"

    answer = client.get("/accounts/sign-on/")

    assert answer.status_code == 502
    assert "It calls itself “https://elsewhere.example.com”" in text(answer)


def test_a_token_with_a_foreign_signature(
    client: Client, provider: Provider, mapping: GroupMapping
):
    provider.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    answer = sign_on(client)

    assert answer.status_code == 502
    assert "The token cannot be trusted" in text(answer)


@pytest.mark.parametrize("nonce", ["", "of-another-sign-on"])
def test_a_token_of_another_sign_on(
    client: Client, provider: Provider, mapping: GroupMapping, nonce: str
):
    provider.nonce_said = nonce

    answer = sign_on(client)

    assert answer.status_code == 400
    assert "The token is of another sign-on" in text(answer)
    assert "_auth_user_id" not in client.session


def test_a_nonce_of_the_user_info_does_not_count(
    client: Client, provider: Provider, mapping: GroupMapping
):
    there = client.get("/accounts/sign-on/")["Location"]
    provider.nonce_said = "of-another-sign-on"
    provider.claims["nonce"] = parse_qs(urlsplit(there).query)["nonce"][0]

    assert come_back(client, there).status_code == 400


@pytest.mark.parametrize(("error", "status"), [("access_denied", 403), ("server_error", 502)])
def test_a_provider_that_refuses(client: Client, provider: Provider, error: str, status: int):
    provider.refuses = error

    assert sign_on(client).status_code == status


def test_a_page_of_another_site_is_not_gone_to(client: Client, mapping: GroupMapping):
    assert sign_on(client, "https://evil.example.com/")["Location"].startswith("/jobs/")


# Out again


def test_signing_out_goes_to_the_provider_too(client: Client, mapping: GroupMapping):
    sign_on(client)

    page = text(client.post("/accounts/logout/"))

    assert "/sign-out?id_token_hint=" in page
    assert "post_logout_redirect_uri=http%3A%2F%2Ftestserver%2Faccounts%2Flogin%2F" in page
    assert client.get("/queues/").status_code == 302


def test_a_provider_without_an_address_for_it_is_named(
    client: Client, provider: Provider, mapping: GroupMapping
):
    provider.has_sign_out = False
    sign_on(client)

    page = text(client.post("/accounts/logout/"))

    assert "You are still signed in at the provider" in page


def test_who_came_with_a_password_just_goes(client: Client, provider: Provider):
    client.force_login(add_user("boss", role=""))

    assert client.post("/accounts/logout/")["Location"] == "/accounts/login/"


def test_the_access_tab_says_where_a_role_comes_from(client: Client, mapping: GroupMapping):
    sign_on(client)
    grant_role(user="ann", role="viewer", queue="root", by=SYSTEM)
    admin: Any = get_user_model().objects.create_superuser("admin")
    client.force_login(admin)

    page = text(client.get("/queues/default/access/"))

    assert "group authors of the sign-on provider" in page
    assert "by hand, by system" in page
