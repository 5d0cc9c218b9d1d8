"""Volcano's lifecycle cases, and those derived from the design, against the pure functions: one
test for each case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from scheduler.admission.defaults import with_defaults
from scheduler.admission.reading.queue import read_queue
from scheduler.admission.reviews import Request, review, review_defaults
from scheduler.admission.rules.queues import check_queue
from scheduler.admission.rules.quotas import check_capability_above, check_children
from scheduler.admission.violations import Verdict, Violation
from scheduler.domain.lifecycle import (
    DerivedState,
    NotAllowed,
    QueueCommand,
    command_named,
    derive,
    judge,
    state_named,
)
from scheduler.domain.plans import Load, plan
from scheduler.domain.queues import QueueState, QueueTree
from tests.conformance.lifecycle_cases import (
    COMMAND_LINE,
    INTERNALS,
    OVERRIDDEN,
    Case,
    all_cases,
    facts_of,
    queue_of,
    stored_state,
    tree_of,
)

_PLURALS = {"queue": "queues", "job": "jobs", "podgroup": "podgroups", "pod": "pods"}
_OUR_DEFAULTS = {
    "spec.parent": "root",
    "spec.dequeueStrategy": "traverse",
    "spec.state": "Open",
}  # beyond Volcano's, by the issue
_SHAPE_OF_NAMES = (
    "invalid_name"  # the cases' own names are not always names that Kubernetes would take
)


def _cases(wanted: Callable[[Case], bool]) -> list[Any]:
    return [pytest.param(case, id=case.id) for case in all_cases() if wanted(case)]


def _runs(*operations: str) -> Callable[[Case], bool]:
    def wanted(case: Case) -> bool:
        matches = any(
            case.operation == operation or case.operation.endswith(operation)
            for operation in operations
        )
        return matches and not case.is_overridden and not case.is_left_out

    return wanted


def _judged(case: Case) -> Verdict:
    kind = _PLURALS[case.operation.split(".")[0]]
    when = case.when
    request = Request(
        when["verb"],
        when.get("request_name", ""),
        when.get("object"),
        when.get("old_object"),
    )
    return review(kind, request, tree_of(case.given.get("queues") or []), facts_of(case.given))


def _refusals(violations: Iterable[Violation]) -> list[Violation]:
    return [violation for violation in violations if violation.rule_id != _SHAPE_OF_NAMES]


def _assert_as_expected(violations: Iterable[Violation], expect: dict[str, Any]) -> None:
    refusals = _refusals(violations)
    if expect["allowed"]:
        assert refusals == []
        return
    rules = {violation.rule_id for violation in refusals}
    assert {expect["reason"], *expect.get("reasons", [])} <= rules
    text = " ".join(f"{violation.field} {violation.message}" for violation in refusals)
    assert [word for word in _words_to_find(expect) if word not in text] == []
    assert expect.get("field", "").split(" ")[0] in [
        "",
        *(violation.field for violation in refusals),
    ]


def _words_to_find(expect: dict[str, Any]) -> list[str]:
    """Names, fields and figures that the answer must tell."""
    figures = [
        expect[key]
        for key in ("resource", "value", "limit", "descendant_max", "offending_value")
        if isinstance(expect.get(key), str)
    ]
    sums = [
        amount
        for key in ("sum", "limit")
        if isinstance(expect.get(key), dict)
        for amount in expect[key].values()
    ]
    return [*expect.get("mentions", []), *figures, *sums, *expect.get("children", [])]


@pytest.mark.parametrize("case", _cases(_runs(".admission.validate")))
def test_admission_answers_as_the_case_says(case: Case):
    verdict = _judged(case)

    _assert_as_expected(verdict.violations, case.expect)


@pytest.mark.parametrize("case", _cases(_runs(".admission.mutate")))
def test_defaulting_sets_what_the_case_says(case: Case):
    kind = _PLURALS[case.operation.split(".")[0]]

    verdict, written = review_defaults(
        kind,
        Request(case.when["verb"], new=case.when["object"]),
        facts_of(case.given),
    )

    assert verdict.allowed is case.expect["allowed"]
    found = {_dotted(path): value for path, value in written}
    ours = {
        path: value
        for path, value in found.items()
        if kind == "queues" and path not in case.expect["set"]
    }
    assert {path: value for path, value in found.items() if path not in ours} == case.expect["set"]
    assert ours.items() <= _OUR_DEFAULTS.items()


def _dotted(path: tuple[str | int, ...]) -> str:
    if path[:2] == ("metadata", "annotations"):
        return f"metadata.annotations[{path[2]}]"
    return ".".join(str(step) for step in path)


@pytest.mark.parametrize("case", _cases(_runs("queue.api", "job.api", "podgroup.api")))
def test_the_whole_way_through_defaults_and_checks_ends_as_the_case_says(case: Case):
    kind = _PLURALS[case.operation.split(".")[0]]
    facts = facts_of(case.given)
    request = Request(case.when["verb"], new=case.when["object"])
    _, defaults = review_defaults(kind, request, facts)
    stored = with_defaults(case.when["object"], defaults)

    verdict = review(
        kind,
        replace(request, new=stored, old=case.when.get("old_object")),
        tree_of(case.given.get("queues") or []),
        facts,
    )

    _assert_as_expected(verdict.violations, case.expect)
    for path, value in case.expect.get("stored", {}).items():
        section, field = path.split(".")
        assert stored[section][field] == value


@pytest.mark.parametrize("case", _cases(_runs("queue.rule.capability_vs_ancestor")))
def test_capability_is_compared_with_the_nearest_ancestor(case: Case):
    proposed = queue_of(case.when["object"])

    violations = list(
        check_capability_above(proposed, tree_of(case.given["queues"]).with_queue(proposed))
    )

    _assert_as_expected(violations, case.expect)


@pytest.mark.parametrize("case", _cases(_runs("queue.rule.children_constraints")))
def test_children_are_compared_with_the_queue_itself(case: Case):
    proposed = queue_of(case.when["object"])
    children = [queue_of(child) for child in case.when["children"]]
    named = {child.name for child in children}
    others = [
        queue
        for queue in tree_of(case.given["queues"])
        if queue.parent != proposed.name or queue.name in named
    ]
    tree = QueueTree(
        [
            *(queue for queue in others if queue.name not in {*named, proposed.name}),
            *children,
            proposed,
        ]
    )

    violations = list(check_children(proposed, tree))

    _assert_as_expected(violations, case.expect)


@pytest.mark.parametrize("case", _cases(_runs("queue.state.resolve")))
def test_a_stored_state_is_read(case: Case):
    state = state_named(case.given["queue"]["status"]["state"])

    assert (state.value if state else None) == case.expect["handler_state"]


def _executed(case: Case) -> tuple[QueueState, str]:
    """The state after an action on a queue that stands alone below root, and the way it took."""
    queue = replace(queue_of(case.given["queue"]), parent="root")
    stored = stored_state(case.given["queue"])
    tree = QueueTree([queue_of({"metadata": {"name": "root"}}), queue])
    live = {queue.name: len(case.given["podgroups"])}
    unknown = {queue.name} if stored is QueueState.UNKNOWN else set()
    command = command_named(case.when["action"])
    wish = None
    if command:
        standings = derive(tree, live, unknown) | {
            queue.name: DerivedState(stored or QueueState.OPEN)
        }
        wish = judge(tree, standings, queue.name, command, live=live, unknown=unknown).requested
    if wish:
        tree = tree.with_queue(replace(queue, state=wish))
        unknown = set()
    return derive(tree, live, unknown)[
        queue.name
    ].state, command.verb if command and wish else "sync"


@pytest.mark.parametrize("case", _cases(_runs("queue.state.execute")))
def test_an_action_leads_to_the_state_of_the_case(case: Case):
    state, way = _executed(case)

    assert state == case.expect["state"]
    assert case.expect.get("path", way) == way


@pytest.mark.parametrize("case", _cases(_runs("queue.sync")))
def test_a_refresh_stores_the_derived_state(case: Case):
    tree = tree_of(case.given["queues"])

    assert derive(tree, {})[case.when["queue"]].state == case.expect["stored_state"]


class _Cluster:
    """Queues and podgroups that the steps of a sequence act on."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.tree = tree_of(given["queues"])
        self.live: dict[str, int] = {}
        for podgroup in given.get("podgroups") or []:
            queue = podgroup["spec"]["queue"]
            self.live[queue] = self.live.get(queue, 0) + 1
        self.errors: list[NotAllowed] = []

    def standings(self) -> dict[str, DerivedState]:
        return derive(self.tree, self.live)

    def step(self, step: dict[str, Any]) -> None:
        if "command" in step:
            self._command(step["target"], QueueCommand(step["command"]))
        elif "create" in step:
            self._create(step["create"])
        elif "update" in step:
            self._move(step["update"], step["set"])
        elif "delete_podgroup" in step:
            self.live[step["delete_podgroup"]["spec"]["queue"]] -= 1
        else:
            assert "sync" in step, step  # nothing to do: states are derived, never out of date

    def _command(self, name: str, command: QueueCommand) -> None:
        loads = {queue: Load(running=count) for queue, count in self.live.items()}
        try:
            effect = plan(self.tree, name, command, loads=loads)
        except NotAllowed as error:
            self.errors.append(error)
            return
        if effect.requested:
            self.tree = self.tree.with_queue(replace(self.tree[name], state=effect.requested))

    def _create(self, manifest: dict[str, Any]) -> None:
        reading = read_queue(manifest)
        assert reading.value
        assert check_queue(reading.value.spec, self.tree, facts_of({})).allowed
        self.tree = self.tree.with_queue(reading.value.spec)

    def _move(self, name: str, fields: dict[str, Any]) -> None:
        assert list(fields) == ["spec.parent"]
        moved = replace(self.tree[name], parent=fields["spec.parent"])
        assert check_queue(moved, self.tree, facts_of({}), old=self.tree[name]).allowed
        self.tree = self.tree.with_queue(moved)


@pytest.mark.parametrize("case", _cases(_runs("sequence")))
def test_a_sequence_of_commands_ends_as_the_case_says(case: Case):
    cluster = _Cluster(case.given)

    for step in case.when["steps"]:
        cluster.step(step)
        assert {
            name: cluster.standings()[name].state for name in step.get("wait_for", {})
        } == step.get("wait_for", {})

    standings = cluster.standings()
    assert {name: standings[name].state for name in case.expect["final"]} == case.expect["final"]
    for name, marks in case.expect.get("annotations", {}).items():
        assert marks == {
            "volcano.sh/closed-by-parent": "true" if standings[name].closed_by else "false"
        }
    for expected in case.expect.get("errors", []):
        error = next(error for error in cluster.errors if error.queue == expected["target"])
        assert error.rule_id == expected["reason"]
        assert [word for word in expected["mentions"] if word not in error.message] == []


# What happens instead, where a decision overrides a case.


def _named(name: str) -> Case:
    return next(case for case in all_cases() if case.name == name)


@pytest.mark.parametrize(
    "name",
    [
        "Normal Case Queue With Open State Can Be Deleted (Until close queue in kubectl supported)",
        "Delete queue without child queue",
    ],
)
def test_instead_of_any_state_only_a_closed_queue_is_deleted(name: str):
    verdict = _judged(_named(name))

    assert [violation.rule_id for violation in verdict.violations] == ["queue_not_closed"]


@pytest.mark.parametrize("action", ["CloseQueue", "SuspendQueue", "ResumeQueue"])
def test_instead_of_closed_a_queue_with_podgroups_is_closing(action: str):
    state, _ = _executed(_named(f"Closed + {action}, 1 podgroups"))

    assert state is QueueState.CLOSING


@pytest.mark.parametrize(
    "name",
    [name for name, reason in OVERRIDDEN.items() if reason == "a guarantee needs no deserved"],
)
def test_instead_of_being_refused_a_guarantee_without_deserved_is_admitted(name: str):
    assert _judged_as_validation(_named(name)).violations == ()


def _judged_as_validation(case: Case) -> Verdict:
    return review(
        "queues",
        Request("CREATE", new=case.when["object"]),
        tree_of(case.given["queues"]),
        facts_of(case.given),
    )


def test_instead_of_two_reasons_a_negative_guarantee_has_one():
    verdict = _judged(_named("Queue with negative guarantee should be rejected"))

    assert [(violation.rule_id, violation.field) for violation in verdict.violations] == [
        ("negative_quantity", "spec.guarantee.resource.cpu")
    ]


def test_instead_of_being_refused_a_closing_queue_can_be_edited():
    assert _judged(_named("update of a Closing queue")).allowed


def test_instead_of_being_admitted_a_podgroup_for_a_parent_queue_is_refused():
    verdict = _judged(_named("podgroup into a non-leaf queue"))

    assert [violation.rule_id for violation in verdict.violations] == ["queue_not_leaf"]


# Nothing is forgotten.

_RUN_HERE = (
    ".admission.validate",
    ".admission.mutate",
    ".api",
    "queue.rule.capability_vs_ancestor",
    "queue.rule.children_constraints",
    "queue.state.resolve",
    "queue.state.execute",
    "queue.sync",
    "sequence",
)


@pytest.mark.parametrize("case", _cases(lambda _: True))
def test_every_case_is_run_or_has_a_reason_not_to_be(case: Case):
    is_run = case.operation.endswith(_RUN_HERE)

    assert is_run or case.operation in COMMAND_LINE or case.operation in INTERNALS


def test_every_overridden_case_is_there():
    assert set(OVERRIDDEN) == {case.name for case in all_cases() if case.is_overridden}


def test_only_pairs_that_can_not_happen_are_left_out_of_the_state_machine():
    left_out = [case for case in all_cases() if case.can_not_happen]

    assert left_out
    assert all("can never produce this pairing" in case.data["note"] for case in left_out)
