"""All configuration as a file: exported, applied to an empty installation, exported again.

The commands are those of docs/how-to/backup.md.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone

from scheduler.documents import read_documents
from scheduler.domain.access import Forbidden
from scheduler.domain.lifecycle import QueueCommand
from scheduler.models import AuditEntry, ChangeSet, Grant, PriorityClass, Queue
from scheduler.selectors.files.configuration import EXPORTED, configuration
from scheduler.services.accounts.actors import SYSTEM, Actor
from scheduler.services.accounts.grants import grant_role
from scheduler.services.accounts.sign_on import map_group
from scheduler.services.change_sets.drafts import create_change_set
from scheduler.services.change_sets.plans import Wish, plan_change_set
from scheduler.services.demo.sample import load_sample_cluster
from scheduler.services.files.apply import apply_documents, check_documents
from scheduler.services.files.configuration import WRITTEN
from scheduler.services.files.items import APPLY_ORDER
from scheduler.services.notices.choices import save_rule
from scheduler.services.queues.commands import command_queue
from scheduler.services.sessions.policies import policy_text, replace_policy
from scheduler.services.sessions.requests import set_period
from scheduler.services.usage.prices import set_prices
from scheduler.yaml_texts import to_yaml
from tests.worlds import queue

pytestmark = [pytest.mark.django_db]


def exported() -> str:
    return "---\n".join(to_yaml(document) for document in configuration())


def configure_everything() -> None:
    """Something of every kind, and what is easily lost: states, other letters, empty texts."""
    load_sample_cluster()
    leaf = Queue.objects.filter(children=None).exclude(name="default").first()
    assert leaf is not None
    command_queue(leaf.name, QueueCommand.SUSPEND, by=SYSTEM)
    queue("closed-parent", labels={"team": "a"}, annotations={"note": "yes"}, description="é “x”")
    queue("closed-child", parent="closed-parent", weight=3, capability={"cpu": "7"})
    command_queue("closed-parent", QueueCommand.CLOSE, by=SYSTEM)
    PriorityClass.objects.create(name="urgent", value=1000, description="line\nline\n")
    group = Group.objects.create(name="Lab Ä")
    mia = get_user_model().objects.create_user("mia", "mia@example.com", "a-password-of-mia")
    mia.groups.add(group)
    get_user_model().objects.create_user("gone", is_active=False)
    grant_role(user="mia", role="admin", queue="closed-parent", by=SYSTEM)
    grant_role(group="Lab Ä", role="viewer", by=SYSTEM)
    map_group("/Lab:Ä", role="submitter", queue="closed-child", by=SYSTEM)
    set_period(2.5)
    set_prices("2026-01-01", "EUR", {"cpu": "0.04", "memory": "0.005"}, by=SYSTEM)
    replace_policy(policy_text(cluster_state()) + "# ours\n", by=SYSTEM)
    wanted = {"kind": "Queue", "metadata": {"name": "default"}, "spec": {"weight": 5}}
    for _ in range(2):
        create_change_set("more weight", [wanted], description="for default", by=SYSTEM)
    save_rule(mia, "JobFailed", queue="closed-parent", by=SYSTEM)
    save_rule(mia, "JobWaitsLong", times_usual=3.5, by=SYSTEM)
    night = create_change_set("nights", [wanted], by=SYSTEM)
    now = timezone.now()
    begin = now + timedelta(days=2)
    wish = Wish(f"{begin:%Y-%m-%dT18:00}", f"{begin:%Y-%m-%dT23:00}", "Europe/Berlin", weekly=True)
    plan = plan_change_set(night.pk, wish, by=SYSTEM)
    earlier = begin - timedelta(weeks=3)  # turns that have been are records
    plan.begins = f"{earlier:%Y-%m-%dT18:00}"
    plan.ends = f"{earlier:%Y-%m-%dT23:00}"
    plan.save()


def cluster_state():
    from scheduler.models import ClusterState

    return ClusterState.objects.select_related("policy").get(pk=1)


def exported_elsewhere() -> str:
    """The export of a full installation; this one is empty again afterwards."""
    with transaction.atomic():
        configure_everything()
        text = exported()
        transaction.set_rollback(True)
    return text


@pytest.mark.both_databases
def test_an_export_applied_elsewhere_is_exported_there_byte_for_byte():
    text = exported_elsewhere()
    assert not Grant.objects.exists()

    apply_documents(read_documents(text))

    assert exported() == text
    assert {one["kind"] for one in configuration()} == set(EXPORTED)


def test_applied_again_nothing_changes():
    configure_everything()
    entries = AuditEntry.objects.count()

    applied = apply_documents(read_documents(exported()))

    assert [item for item in applied if item.changed] == []
    assert AuditEntry.objects.count() == entries


def test_no_secret_is_exported():
    configure_everything()
    text = exported()

    assert "mia@example.com" in text
    assert "password" not in text
    assert "pbkdf2" not in text


def test_whoever_is_imported_cannot_sign_in_until_somebody_sets_a_password():
    apply_documents(read_documents(exported_elsewhere()))

    mia = get_user_model().objects.get(username="mia")
    assert not mia.has_usable_password()
    assert list(mia.groups.values_list("name", flat=True)) == ["Lab Ä"]


def test_a_change_set_that_is_imported_can_be_read_and_is_noted():
    apply_documents(read_documents(exported_elsewhere()))

    names = ChangeSet.objects.order_by("id").values_list("name", flat=True)
    assert list(names) == ["more weight", "more weight (2)", "nights"]
    assert AuditEntry.objects.filter(action="ImportChangeSet").count() == 3


def test_every_kind_of_an_export_can_be_applied():
    assert set(EXPORTED) <= set(APPLY_ORDER)
    assert set(WRITTEN) <= set(EXPORTED)


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ("{kind: Grant, spec: {user: nobody, role: admin}}", "spec.user"),
        ("{kind: Grant, spec: {user: mia, role: king}}", "spec.role"),
        ("{kind: Grant, spec: {user: mia, role: admin, queue: none}}", "spec.queue"),
        ("{kind: Grant, spec: {user: [mia], role: admin}}", "spec.user"),
        ("{kind: Grant, metadata: {name: x}, spec: {user: mia, role: admin}}", "metadata.name"),
        ("{kind: Cluster, spec: {periodSeconds: 0}}", "spec.periodSeconds"),
        ("{kind: Cluster, spec: {periodSeconds: [1]}}", "spec.periodSeconds"),
        ("{kind: Cluster, spec: {seconds: 1}}", "spec.seconds"),
        ("{kind: Cluster, metadata: {name: other}}", "metadata.name"),
        ("{kind: Policy, spec: {policy: {a: b}}}", "spec.policy"),
        ("{kind: Group}", "metadata.name"),
        ("{kind: Group, metadata: {name: a/b}}", "name"),
        ("{kind: User, metadata: {name: new}, spec: {password: secret}}", "spec.password"),
        ("{kind: User, metadata: {name: new}, spec: {isActive: perhaps}}", "isActive"),
        ("{kind: User, metadata: {name: new}, spec: {groups: [none]}}", "groups"),
        ("{kind: ChangeSet, metadata: {name: a}, spec: {items: 1}}", "spec.items"),
        ("{kind: ChangeSet, metadata: {name: a}, spec: {items: [{}]}}", "spec.items[0].kind"),
        ("{kind: ChangeSet, spec: {items: []}}", "metadata.name"),
        ("{kind: ChangePlan, metadata: {name: none}, spec: {begin: x}}", "metadata.name"),
        ("{kind: NoticeRule, spec: {user: nobody, kind: JobFailed}}", "spec.user"),
        ("{kind: NoticeRule, spec: {user: mia, kind: Nothing}}", "kind"),
        ("{kind: Cluster, spec: 1}", "spec"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_changed(document: str, field: str):
    get_user_model().objects.create_user("mia")
    before = exported()

    (item,) = check_documents(read_documents(document))

    assert field in [violation.field for violation in item.violations]
    assert exported() == before


def test_only_cluster_admins_apply_configuration():
    mia = get_user_model().objects.create_user("mia")
    text = "{kind: Cluster, spec: {periodSeconds: 3}}"

    with pytest.raises(Forbidden):
        apply_documents(read_documents(text), by=Actor("mia", user=mia))


def test_manage_py_writes_a_file_and_reads_it_back(tmp_path: Path, capsys):
    file = tmp_path / "all.yaml"
    with file.open("w") as out:
        call_command("export", stdout=out)

    call_command("apply", str(file))

    assert file.read_text() == exported()
    assert "0 objects of" in capsys.readouterr().out


def test_manage_py_names_file_and_line_and_changes_nothing(tmp_path: Path, capsys):
    file = tmp_path / "wrong.yaml"
    file.write_text(
        "kind: Namespace\nmetadata:\n  name: lab\n"
        "---\nkind: Cluster\nspec:\n  periodSeconds: never\n"
    )
    before = exported()

    with pytest.raises(SystemExit) as ended:
        call_command("apply", str(file))

    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert f"{file}, line 7: periodSeconds cannot be that" in said
    assert "Nothing was changed." in said
    assert exported() == before
