"""vcctl audit: who did what, and why; and --reason, which every command that writes takes."""

from __future__ import annotations

from scheduler.models import AuditEntry
from tests.dashboard.cli.conftest import Type


def test_it_says_who_closed_a_queue_and_why_by_the_queues_own_name(vcctl: Type):
    vcctl("vcctl queue create research")
    vcctl("vcctl queue create analytics --parent research")
    vcctl('vcctl queue close research --reason "new site" --yes')

    asked = vcctl("vcctl audit --queue analytics --action CloseQueue")
    everything = vcctl("vcctl audit")

    assert "CloseQueue" in asked.out
    assert "Queue analytics (caused by research)" in asked.out
    assert "new site" in asked.out
    assert everything.out.count("CloseQueue") == 1


def test_submits_are_apart(vcctl: Type):
    vcctl("vcctl job run --name train")

    assert "SubmitJob" not in vcctl("vcctl audit").out
    assert "default/train" in vcctl("vcctl audit --deeds work").out
    assert "default/train" in vcctl("vcctl audit --action SubmitJob --from 2020-01-01").out
    assert "SubmitJob" not in vcctl("vcctl audit --deeds all --until 2020-01-01").out


def test_what_cannot_be_is_refused_with_what_there_is(vcctl: Type):
    wrong = vcctl("vcctl audit --action Foo")

    assert wrong.code != 0
    assert "CloseQueue" in wrong.err
    assert "admin, work, own" in vcctl("vcctl audit --deeds mine").err


def test_edits_and_deletions_take_a_reason(vcctl: Type):
    vcctl('vcctl queue create q --reason "for the lab"')
    vcctl('vcctl queue update q --weight 3 --reason "grew"')
    vcctl("vcctl queue close q --yes")
    vcctl('vcctl queue delete q --reason "lab closed" --yes')
    vcctl('vcctl api post namespaces/ -d "metadata: {name: lab}" --reason "asked for"')

    found = dict(AuditEntry.objects.exclude(reason="").values_list("action", "reason"))
    assert found == {
        "CreateQueue": "for the lab",
        "UpdateQueue": "grew",
        "DeleteQueue": "lab closed",
        "CreateNamespace": "asked for",
    }
