"""Affinity, anti-affinity and spread between pods: Kubernetes' own rules, and random clusters."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from scheduler.domain.pod_rules import ForeignPods, PodTerm, read_anti_affinity, read_rules
from scheduler.domain.reasons import ReasonCode
from scheduler.domain.workloads import Constraint, PodStatus
from scheduler.engine import run_session
from scheduler.engine.presets import DEFAULT_POLICY
from tests.engine.builders import cluster, job, node, queue

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def selector(**labels):
    return {"matchLabels": labels}


def apart(app="db", key=HOST, **term):
    """Anti-affinity: no pod of this app in the domain."""
    found = {"labelSelector": selector(app=app), "topologyKey": key, **term}
    return {"affinity": {"podAntiAffinity": {REQUIRED: [found]}}}


def beside(app="db", key=ZONE, **term):
    found = {"labelSelector": selector(app=app), "topologyKey": key, **term}
    return {"affinity": {"podAffinity": {REQUIRED: [found]}}}


def spread(app="db", key=ZONE, skew=1, **more):
    found = {
        "labelSelector": selector(app=app),
        "topologyKey": key,
        "maxSkew": skew,
        "whenUnsatisfiable": "DoNotSchedule",
        **more,
    }
    return {"spread": [found]}


def pod(app=None, *, affinity=None, spread=(), namespace="default", **constraint):
    labels = {} if app is None else {"app": app}
    rules = read_rules(affinity or {}, spread)
    return {"constraint": Constraint(rules=rules, **constraint), "labels": labels}


def host(name, zone="", cpu=8, **others):
    labels = {HOST: name}
    if zone:
        labels[ZONE] = zone
    return node(name, cpu=cpu, labels=labels, **others)


def placed(nodes, jobs):
    outcome = run_session(cluster(nodes, [queue("q")], jobs), DEFAULT_POLICY)
    return {bind.pod.partition("/")[2]: bind.node for bind in outcome.binds}


def hosts(*zones):
    return [host(f"n{number}", zone) for number, zone in enumerate(zones)]


THREE = ("a", "a", "b")  # the zones of n0, n1 and n2


def waiting(name="new", tasks=1, **given):
    return job(name, "q", tasks=tasks, cpu=1, pod=pod(**given))


def running(name, on, **given):
    return job(name, "q", tasks=1, cpu=1, on=on, pod=pod(**given))


# One pod against what runs already, with zones a, a, b: where may it go?
TABLE = [
    pytest.param([running("db", "n0", app="db")], apart(), {"n1", "n2"}, id="apart by host"),
    pytest.param([running("db", "n0", app="db")], apart(key=ZONE), {"n2"}, id="apart by zone"),
    pytest.param([running("db", "n0", app="db")], beside(), {"n0", "n1"}, id="beside by zone"),
    pytest.param([running("db", "n0", app="db")], beside(key=HOST), {"n0"}, id="beside by host"),
    pytest.param([], beside(), set(), id="beside nobody"),
    pytest.param([], beside("new"), {"n0", "n1", "n2"}, id="the first of its kind"),
    pytest.param(
        [running("other", "n2", app="new")], beside("new"), {"n2"}, id="not the first of its kind"
    ),
    pytest.param(
        [running("db", "n0", app="db")],
        apart(key="rack"),
        {"n0", "n1", "n2"},
        id="apart by a label that no node has",
    ),
    pytest.param(
        [running("db", "n0", app="db")],
        beside(key="rack"),
        set(),
        id="beside by a label that no node has",
    ),
    pytest.param(
        [running("db", "n0", app="db")],
        apart(namespaces=["elsewhere"]),
        {"n0", "n1", "n2"},
        id="apart from pods of another namespace",
    ),
    pytest.param(
        [running("db", "n0", app="db")],
        apart(namespaces=["elsewhere"], namespaceSelector={}),
        {"n1", "n2"},
        id="apart from pods of all namespaces",
    ),
    pytest.param(
        [running("db", "n0", app="db")],
        apart(labelSelector=None),
        {"n0", "n1", "n2"},
        id="no selector selects nobody",
    ),
    pytest.param(
        [running("db", "n0", app="db")],
        apart(labelSelector={}),
        {"n1", "n2"},
        id="an empty selector selects everybody",
    ),
    pytest.param(
        [running("db", "n0", app="db")],
        apart(
            labelSelector={
                "matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]
            }
        ),
        {"n1", "n2"},
        id="by an expression",
    ),
    pytest.param(
        [running("guard", "n0", app="guard", **apart("new"))],
        {},
        {"n1", "n2"},
        id="kept away by a pod that runs",
    ),
    pytest.param(
        [running("guard", "n0", app="guard", **apart("new", ZONE))],
        {},
        {"n2"},
        id="kept away from the zone of a pod that runs",
    ),
    pytest.param([running("db", "n0", app="new")], spread("new"), {"n2"}, id="spread over zones"),
    pytest.param(
        [running("db", "n0", app="new")],
        spread("new", skew=2),
        {"n0", "n1", "n2"},
        id="a skew of two",
    ),
    pytest.param(
        [running("x", "n0", app="new"), running("y", "n2", app="new")],
        spread("new", minDomains=3),
        set(),
        id="fewer domains than it wants",
    ),
    pytest.param(
        [running("db", "n0", app="new")],
        spread("db"),
        {"n0", "n1", "n2"},
        id="a spread of others it does not add to",
    ),
    pytest.param([], spread("new", "rack"), set(), id="a spread over a label that no node has"),
    pytest.param(
        [running("db", "n0", app="new")],
        {**spread("new"), "node_selector": ((ZONE, "a"),)},
        {"n0", "n1"},
        id="only the nodes that the selector allows count",
    ),
    pytest.param(
        [running("db", "n0", app="new")],
        {**spread("new", nodeAffinityPolicy="Ignore"), "node_selector": ((ZONE, "a"),)},
        set(),
        id="all nodes count if it says so",
    ),
]


@pytest.mark.parametrize(("others", "rules", "expected"), TABLE)
def test_a_pod_goes_only_where_the_rules_allow_it(others, rules, expected):
    given = {"app": "new", **rules}
    allowed = set()
    for name in ("n0", "n1", "n2"):
        nodes = [
            item if item.name == name else replace(item, unschedulable=True)
            for item in hosts(*THREE)
        ]
        if placed(nodes, [*others, waiting(**given)]):
            allowed.add(name)

    assert allowed == expected
    assert set(placed(hosts(*THREE), [*others, waiting(**given)]).values()) <= expected


def test_the_members_of_a_gang_keep_apart_from_each_other():
    three = waiting(tasks=3, app="db", **apart())

    assert set(placed(hosts("a", "a", "b"), [three]).values()) == {"n0", "n1", "n2"}
    assert placed(hosts("a", "a"), [three]) == {}


def test_a_gang_that_does_not_start_leaves_no_trace():
    too_many = waiting("many", tasks=3, app="db", **apart())
    one = waiting("one", app="db", **apart())

    assert set(placed(hosts("a", "a"), [too_many, one])) == {"one-0"}


def test_pods_that_want_company_wait_for_their_own_gang():
    """The worker comes first by its name, and goes where the master is."""
    worker = waiting("gang", tasks=2, app="a-worker", **beside("z-master", HOST))
    follower, master = worker.pods
    master = replace(master, **pod("z-master"))
    gang = replace(worker, pods=(follower, master))

    nodes = placed(hosts("a", "a"), [gang])

    assert nodes["gang-0"] == nodes["gang-1"]


def test_a_pod_that_is_leaving_still_keeps_others_away():
    leaving = running("db", "n0", app="db")
    leaving = replace(leaving, pods=(replace(leaving.pods[0], status=PodStatus.RELEASING),))

    outcome = run_session(
        cluster(hosts("a"), [queue("q")], [leaving, waiting(app="db", **apart())]), DEFAULT_POLICY
    )

    assert outcome.binds == ()
    assert outcome.reasons["default/new"].code is ReasonCode.RECLAIM_IN_PROGRESS


def foreign(app, *, anti=None, namespace="default"):
    terms = read_anti_affinity((anti or {}).get("affinity", {}), namespace)
    return ForeignPods(namespace, (("app", app),), 1, terms)


def test_pods_of_others_count():
    first, second = hosts("a", "b")
    nodes = [replace(first, foreign=(foreign("db"),)), second]

    assert placed(nodes, [waiting(app="x", **apart())]) == {"new-0": "n1"}
    assert placed(nodes, [waiting(app="x", **beside())]) == {"new-0": "n0"}
    assert placed(nodes, [waiting(app="db", **spread())]) == {"new-0": "n1"}


def test_the_anti_affinity_of_pods_of_others_keeps_ours_away():
    first, second = hosts("a", "b")
    nodes = [replace(first, foreign=(foreign("guard", anti=apart("x", ZONE)),)), second]

    assert placed(nodes, [waiting(app="x")]) == {"new-0": "n1"}
    assert set(placed(nodes, [waiting(tasks=10, app="y")]).values()) == {"n0", "n1"}


def test_the_reason_counts_the_nodes_and_names_the_rule():
    jobs = [running("db", "n0", app="db"), waiting(app="web", **apart(key=ZONE))]
    outcome = run_session(cluster(hosts("a", "a"), [queue("q")], jobs), DEFAULT_POLICY)

    reason = outcome.reasons["default/new"]

    assert reason.code is ReasonCode.POD_RULES_NOT_MET
    assert reason.message == "No node for it: 2 of 2 already run a pod of app=db in their zone."


def test_the_reason_of_a_gang_says_how_far_it_came():
    jobs = [waiting(tasks=3, app="db", **apart())]
    outcome = run_session(cluster(hosts("a", "a"), [queue("q")], jobs), DEFAULT_POLICY)

    reason = outcome.reasons["default/new"]

    assert reason.message == (
        "Places for 2 of the 3 pods, then no node: 2 of 2 already run a pod of app=db."
    )


def test_a_pod_that_asks_for_what_is_not_supported_is_not_placed_and_says_so():
    jobs = [waiting(app="db", unsupported=("hostPort",))]
    outcome = run_session(cluster(hosts("a"), [queue("q")], jobs), DEFAULT_POLICY)

    reason = outcome.reasons["default/new"]

    assert outcome.binds == ()
    assert reason.code is ReasonCode.NOT_SUPPORTED
    assert reason.message == "Its pods ask for what is not supported here: hostPort."


def test_nobody_without_rules_pays_for_them():
    snapshot = cluster(hosts("a"), [queue("q")], [waiting(app="db")])

    assert not snapshot.classes.has_rules
    assert snapshot.classes.values[0].labels == ()


# Random clusters


def random_rules(random):
    app = random.choice("xy")
    key = random.choice([HOST, ZONE])
    kind = random.choice([apart, beside, spread, None])
    if kind is None:
        return {}
    return kind(app, key)


def random_cluster(seed):
    random = Random(seed)
    count = random.randint(2, 5)
    nodes = [
        host(f"n{number}", random.choice(["a", "b", ""]), cpu=random.randint(1, 4))
        for number in range(count)
    ]
    jobs = []
    for number in range(random.randint(0, 3)):
        place = random.choice(nodes).name
        jobs.append(running(f"r{number}", place, app=random.choice("xyz"), **random_rules(random)))
    for number in range(random.randint(1, 4)):
        rules = random_rules(random)
        app = random.choice("xyz")
        tasks = random.randint(1, 3)
        jobs.append(waiting(f"w{number}", tasks=tasks, app=app, **rules))
    return nodes, jobs


class Oracle:
    """The rules once more, pod by pod and node by node, in plain words."""

    def __init__(self, nodes):
        self.nodes = {item.name: item.labels for item in nodes}
        self.pods = []  # (labels, rules, node)

    def domain(self, node, key):
        return self.nodes[node].get(key)

    def in_domain(self, term, node):
        here = self.domain(node, term.topology_key)
        found = []
        for labels, _, place in self.pods:
            matches = term.selector.of("default").matches("default", labels)
            if matches and here is not None and self.domain(place, term.topology_key) == here:
                found.append(place)
        return found

    def allows(self, labels, rules, node):
        return (
            all(not self.in_domain(term, node) for term in rules.anti_affinity)
            and all(self.has_company(term, labels, node) for term in rules.affinity)
            and all(self.keeps_skew(item, labels, node) for item in rules.spread)
            and not any(self.is_kept_away(other, labels, node) for other in self.pods)
        )

    def has_company(self, term, labels, node):
        if self.domain(node, term.topology_key) is None:
            return False
        if self.in_domain(term, node):
            return True
        anywhere = any(self.in_domain(term, other) for other in self.nodes)
        return not anywhere and term.selector.of("default").matches("default", labels)

    def is_kept_away(self, other, labels, node):
        _, rules, place = other
        for term in rules.anti_affinity:
            here = self.domain(node, term.topology_key)
            same = here is not None and self.domain(place, term.topology_key) == here
            if same and term.selector.of("default").matches("default", labels):
                return True
        return False

    def keeps_skew(self, item, labels, node):
        here = self.domain(node, item.topology_key)
        if here is None:
            return False
        term = PodTerm(item.selector, item.topology_key)
        counts = {}
        for other in self.nodes:
            domain = self.domain(other, item.topology_key)
            if domain is not None:
                counts[domain] = len(self.in_domain(term, other))
        own = int(item.selector.of("default").matches("default", labels))
        return counts[here] + own - min(counts.values()) <= item.max_skew

    def place(self, one, node):
        self.pods.append((one.labels, one.constraint.rules, node))


def carried_out(jobs, outcome):
    """The same jobs, with what the session decided."""
    places = {bind.pod: bind.node for bind in outcome.binds}
    found = []
    for work in jobs:
        pods = []
        for one in work.pods:
            if one.key in places:
                one = replace(one, node=places[one.key], status=PodStatus.RUNNING)
            pods.append(one)
        found.append(replace(work, pods=tuple(pods)))
    return found


@pytest.mark.parametrize("seed", range(80))
def test_every_placement_keeps_every_rule_and_whoever_is_left_has_no_place(seed):
    nodes, jobs = random_cluster(seed)
    oracle = Oracle(nodes)
    room = {item.name: item.allocatable["cpu"] // 1000 for item in nodes}
    for work in jobs:
        for one in work.pods:
            if one.node:
                oracle.place(one, one.node)
                room[one.node] -= 1
    binds = None
    while binds != ():
        outcome = run_session(cluster(nodes, [queue("q")], jobs), DEFAULT_POLICY)
        pods = {one.key: one for work in jobs for one in work.pods}
        binds = outcome.binds
        for bind in binds:
            one = pods[bind.pod]
            assert oracle.allows(one.labels, one.constraint.rules, bind.node), bind
            oracle.place(one, bind.node)
            room[bind.node] -= 1
        jobs = carried_out(jobs, outcome)

    for work in jobs:
        one = work.pods[0]
        if len(work.pods) == 1 and not one.node:
            places = [name for name in oracle.nodes if room[name] > 0]
            rules = one.constraint.rules
            assert not any(oracle.allows(one.labels, rules, name) for name in places), one
