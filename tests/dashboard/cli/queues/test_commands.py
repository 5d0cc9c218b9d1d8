"""vcctl queue: what is printed, asked, refused, and with which exit code."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dashboard.cli.queues import write
from scheduler.models import AuditEntry, Queue
from tests.dashboard.cli.conftest import Type, typed
from tests.worlds import job, node, run_session


def test_create_takes_every_setting_of_a_queue(vcctl: Type):
    node("n1", cpu="64", memory="256Gi")
    vcctl("vcctl queue create team --deserved cpu=32,memory=128Gi --guarantee cpu=8")

    done = vcctl(
        "vcctl queue create -n train -w 7 -S Suspended -p team --capability cpu=32 "
        "--deserved cpu=16,memory=64Gi "
        "--guarantee cpu=4 --no-reclaimable --priority 5 --dequeue-strategy fifo --label "
        "team=a --annotation owner=ml -o json"
    )

    assert done.code == 0
    assert done.json["metadata"]["labels"] == {"team": "a"}
    assert done.json["metadata"]["annotations"] == {"owner": "ml"}
    wanted = {
        "weight": 7,
        "state": "Suspended",
        "parent": "team",
        "priority": 5,
        "dequeueStrategy": "fifo",
        "reclaimable": False,
    }
    quotas = {
        "capability": {"cpu": "32"},
        "deserved": {"cpu": "16", "memory": "64Gi"},
        "guarantee": {"resource": {"cpu": "4"}},
    }
    assert done.json["spec"] == {**done.json["spec"], **wanted, **quotas}


def test_update_changes_what_is_named_and_leaves_the_rest(vcctl: Type):
    node("n1", cpu="64", memory="256Gi")
    vcctl("vcctl queue create q --capability cpu=32,memory=64Gi --weight 3")

    done = vcctl("vcctl queue update q --capability cpu=16,memory= -o json")

    assert done.json["spec"]["capability"] == {"cpu": "16"}
    assert done.json["spec"]["weight"] == 3


def test_the_minimum_running_time_is_set_shown_inherited_and_taken_away(vcctl: Type):
    made = vcctl("vcctl queue create team --min-run-seconds 120 -o json")
    vcctl("vcctl queue create train --parent team")

    assert made.json["spec"]["minRunSeconds"] == 120
    assert "Minimum run:      120 s\n" in vcctl("vcctl queue view team").out
    assert "Minimum run:      120 s, inherited from team\n" in vcctl("vcctl queue view train").out

    assert vcctl("vcctl queue update train --min-run-seconds 0").code == 0
    assert "Minimum run:      0 s\n" in vcctl("vcctl queue view train").out
    taken = vcctl("vcctl queue update team --min-run-seconds= -o json")

    assert taken.json["spec"]["minRunSeconds"] is None
    assert "Minimum run:      300 s, as the policy says\n" in vcctl("vcctl queue view team").out


def test_a_minimum_running_time_that_is_no_number_is_refused_by_its_name(vcctl: Type):
    refused = vcctl("vcctl queue create team --min-run-seconds 5m")

    assert refused.code != 0
    assert refused.err.startswith("--min-run-seconds must be a whole number from 0 to 31536000")


def test_a_dry_run_changes_nothing(vcctl: Type):
    vcctl("vcctl queue create q")

    assert vcctl("vcctl queue create other --dry-run").out == "queue/other created (dry run)\n"
    assert vcctl("vcctl queue update q --weight 9 --dry-run").code == 0
    assert "(dry run)" in vcctl("vcctl queue close q --dry-run").out
    vcctl("vcctl queue close q")
    assert (
        vcctl("vcctl queue delete q --dry-run").out == "the queue q would be deleted (dry run).\n"
    )

    assert vcctl("vcctl queue get q").rows == [
        ["q", "1", "Closed", "root", "0", "0", "0", "0", "0"]
    ]
    assert vcctl("vcctl queue get other").code == 3


def test_close_first_deletes_when_drained_and_can_be_taken_back(vcctl: Type):
    vcctl("vcctl queue create a")
    vcctl("vcctl queue create b --parent a")
    job("busy", "b")

    assert (
        vcctl("vcctl queue delete a --close-first --yes").code == 1
    )  # what is below it was not named
    look = vcctl("vcctl queue delete a --close-first --cascade --dry-run")
    no = vcctl("vcctl queue delete a --close-first --cascade", stdin="n\n")
    assert look.out == "a is closed, and b, a will be deleted when drained. (dry run)\n"
    assert (no.code, "1 waiting" in no.err, Queue.objects.get(name="a").state) == (1, True, "Open")

    done = vcctl("vcctl queue delete a --close-first --cascade --reason moved --yes")
    assert (done.code, done.out) == (0, "a is closed, and b, a will be deleted when drained.\n")
    assert (
        vcctl("vcctl queue keep a --dry-run").out
        == "a is kept: it will not be deleted. (dry run)\n"
    )
    assert vcctl("vcctl queue keep a").out == "a is kept: it will not be deleted.\n"
    assert vcctl("vcctl queue keep -n a").out == "Nobody was going to delete a.\n"


def test_close_first_deletes_what_is_empty_at_once_with_the_reason(vcctl: Type):
    vcctl("vcctl queue create a")

    assert (
        vcctl("vcctl queue delete a --close-first --reason moved", stdin="y\n").out
        == "Deleted a.\n"
    )
    assert AuditEntry.objects.get(action="DeleteQueue").reason == "moved"
    assert not Queue.objects.filter(name="a").exists()


def test_delete_asks_and_takes_no_for_an_answer(vcctl: Type):
    vcctl("vcctl queue create q --state Closed")

    no = vcctl("vcctl queue delete q", stdin="n\n")
    silence = vcctl("vcctl queue delete q")
    yes = vcctl("vcctl queue delete q", stdin="y\n")

    assert (no.code, no.err) == (
        1,
        "Delete the queue q? This cannot be undone. [y/N] Nothing was changed.\n",
    )
    assert silence.code == 2
    assert "--yes" in silence.err
    assert (yes.code, yes.out) == (0, "queue/q deleted\n")


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("vcctl queue update q --weight 0", 1, "--weight"),
        ("vcctl queue update q", 2, "--weight"),
        ("vcctl queue create child --parent nowhere", 1, "--parent"),
        ("vcctl queue create child --capability cpu", 2, "cpu=8,memory=16Gi"),
        ("vcctl queue close root", 1, "root"),
        ("vcctl queue get nowhere", 3, "There is no queue nowhere."),
        ("vcctl queue get q -n other", 2, "once"),
        ("vcctl queue explode q", 2, "No such command"),
        ("vcctl queue list --page 3", 2, "--page"),
        ("vcctl queue history q --step day", 2, "minute"),
        ("vcctl queue get ../../users", 2, "is no name of a queue"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(vcctl: Type, line: str, code: int, words: str):
    vcctl("vcctl queue create q")

    done = vcctl(line)

    assert (done.code, done.out) == (code, "")
    assert words in done.err
    assert len(done.err.splitlines()) == 1
    assert "Traceback" not in done.err


def test_state_commands_name_what_they_turn_and_warn(vcctl: Type):
    for line in ("create a", "create b --parent a"):
        vcctl(f"vcctl queue {line}")

    done = vcctl('vcctl queue suspend a --reason "new quotas"')
    again = vcctl("vcctl queue suspend a")
    below = vcctl("vcctl queue resume b")

    assert done.out.endswith("  b: Open → Suspended\n")
    assert again.code == 0
    assert below.code == 1
    assert "a" in below.err
    view = vcctl("vcctl queue view b").out
    assert "State:            Suspended, inherited from a" in view
    assert "SuspendQueue by boss (CLI): new quotas" in view
    assert "Path:             root / a / b" in view


def test_operate_is_volcanos_form_of_all_of_them(vcctl: Type):
    vcctl("vcctl queue create q")

    for action, state in (
        ("suspend", "Suspended"),
        ("resume", "Open"),
        ("close", "Closed"),
        ("open", "Open"),
    ):
        assert vcctl(f"vcctl queue operate -n q -a {action}").code == 0
        assert vcctl("vcctl queue get q").rows[0][2] == state
    assert vcctl("vcctl queue operate -n q -a update -w 12").code == 0
    assert vcctl("vcctl queue get q").rows[0][1] == "12"


def test_explain_tells_why_jobs_wait(vcctl: Type):
    node("n1", cpu="4", memory="16Gi")
    vcctl("vcctl queue create q")
    vcctl("vcctl queue suspend q")
    job("train", "q")
    run_session()

    done = vcctl("vcctl queue explain q")

    assert done.out.startswith("1 waiting in q (Suspended): QueueSuspended 1.\n")
    assert "default/train" in done.out
    assert vcctl("vcctl queue explain default").out == "Nothing waits in default (Open).\n"


def test_lists_can_be_narrowed_and_shaped(vcctl: Type):
    vcctl("vcctl queue create a --label team=x")
    vcctl("vcctl queue create b --state Closed")

    assert vcctl("vcctl queue list --state Closed -o name").out == "queue/b\n"
    assert vcctl("vcctl queue view queue/b -o name").out == "queue/b\n"
    assert vcctl("vcctl queue list -l team=x -o name").out == "queue/a\n"
    assert [
        item["metadata"]["name"] for item in vcctl("vcctl queue list -p root -o json").json["items"]
    ] == ["a", "b", "default"]
    assert vcctl("vcctl queue list -o yaml").out.count("kind: Queue") == 4
    assert vcctl("vcctl queue list --state Suspended").out == "No resources found\n"


def test_lists_are_read_to_their_end(vcctl: Type, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dashboard.cli.client._PAGE", 3)
    root = Queue.objects.get(name="root")
    Queue.objects.bulk_create([Queue(name=f"q{number}", parent=root) for number in range(8)])

    assert len(vcctl("vcctl queue list -o name").out.splitlines()) == 10


def test_a_full_cell_keeps_a_blank_behind_it(vcctl: Type):
    vcctl("vcctl queue create a-parent-of-a-long-name")
    vcctl("vcctl queue create child --parent a-parent-of-a-long-name --state Suspended")

    assert vcctl("vcctl queue get child").rows == [
        ["child", "1", "Suspended", "a-parent-of-a-long-name", "0", "0", "0", "0", "0"]
    ]


def test_one_sees_and_does_only_what_one_may(
    vcctl: Type,
    new_token: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
):
    for line in ("create a", "create b"):
        vcctl(f"vcctl queue {line}")
    monkeypatch.setenv("VCCTL_TOKEN", new_token("ann", role="viewer", queue="a"))

    assert typed("vcctl queue list -o name").out == "queue/a\n"
    assert typed("vcctl queue get b").code == 3
    refused = typed("vcctl queue close a")
    assert refused.code == 4
    assert "operate" in refused.err
    assert "viewer on a" in typed("vcctl whoami").out


def test_a_queue_that_came_while_somebody_thought_is_not_deleted_unseen(
    vcctl: Type, monkeypatch: pytest.MonkeyPatch
):
    """Whichever way it is deleted: what was agreed to is what was shown."""
    vcctl("vcctl queue create a --state Closed")
    vcctl("vcctl queue create a1 --parent a --state Closed")
    asked = []

    def think(question: str, yes: bool) -> None:
        asked.append(question)
        vcctl(f"vcctl queue create late{len(asked)} --parent a --state Closed")

    monkeypatch.setattr(write, "confirm", think)

    plain = vcctl("vcctl queue delete a --cascade")
    closing = vcctl("vcctl queue delete a --cascade --close-first")

    assert (plain.code, closing.code, len(asked)) == (1, 1, 2)
    assert "has changed since it was shown" in plain.err
    assert "has changed since it was shown" in closing.err
    assert {"a", "a1", "late1", "late2"} <= {row[0] for row in vcctl("vcctl queue list").rows}
    monkeypatch.setattr(write, "confirm", lambda *_: None)
    assert vcctl("vcctl queue delete a --cascade").code == 0
