"""vcctl queue: the texts about a queue are set, taken away and shown."""

from __future__ import annotations

from scheduler.models import Queue
from tests.dashboard.cli.conftest import Type
from tests.worlds import job


def test_the_owner_is_set_changed_and_taken_away(vcctl: Type):
    assert vcctl("vcctl queue create ml --owner 'ML platform'").code == 0
    assert Queue.objects.get(name="ml").owner == "ML platform"

    vcctl("vcctl queue update ml --owner ops")
    assert Queue.objects.get(name="ml").owner == "ops"

    vcctl("vcctl queue update ml --weight 3")
    assert Queue.objects.get(name="ml").owner == "ops"

    vcctl("vcctl queue update ml --owner ''")
    assert Queue.objects.get(name="ml").owner == ""


def test_the_owner_is_shown(vcctl: Type):
    vcctl("vcctl queue create ml --owner ops")

    assert "Owner:            ops\n" in vcctl("vcctl queue view ml").out
    wide = vcctl("vcctl queue list -o wide").out.splitlines()
    assert wide[0].split()[-1] == "Owner"
    assert [line.split()[-1] for line in wide if line.startswith("ml ")] == ["ops"]


def test_a_refusal_names_the_field(vcctl: Type):
    refused = vcctl("vcctl queue create ml --owner 'a\tb'")

    assert refused.code != 0
    assert "--owner has a control character (U+0009)" in refused.err


def test_the_description_is_set_and_shown_on_one_line(vcctl: Type):
    vcctl("vcctl queue create ml --description 'For training.\nAsk first.'")

    assert Queue.objects.get(name="ml").description == "For training.\nAsk first."
    assert "Description:      For training. Ask first.\n" in vcctl("vcctl queue view ml").out


def test_a_job_that_waits_names_the_owner(vcctl: Type):
    vcctl("vcctl queue create ml --owner ops")
    job("train", "ml", cpu="1")

    told = vcctl("vcctl job explain train").out

    assert told.rstrip().endswith("Ask ops, the owner of ml.")
