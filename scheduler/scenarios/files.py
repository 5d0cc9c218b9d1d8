"""Scenario files: one scenario, a list of them, or {"cases": […]}, in YAML or JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from scheduler.documents import DocumentError, read_document
from scheduler.domain.mixes import Target
from scheduler.engine.policy import Policy
from scheduler.engine.presets import DEFAULT_POLICY
from scheduler.scenarios.clusters import Cluster, read_cluster
from scheduler.scenarios.fields import FieldError, Fields, entries_of
from scheduler.scenarios.objects import NAMESPACE, read_time
from scheduler.scenarios.policies import PolicyError, PolicyReading, policy_from
from scheduler.scenarios.vocabulary import SETTINGS

_REMARKS: Final = (
    "source",
    "expect",
    "relaxed",
    "unassertedExpect",
    "doubtful",
    "notes",
    "tags",
    "core",
    "about",
    "description",
    "file",
    "seed",
    "stable",
    "runs",
    "outcome",
    "outcomes",
    "invariants",
    "outcomeWithoutThatBehaviour",
    "tieBreakDependent",
)
"""Keys that are there for people and for tests; they do not change what happens."""

_NOT_RUNNABLE: Final = {
    "probe": (
        "asks the scheduler's insides a question instead of running a session, which only a test "
        "can do"
    ),
    "testPlugins": (
        "needs a plugin that exists only in a test; name a plugin by its dotted path in conf.tiers "
        "instead"
    ),
}


class ScenarioError(ValueError):
    """A scenario that cannot be run; the message says which, where, and why."""


@dataclass(frozen=True, slots=True)
class ScenarioStep:
    """One session of several: what is added before it and the actions it runs (None: those of the
    policy).
    """

    more: Cluster
    actions: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    policy: Policy
    cluster: Cluster
    steps: tuple[ScenarioStep, ...] = ()
    warnings: tuple[str, ...] = ()


def read_file(path: str, read_stdin: Callable[[], str]) -> list[Scenario]:
    """The scenarios of a file; "-" is the standard input. Raises `ScenarioError`."""
    try:
        if path == "-":
            text = read_stdin()
        else:
            text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError):
            reason = error.strerror
        else:
            reason = "it is not a text in UTF-8"
        raise ScenarioError(f"{path} cannot be read: {reason}") from None
    return read_scenarios(text, "standard input" if path == "-" else path)


def read_scenarios(text: str, source: str) -> list[Scenario]:
    try:
        scenarios: list[Scenario] = []
        for fields in _scenario_entries(read_document(text)):
            scenarios.append(_read_scenario(fields))
        return scenarios
    except (DocumentError, FieldError, PolicyError) as error:
        raise ScenarioError(f"{source}: {error}") from None


def _scenario_entries(document: object) -> list[Fields]:
    """One scenario, or the cases of a list, each with its place."""
    if isinstance(document, list):
        entries = entries_of(document, "")
    else:
        top = Fields(document, "")
        if "cases" in top:
            entries = _case_entries(top)
        else:
            entries = [top]
    if not entries:
        raise FieldError("", "there is no scenario in it")
    return entries


def _case_entries(top: Fields) -> list[Fields]:
    top.ignore("source", "upstreamCommit", "what", "name", "description", "notes")
    cases = top.items("cases")
    top.finish()
    return cases


def _read_scenario(fields: Fields) -> Scenario:
    for key, why in _NOT_RUNNABLE.items():
        if key in fields:
            raise fields.problem(key, why)
    name = fields.text("name", "scenario")
    reading = _read_conf(fields)
    cluster = replace(
        read_cluster(fields),
        taken_at=read_time(fields, "takenAt"),
        session=fields.whole("session", default=0),
        paused=fields.flag("paused", default=False),
        targets=tuple(_read_target(target) for target in fields.items("targets")),
    )
    steps = tuple(_read_step(step, cluster) for step in fields.items("steps"))
    fields.ignore(*_REMARKS)
    fields.finish()
    warnings = (*(str(warning) for warning in reading.warnings), *_without_effect(cluster))
    return Scenario(name, reading.policy, cluster, steps, warnings)


def _read_target(fields: Fields) -> Target:
    """A queue that made-up jobs of `simulate --load` go to."""
    target = Target(
        queue=fields.name("queue"),
        namespace=fields.text("namespace") or NAMESPACE,
        users=tuple(str(user) for user, _ in fields.values("users")) or ("alice",),
        takes_gpu=fields.flag("takesGpu", default=True),
        takes_cpu=fields.flag("takesCpu", default=True),
    )
    fields.finish()
    return target


def _without_effect(cluster: Cluster) -> Iterator[str]:
    groups = {group.key for group in cluster.podgroups}
    for pod in cluster.pods:
        if pod.podgroup not in groups:
            yield (
                f"pod {pod.key} belongs to the podgroup {pod.podgroup}, which is not there; it is "
                "left out"
            )


def _read_conf(fields: Fields) -> PolicyReading:
    conf = fields.mapping("conf")
    if conf is None:
        return PolicyReading(DEFAULT_POLICY)
    return policy_from(conf, may_be_idle=True)


def _read_step(fields: Fields, cluster: Cluster) -> ScenarioStep:
    if "actions" in fields:
        actions = [name for name, _ in fields.values("actions")]
    else:
        actions = None
    for name in actions or ():
        if name not in SETTINGS:
            raise fields.problem(
                "actions", f"“{name}” is not an action; there are {', '.join(SETTINGS)}"
            )
    more = Cluster()
    added = fields.mapping("add")
    if added:
        more = read_cluster(added, cluster.classes)
        added.finish()
    fields.ignore("session", "expect", "stateAfter", "notes")
    fields.finish()
    if actions is None:
        return ScenarioStep(more, None)
    return ScenarioStep(more, tuple(str(name) for name in actions))
