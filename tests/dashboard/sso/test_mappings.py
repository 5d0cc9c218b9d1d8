"""Groups and their roles: by page, API, command line and file."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from scheduler.admission.violations import Rejected
from scheduler.documents import read_documents
from scheduler.domain.access import Forbidden
from scheduler.models import Grant, GroupMapping, Identity
from scheduler.selectors.files.configuration import configuration
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.accounts.grants import revoke_grant
from scheduler.services.accounts.sign_on import Visitor, admit, map_group
from scheduler.services.demo.setup import ensure_builtin_objects
from scheduler.services.files.apply import apply_documents
from tests.dashboard.sample import add_user
from tests.dashboard.work import text

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(client: Client) -> Client:
    ensure_builtin_objects()
    client.force_login(get_user_model().objects.create_superuser("admin"))
    return client


def signed_on(name: str, *groups: str) -> Any:
    user = get_user_model().objects.filter(username=name).first() or add_user(name, role="")
    Identity.objects.get_or_create(
        user=user, issuer="i", subject=name, defaults={"signed_on_at": timezone.now()}
    )
    return admit(Visitor("i", name, name, "", groups))


def test_a_group_is_mapped_and_unmapped_on_the_page(admin: Client):
    form = {"provider_group": "authors", "role": "viewer", "queue": "default"}
    admin.post("/users/-/sign-on/map/", form)
    signed_on("ann", "authors")

    page = text(admin.get("/users/-/sign-on/"))

    assert "<strong>authors</strong>" in page
    mapping = GroupMapping.objects.get()
    admin.post(f"/users/-/sign-on/{mapping.pk}/forget/")
    assert not GroupMapping.objects.exists()
    assert not Grant.objects.exists()


def test_what_is_wrong_is_said_on_the_page(admin: Client):
    form = {"provider_group": "", "role": "viewer", "queue": "default"}

    answer = admin.post("/users/-/sign-on/map/", form, follow=True)

    assert "A group of the provider has a name" in text(answer)
    assert not GroupMapping.objects.exists()


def test_an_admin_of_one_queue_maps_there_alone(client: Client):
    ensure_builtin_objects()
    boss = add_user("boss", "admin", "default")
    by = Actor("boss", user=boss)

    map_group("authors", role="admin", queue="default", by=by)
    with pytest.raises(Rejected):
        map_group("authors", role="admin", queue="root", by=by)
    with pytest.raises(Forbidden):
        map_group("a", role="admin", queue="default", by=Actor("v", user=add_user("v")))

    client.force_login(boss)
    map_group("hidden-group", role="admin", queue="root", by=SYSTEM)
    page = text(client.get("/users/-/sign-on/"))
    assert "authors" in page
    assert "hidden-group" not in page


def test_a_mapped_role_is_not_revoked_by_hand(admin: Client):
    map_group("authors", role="viewer", queue="default", by=SYSTEM)
    signed_on("ann", "authors")
    grant = Grant.objects.get()

    with pytest.raises(Rejected, match="group authors"):
        revoke_grant(grant, by=SYSTEM)
    answer = admin.post(f"/users/-/grants/{grant.pk}/revoke/", follow=True)

    assert "so it is not revoked by hand" in text(answer)
    assert Grant.objects.exists()


def test_the_export_has_mappings_and_no_mapped_roles():
    ensure_builtin_objects()
    map_group("authors", role="viewer", queue="default", by=SYSTEM)
    signed_on("ann", "authors")

    kinds = [document["kind"] for document in configuration()]

    assert kinds.count("GroupMapping") == 1
    assert "Grant" not in kinds


def test_a_file_maps_groups():
    ensure_builtin_objects()
    document = "{kind: GroupMapping, spec: {providerGroup: a:b, role: viewer, queue: default}}"

    first = apply_documents(read_documents(document), by=SYSTEM)
    second = apply_documents(read_documents(document), by=SYSTEM)

    assert [item.operation for item in (*first, *second)] == ["created", "unchanged"]
    assert GroupMapping.objects.get().provider_group == "a:b"
