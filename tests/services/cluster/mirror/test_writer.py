"""The mirror without an API server: what is heard, and what is then in the tables."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from scheduler.clusters.kubernetes.resources import QUEUES
from scheduler.clusters.kubernetes.values import Owner
from scheduler.clusters.kubernetes.watch_events import Removed
from scheduler.domain.resources import Resources
from scheduler.models import (
    Change,
    Job,
    Mirror,
    Namespace,
    Node,
    Pod,
    PodGroup,
    PriorityClass,
    Queue,
)
from scheduler.services.cluster.mirror.table import RowsAreMissing
from tests.mirrored import (
    BEGINNING,
    MadeUpCluster,
    job,
    leaving,
    moved,
    namespace,
    node,
    pod,
    podgroup,
    podgroup_of,
    priority_class,
    queue,
)

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def taken(name: str) -> Resources:
    return Node.objects.get(name=name).taken


def phases() -> dict[str, str]:
    return dict(Pod.objects.values_list("name", "phase"))


# Nodes and what others take of them


def test_a_node_has_what_the_cluster_says():
    cluster = MadeUpCluster()
    first = node("n1", cpu="8", labels={"zone": "a"}, unschedulable=True)

    cluster.has(first)

    row = Node.objects.get()
    assert (row.name, row.uid.hex) == ("n1", first.meta.uid.replace("-", ""))
    assert row.allocatable == Resources.parse({"cpu": "8", "memory": "32Gi", "pods": "110"})
    assert (row.labels, row.unschedulable, row.ready) == ({"zone": "a"}, True, True)


def test_pods_of_others_are_a_sum_on_the_node_and_no_rows():
    cluster = MadeUpCluster()

    cluster.has(
        node("n1"),
        pod("proxy", node="n1", cpu="500m", scheduler="default-scheduler"),
        pod("web", node="n1", cpu="2", scheduler="default-scheduler"),
    )

    assert taken("n1") == Resources.parse({"cpu": "2500m", "pods": "2"})
    assert not Pod.objects.exists()


def test_a_pod_of_others_that_ends_or_goes_gives_its_room_back():
    cluster = MadeUpCluster()
    first = pod("a", node="n1", cpu="1", scheduler="other")
    second = pod("b", node="n1", cpu="2", scheduler="other")
    cluster.has(node("n1"), first, second)

    cluster.has(moved(first, phase="Succeeded"))
    assert taken("n1") == Resources.parse({"cpu": "2", "pods": "1"})

    cluster.loses(second)
    assert taken("n1") == Resources()


def test_pods_that_were_there_before_their_node_are_counted():
    cluster = MadeUpCluster()
    cluster.has(pod("a", node="n1", cpu="1", scheduler="other"))

    cluster.has(node("n1"))

    assert taken("n1") == Resources.parse({"cpu": "1", "pods": "1"})


def test_a_heartbeat_that_changes_nothing_writes_nothing():
    cluster = MadeUpCluster()
    first = node("n1")
    cluster.has(first)
    before = Change.objects.count()

    written = cluster.has(moved(first))

    assert not written.anything
    assert Change.objects.count() == before


def test_a_node_that_is_gone_is_removed_and_its_pods_have_no_node():
    cluster = MadeUpCluster()
    first = node("n1")
    cluster.has(first, podgroup("g"), pod("p", group="g", node="n1"))

    cluster.loses(first)

    assert not Node.objects.exists()
    assert Pod.objects.get().node_id is None

    cluster.has(node("n1"))
    assert Pod.objects.get().node.name == "n1"


# Podgroups and pods


def test_a_gang_has_rows_with_the_uids_of_the_cluster():
    cluster = MadeUpCluster()
    member = pod("p-0", group="g", task="worker", task_index=3)

    cluster.has(node("n1"), queue("research"), podgroup("g", queue="research", least=2), member)

    row = Pod.objects.select_related("podgroup__queue").get()
    assert row.uid.hex == member.meta.uid.replace("-", "")
    assert (row.task, row.index, row.phase, row.created_at) == (
        "worker",
        3,
        "Pending",
        member.meta.created,
    )
    assert (row.podgroup.queue.name, row.podgroup.min_member) == ("research", 2)
    assert taken("n1") == Resources()


@pytest.mark.parametrize(
    ("changes", "phase"),
    [
        ({"node": "n1"}, "Bound"),
        ({"node": "n1", "phase": "Running"}, "Running"),
        ({"node": "n1", "phase": "Succeeded"}, "Succeeded"),
        ({"node": "n1", "phase": "Failed"}, "Failed"),
        ({"node": "n1", "phase": "Unknown"}, "Unknown"),
    ],
)
def test_a_pod_follows_the_cluster(changes, phase):
    cluster = MadeUpCluster()
    member = pod("p", group="g")
    cluster.has(node("n1"), podgroup("g"), member)

    cluster.has(moved(member, **changes))

    assert phases() == {"p": phase}
    assert Pod.objects.get().node.name == "n1"


def test_a_pod_that_is_being_deleted_is_leaving():
    cluster = MadeUpCluster()
    member = pod("p", group="g", node="n1")
    cluster.has(node("n1"), podgroup("g"), member)

    cluster.has(leaving(member))
    assert phases() == {"p": "Releasing"}

    cluster.loses(member)
    assert phases() == {}


def test_a_pod_that_comes_before_its_podgroup_takes_room_until_then():
    cluster = MadeUpCluster()
    cluster.has(node("n1"), pod("p", group="late", node="n1", cpu="2"))
    assert taken("n1") == Resources.parse({"cpu": "2", "pods": "1"})

    cluster.has(podgroup("late"))

    assert phases() == {"p": "Running"}
    assert taken("n1") == Resources()


def test_a_podgroup_that_goes_leaves_its_pods_as_room_that_is_taken():
    cluster = MadeUpCluster()
    group = podgroup("g")
    cluster.has(node("n1"), group, pod("p", group="g", node="n1", cpu="2"))

    cluster.loses(group)

    assert not PodGroup.objects.exists()
    assert not Pod.objects.exists()
    assert taken("n1") == Resources.parse({"cpu": "2", "pods": "1"})


def test_a_pod_of_the_same_name_is_another_pod():
    cluster = MadeUpCluster()
    first = pod("p", group="g", node="n1")
    cluster.has(node("n1"), podgroup("g"), first)
    row = Pod.objects.get()

    again = pod("p", group="g")
    cluster.store.take(_removed(first))
    cluster.has(again)

    now = Pod.objects.get()
    assert now.pk != row.pk
    assert now.uid.hex == again.meta.uid.replace("-", "")


def test_a_podgroup_of_the_same_name_takes_the_pods_over():
    cluster = MadeUpCluster()
    first = podgroup("g")
    cluster.has(first, pod("p", group="g"))

    cluster.store.take(_removed(first))
    cluster.has(podgroup("g", least=4))

    assert PodGroup.objects.get().min_member == 4
    assert phases() == {"p": "Pending"}


def test_pods_without_a_podgroup_share_one_of_their_owner():
    cluster = MadeUpCluster()
    owner = Owner("ReplicaSet", "web-1", "8b0e43d3-52b1-4b6c-8d1b-000000000001")
    cluster.has(namespace("team", queue="research"), queue("research"))

    members = [
        pod(f"web-{number}", namespace="team", about={"owner": owner}, min_member=2)
        for number in range(3)
    ]
    cluster.has(*members)

    group = PodGroup.objects.select_related("queue").get()
    assert (group.name, group.queue.name) == (f"podgroup-{owner.uid}", "research")
    assert (group.min_member, group.size) == (2, 3)
    assert group.pods.count() == 3

    cluster.loses(*members)
    assert not PodGroup.objects.exists()


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_queue_of_a_namespace_counts_whichever_of_them_comes_last(order):
    cluster = MadeUpCluster()
    team = namespace("team", queue="research")
    research = queue("research")
    bare = pod("bare", namespace="team")

    for place in order:
        cluster.has((team, research, bare)[place])
    assert PodGroup.objects.get().queue.name == "research"

    cluster.loses(research)
    assert not PodGroup.objects.exists()

    cluster.has(moved(team, queue=""))
    assert PodGroup.objects.get().queue.name == "default"


def test_the_podgroup_that_a_controller_makes_later_takes_the_place_of_ours():
    cluster = MadeUpCluster()
    bare = pod("bare", node="n1")
    cluster.has(node("n1"), bare)
    name = PodGroup.objects.get().name

    cluster.has(podgroup(name, least=1), moved(bare, group=name))

    assert PodGroup.objects.get().name == name
    assert phases() == {"bare": "Running"}
    assert taken("n1") == Resources()


def test_pods_behind_a_gate_are_left_alone():
    cluster = MadeUpCluster()
    gated = pod("p", group="g", gates=("kueue.x-k8s.io/admission",))
    cluster.has(podgroup("g"), gated)
    assert phases() == {}

    cluster.has(moved(gated, gates=()))
    assert phases() == {"p": "Pending"}


def test_a_podgroup_of_a_queue_that_does_not_exist_waits_for_it():
    cluster = MadeUpCluster()
    cluster.has(node("n1"), podgroup("g", queue="later"), pod("p", group="g", node="n1", cpu="3"))
    assert not PodGroup.objects.exists()
    assert taken("n1") == Resources.parse({"cpu": "3", "pods": "1"})

    cluster.has(queue("later"))

    assert PodGroup.objects.get().queue.name == "later"
    assert phases() == {"p": "Running"}
    assert taken("n1") == Resources()


@pytest.mark.parametrize(
    ("told", "least", "running", "phase"),
    [
        ("Inqueue", 2, 1, "Inqueue"),
        ("", 2, 1, "Pending"),
        ("", 2, 2, "Running"),
        ("Completed", 1, 0, "Completed"),
        ("Completed", 1, 1, "Running"),
    ],
)
def test_the_phase_of_a_podgroup(told, least, running, phase):
    cluster = MadeUpCluster()
    members = [pod(f"p-{number}", group="g", node="n1") for number in range(running)]

    cluster.has(node("n1"), podgroup("g", least=least, phase=told), *members)

    assert PodGroup.objects.get().phase == phase


def test_the_priority_of_a_podgroup_follows_its_class():
    cluster = MadeUpCluster()
    cluster.has(podgroup("g", priority_class="high"))
    assert PodGroup.objects.get().priority == 0

    high = priority_class("high", 1000)
    cluster.has(high)
    assert PodGroup.objects.get().priority == 1000

    cluster.has(priority_class("system-node-critical", 2_000_001_000))
    assert PriorityClass.objects.get(name="system-node-critical").value == 2_000_001_000


# Jobs and their podgroups


def names() -> dict[str, str]:
    """What the cluster calls each podgroup, by its name here."""
    return dict(PodGroup.objects.values_list("name", "object_name"))


def test_the_podgroup_of_a_job_has_the_name_of_the_job():
    cluster = MadeUpCluster()
    train = job("train", least=2)
    group = podgroup_of(train, phase="Running")

    cluster.has(node("n1"), train, group, pod("train-0", group=group.meta.name, node="n1"))

    row = PodGroup.objects.select_related("job").get()
    assert (row.name, row.object_name) == ("train", group.meta.name)
    assert row.object_uid.hex == group.meta.uid.replace("-", "")
    assert (row.job.name, row.phase, row.pods.count()) == ("train", "Running", 1)
    assert taken("n1") == Resources()


@pytest.mark.parametrize("group_first", [True, False])
def test_a_job_and_its_podgroup_are_one_row_whichever_comes_first(group_first):
    cluster = MadeUpCluster()
    train = job("train")
    pair = [train, podgroup_of(train)]
    if group_first:
        pair.reverse()

    for each in pair:
        cluster.has(each)

    assert names() == {"train": train.group_name}
    assert PodGroup.objects.get().job.name == "train"


def test_a_job_without_a_podgroup_waits_under_its_name():
    cluster = MadeUpCluster()

    cluster.has(queue("research"), job("train", queue="research", least=3))

    row = PodGroup.objects.select_related("queue", "job").get()
    assert (row.name, row.queue.name, row.job.name) == ("train", "research", "train")
    assert (row.phase, row.min_member, row.object_uid) == ("Pending", 3, None)


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Aborted", "Terminated"])
def test_a_job_that_has_ended_stays_as_long_as_it_is_in_the_cluster(phase):
    cluster = MadeUpCluster()
    train = job("train", phase="Running")
    group = podgroup_of(train, phase="Running")
    member = pod("train-0", group=group.meta.name, node="n1")
    cluster.has(node("n1"), train, group, member)
    row = PodGroup.objects.get()

    cluster.has(moved(train, phase=phase), moved(member, phase="Succeeded"))
    cluster.loses(group)

    stays = PodGroup.objects.get()
    assert (stays.pk, stays.name, stays.phase) == (row.pk, "train", "Completed")
    assert stays.job.phase == phase
    assert phases() == {"train-0": "Succeeded"}

    cluster.loses(train)
    assert not PodGroup.objects.exists()
    assert not Job.objects.exists()
    assert not Pod.objects.exists()


def test_a_job_that_had_ended_before_anybody_looked_is_there_too():
    cluster = MadeUpCluster()

    cluster.lists(job("train", phase="Completed"))

    assert PodGroup.objects.get().phase == "Completed"
    cluster.begin_anew()
    assert not cluster.lists().others
    assert not PodGroup.objects.exists()


def test_a_podgroup_that_outlives_its_job_stands_for_itself():
    cluster = MadeUpCluster()
    train = job("train")
    group = podgroup_of(train)
    cluster.has(train, group, pod("train-0", group=group.meta.name))

    cluster.loses(train)

    row = PodGroup.objects.get()
    assert (row.name, row.job) == (group.meta.name, None)
    assert phases() == {"train-0": "Pending"}


def test_a_job_that_is_made_anew_is_another_job():
    cluster = MadeUpCluster()
    first = job("train", phase="Completed")
    cluster.has(first)
    row = PodGroup.objects.get()

    again = job("train")
    cluster.store.take(_removed(first))
    cluster.has(again)

    assert names() == {"train": again.group_name}
    assert PodGroup.objects.get().pk != row.pk


def test_a_podgroup_of_somebody_else_keeps_its_name_beside_a_job():
    cluster = MadeUpCluster()
    train = job("train")
    group = podgroup_of(train)
    cluster.has(train, group, pod("train-0", group=group.meta.name))
    other = podgroup("train")

    written = cluster.has(other)

    assert names() == {"train": "train", group.meta.name: group.meta.name}
    assert PodGroup.objects.get(name=group.meta.name).job.name == "train"
    assert Pod.objects.get().podgroup.name == group.meta.name
    assert {"default/train", f"default/{group.meta.name}"} <= written.podgroups

    cluster.loses(other)
    assert names() == {"train": group.meta.name}
    assert Pod.objects.get().podgroup.name == "train"


def test_a_podgroup_with_the_name_of_its_job_is_the_jobs_own():
    """As earlier versions of Volcano named it."""
    cluster = MadeUpCluster()
    train = job("train", phase="Running")
    owner = Owner("Job", "train", train.meta.uid)
    group = podgroup("train", owner=owner)
    cluster.has(train, group, pod("train-0", group="train"))
    assert names() == {"train": "train"}
    assert PodGroup.objects.get().job.name == "train"

    cluster.has(podgroup_of(train))
    assert PodGroup.objects.get(job__name="train").object_name == train.group_name
    assert PodGroup.objects.count() == 2

    cluster.loses(group)
    assert names() == {"train": train.group_name}


def test_the_priority_of_a_job_without_a_podgroup_follows_its_class():
    cluster = MadeUpCluster()
    cluster.has(job("train", priority_class="high"))

    cluster.has(priority_class("high", 1000))

    assert PodGroup.objects.get().priority == 1000


def test_pages_are_told_of_a_job_by_its_name():
    cluster = MadeUpCluster()
    train = job("train")
    group = podgroup_of(train)
    cluster.has(train, group)

    written = cluster.has(pod("train-0", group=group.meta.name))

    assert written.podgroups == {"default/train"}


# Queues


def test_queues_are_imported_with_their_tree():
    cluster = MadeUpCluster()

    cluster.has(
        queue("a", "eng", weight=4, deserved={"cpu": "4"}),
        queue("eng"),
        queue("shut", state="Closed"),
    )

    rows = {row.name: row for row in Queue.objects.select_related("parent")}
    assert rows["a"].parent.name == "eng"
    assert (rows["a"].weight, rows["a"].deserved) == (4, Resources.parse({"cpu": "4"}))
    assert (rows["shut"].wish, rows["shut"].state) == ("Closed", "Closed")


def test_a_queue_whose_parent_is_missing_is_shown_below_root_with_a_warning():
    cluster = MadeUpCluster()
    cluster.has(queue("a", "gone"), queue("x", "y"), queue("y", "x"))

    rows = {row.name: row for row in Queue.objects.select_related("parent")}
    assert {rows[name].parent.name for name in ("a", "x", "y")} == {"root"}
    assert [warning["message"] for warning in rows["a"].warnings] == [
        "Its parent gone does not exist or is below it; it is shown below root."
    ]

    cluster.has(queue("below", "a"))
    assert Queue.objects.select_related("parent").get(name="below").parent.name == "a"

    cluster.has(queue("gone"))
    row = Queue.objects.select_related("parent").get(name="a")
    assert (row.parent.name, row.warnings) == ("gone", [])


def test_a_queue_that_breaks_a_rule_is_imported_with_a_condition():
    cluster = MadeUpCluster()

    cluster.has(queue("eng", guarantee={"cpu": "1"}), queue("a", "eng", guarantee={"cpu": "5"}))

    conditions = Queue.objects.get(name="eng").conditions
    assert [condition["type"] for condition in conditions] == ["HierarchyInvalid"]


def test_a_queue_that_is_gone_is_deleted_and_one_of_its_name_is_another_queue():
    cluster = MadeUpCluster()
    first = queue("research")
    cluster.has(first)
    old = Queue.objects.get(name="research").pk

    cluster.loses(first)
    assert not Queue.objects.filter(name="research").exists()

    cluster.has(queue("research"))
    assert Queue.objects.get(name="research").pk != old


def test_root_and_default_are_adopted_and_never_removed():
    cluster = MadeUpCluster()
    root = queue("root", "", weight=7)
    cluster.has(root, queue("default", weight=5))
    assert Queue.objects.get(name="default").weight == 5

    cluster.lists()

    assert set(Queue.objects.values_list("name", flat=True)) == {"root", "default"}


# Starts, lists and failures


def test_after_a_restart_only_differences_are_written():
    cluster = MadeUpCluster()
    stays = [node("n1"), podgroup("g"), pod("p", group="g", node="n1"), queue("research")]
    goes = [node("n2"), podgroup("h"), pod("q", group="h", node="n2"), queue("old")]
    cluster.lists(*stays, *goes, pod("x", node="n1", scheduler="other"))
    before = Change.objects.count()

    cluster.begin_anew()
    written = cluster.lists(*stays)

    assert written.nodes == {"n1", "n2"}  # n1 has lost a pod of others
    assert written.podgroups == {"default/h"}
    assert written.queues == {"old"}
    assert phases() == {"p": "Running"}
    assert taken("n1") == Resources()
    assert set(Node.objects.values_list("name", flat=True)) == {"n1"}
    assert Change.objects.count() - before == 5  # one change for each row, and none for the rest


def test_a_restart_with_nothing_new_writes_nothing():
    cluster = MadeUpCluster()
    everything = [node("n1"), podgroup("g"), pod("p", group="g", node="n1"), queue("research")]
    cluster.lists(*everything)
    before = Change.objects.count()

    cluster.begin_anew()
    written = cluster.lists(*everything)

    assert not written.anything
    assert Change.objects.count() == before


def test_the_positions_are_written_with_the_rows():
    cluster = MadeUpCluster()
    assert Mirror.objects.get().synced_at is None

    cluster.lists(node("n1"))

    mirror = Mirror.objects.get()
    assert mirror.positions["nodes"] == "1000"
    assert mirror.synced_at is not None


def test_a_thousand_pods_take_as_many_statements_as_one():
    cluster = MadeUpCluster()
    cluster.has(node("n1"), podgroup("g"))
    with CaptureQueriesContext(connection) as few:
        cluster.has(pod("first", group="g"))

    with CaptureQueriesContext(connection) as many:
        cluster.has(*(pod(f"p-{number}", group="g") for number in range(1000)))

    assert len(many) <= len(few)  # the class of the first was new
    assert Pod.objects.count() == 1001


def test_a_namespace_that_goes_takes_nothing_else_along():
    cluster = MadeUpCluster()
    team = namespace("team")
    cluster.has(team)
    assert Namespace.objects.filter(name="team").exists()

    cluster.loses(team)
    assert not Namespace.objects.filter(name="team").exists()
    assert Namespace.objects.filter(name="default").exists()
    assert not Job.objects.exists()


def _removed(value):
    from scheduler.clusters.kubernetes.watch_events import Removed
    from tests.mirrored import RESOURCES

    return Removed(RESOURCES[type(value)], value.meta.resource_version, value)


def test_a_queue_made_again_at_once_takes_over_what_names_it():
    cluster = MadeUpCluster()
    first = queue("research")
    work = job("train", queue="research")
    cluster.has(first, podgroup("gang", queue="research"), pod("p", group="gang"), work)

    cluster.store.take(Removed(QUEUES, first.meta.resource_version, first))
    cluster.has(queue("research"))

    new = Queue.objects.get(name="research")
    assert set(PodGroup.objects.values_list("queue_id", flat=True)) == {new.pk}
    assert Job.objects.get().queue_id == new.pk


def test_rows_that_somebody_else_deleted_are_noticed_and_written_again():
    cluster = MadeUpCluster()
    group = podgroup("gang")
    first = pod("p", group="gang")
    cluster.has(node("n1"), group, first)
    Pod.objects.all().delete()

    with pytest.raises(RowsAreMissing), transaction.atomic():
        cluster.has(moved(first, node="n1"))
    cluster.writer.load()
    cluster.settle()

    assert phases() == {"p": "Bound"}


def test_the_end_of_a_job_is_known_from_its_state():
    cluster = MadeUpCluster()
    ended = replace(job("done", phase="Completed"), phase_since=BEGINNING)

    cluster.has(ended, replace(job("runs", phase="Running"), phase_since=BEGINNING))

    assert Job.objects.get(name="done").finished_at == BEGINNING
    assert Job.objects.get(name="runs").finished_at is None


def test_a_new_status_alone_is_no_new_version_of_a_queue():
    """Whoever changes a queue that they have read is not told of a change that is none."""
    cluster = MadeUpCluster()
    first = queue("research", weight=2)
    cluster.has(first)
    read = Queue.objects.get(name="research").resource_version

    later = moved(first, status={"running": 3})
    cluster.has(later)
    assert Queue.objects.get(name="research").resource_version == read

    cluster.has(moved(later, spec=replace(later.spec, weight=5)))
    assert Queue.objects.get(name="research").resource_version > read
