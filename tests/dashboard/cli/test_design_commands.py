"""Every command that Volcano's five design documents name (docs/origins.md), typed as
they have it.
"""

from __future__ import annotations

from tests.dashboard.cli.conftest import Type
from tests.worlds import node


def test_queue_state_management(vcctl: Type):
    """The queue state design: state on create, state in detail and list, update of weight or state,
    delete, and `queue open|close|update`.
    """
    assert vcctl("vcctl queue create --name myqueue --weight 10 --state Closed").code == 0
    assert vcctl("vcctl queue get --name myqueue").rows == [
        ["myqueue", "10", "Closed", "root", "0", "0", "0", "0", "0"]
    ]
    assert vcctl("vcctl queue open --name myqueue").code == 0
    assert ["myqueue", "10", "Open", "root", "0", "0", "0", "0", "0"] in vcctl(
        "vcctl queue list"
    ).rows
    assert vcctl("vcctl queue update --name myqueue --weight 20").out == "queue/myqueue updated\n"
    assert vcctl("vcctl queue update --name myqueue --state Closed").code == 0
    assert vcctl("vcctl queue get myqueue").rows[0][1:3] == ["20", "Closed"]
    assert vcctl("vcctl queue update --name myqueue --state Open").code == 0
    assert vcctl("vcctl queue close --name myqueue").code == 0
    assert vcctl("vcctl queue delete --name myqueue --yes").out == "queue/myqueue deleted\n"
    assert vcctl("vcctl queue get myqueue").code == 3


def test_queue_with_weight(vcctl: Type):
    """The queue design: create, view, list; the list's Total among its columns."""
    assert vcctl("vcctl queue create --name myqueue --weight 10").code == 0

    view = vcctl("vcctl queue view myqueue")
    wide = vcctl("vcctl queue list -o wide")

    assert view.code == 0
    assert "Created:" in view.out
    assert "Weight:           10" in view.out
    assert wide.out.split()[:2] == ["Name", "Weight"]
    assert {"Total", "Pending", "Running", "Completed", "Failed", "Aborted", "Unknown"} <= set(
        wide.out.splitlines()[0].split()
    )
    assert vcctl("vcctl queue list").code == 0


def test_hierarchical_queues(vcctl: Type):
    """The hierarchy design: the child queues of a queue, and the entire structure.

    Closing closes the children, deleting takes them first.
    """
    for line in ("create a", "create b --parent a", "create c --parent a"):
        assert vcctl(f"vcctl queue {line}").code == 0

    assert vcctl("vcctl queue children a -o name").out == "queue/b\nqueue/c\n"
    tree = [line.split()[:3] for line in vcctl("vcctl queue tree").out.splitlines()[1:]]
    assert next(row for row in tree if row[0] != "root")[:2] == ["├─", "a"]
    assert (
        vcctl("vcctl queue tree -o json").json["children"][0]["children"][1]["metadata"]["name"]
        == "c"
    )
    closed = vcctl("vcctl queue close a")
    assert "b: Open → Closed" in closed.out
    assert vcctl("vcctl queue delete a --yes").code == 1
    gone = vcctl("vcctl queue delete a --cascade --yes").out.splitlines()
    assert sorted(gone) == ["queue/a deleted", "queue/b deleted", "queue/c deleted"]
    assert gone[-1] == "queue/a deleted"


def test_suspend_and_resume(vcctl: Type):
    """The suspension design: a window for changes; jobs are still taken, and wait."""
    node("n1", cpu="8", memory="32Gi")
    assert vcctl("vcctl queue create myqueue").code == 0

    assert vcctl("vcctl queue suspend myqueue").code == 0
    assert vcctl("vcctl queue get myqueue").rows[0][2] == "Suspended"
    assert vcctl("vcctl queue update myqueue --weight 5").code == 0
    assert vcctl("vcctl job run --name train --queue myqueue").out == "job/default/train created\n"
    assert vcctl("vcctl queue resume myqueue").code == 0
    assert vcctl("vcctl queue get myqueue").rows[0][2] == "Open"


def test_suspend_and_resume_by_a_command_on_the_bus(vcctl: Type):
    """The suspension design: “or specify Suspend/Resume action … by creating a bus command”.

    And a new queue may begin suspended.
    """
    manifest = """
apiVersion: bus.volcano.sh/v1alpha1
kind: Command
metadata: {name: pause-it, namespace: default}
action: SuspendQueue
target: {apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, name: myqueue}
"""
    assert vcctl("vcctl queue create myqueue --state Suspended").code == 0
    assert vcctl("vcctl queue get myqueue").rows[0][2] == "Suspended"
    assert vcctl("vcctl queue resume myqueue").code == 0

    assert vcctl("vcctl apply -f -", stdin=manifest).code == 0

    assert vcctl("vcctl queue get myqueue").rows[0][2] == "Suspended"


def test_guarantees(vcctl: Type):
    """The guarantee design: a guarantee, its limits, and the form `2c` that its example has."""
    node("n1", cpu="8", memory="32Gi")

    assert vcctl("vcctl queue create kept --guarantee cpu=2").code == 0
    refused = vcctl("vcctl queue create wrong --guarantee cpu=2c")
    too_much = vcctl("vcctl queue create greedy --guarantee cpu=100")

    assert refused.code == 1
    assert "2 or 2000m" in refused.err
    assert too_much.code == 1
    assert "8" in too_much.err
