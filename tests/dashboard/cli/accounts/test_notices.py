"""vcctl notices."""

from __future__ import annotations

from scheduler.models import NoticeRule
from scheduler.services.notices.fan_out import write_notices
from scheduler.services.notices.publish import publish
from tests.dashboard.cli.conftest import Type
from tests.services.notices.people import started


def test_rules_and_the_inbox(vcctl: Type):
    said = vcctl("vcctl notices watch JobStarted --queue default")
    publish([started(1), started(2)])
    write_notices()

    assert "You are told: JobStarted in default and below." in said.out
    assert "Job default/train-1 has started" in vcctl("vcctl notices list --unread").out
    assert "2 notices were marked as read." in vcctl("vcctl notices read").out
    assert vcctl("vcctl notices list --unread -o json").json["items"] == []
    vcctl("vcctl notices unwatch JobStarted --queue default")
    assert not NoticeRule.objects.exists()


def test_channels_by_name(vcctl: Type):
    made = vcctl("vcctl notices add-channel Webhook room http://127.0.0.1:9/hook")
    tested = vcctl("vcctl notices test room")
    renewed = vcctl("vcctl notices rotate room")

    assert "Secret: whsec_" in made.out
    assert tested.code == 1
    assert "The test did not reach room. 127.0.0.1 is an address of a private" in tested.err
    assert "Secret: whsec_" in renewed.out
    assert made.out.split("Secret:")[1] != renewed.out.split("Secret:")[1]
    assert "Failed" in vcctl("vcctl notices sent").out
    assert vcctl("vcctl notices rotate nothing").code == 3
    assert "was deleted" in vcctl("vcctl notices remove-channel room").out
