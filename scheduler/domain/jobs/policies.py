"""The policies of a job: which action follows which event, read from a manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class JobAction(StrEnum):
    SYNC = "SyncJob"
    ABORT = "AbortJob"
    RESTART = "RestartJob"
    RESTART_TASK = "RestartTask"
    RESTART_POD = "RestartPod"
    TERMINATE = "TerminateJob"
    COMPLETE = "CompleteJob"
    RESUME = "ResumeJob"


class JobEvent(StrEnum):
    ANY = "*"
    POD_FAILED = "PodFailed"
    POD_EVICTED = "PodEvicted"
    TASK_COMPLETED = "TaskCompleted"
    TASK_FAILED = "TaskFailed"
    JOB_UNKNOWN = "Unknown"


EVENT_NAMES = {**{event.value: event for event in JobEvent}, "JobUnknown": JobEvent.JOB_UNKNOWN}


ACTION_NAMES = {
    **{action.value: action for action in JobAction},
    "Suspend": JobAction.ABORT,
    "Abort": JobAction.ABORT,
    "Resume": JobAction.RESUME,
    "Restart": JobAction.RESTART,
    "Cancel": JobAction.TERMINATE,
    "Terminate": JobAction.TERMINATE,
    "Complete": JobAction.COMPLETE,
}


@dataclass(frozen=True, slots=True)
class LifePolicy:
    """When one of these events happens, or a pod ends with this exit code, do that."""

    action: JobAction
    events: tuple[JobEvent, ...] = ()
    exit_code: int | None = None

    def answers(self, event: JobEvent, exit_code: int | None) -> bool:
        if self.exit_code is not None:
            return event is JobEvent.POD_FAILED and exit_code == self.exit_code
        return JobEvent.ANY in self.events or event in self.events


def action_for(
    event: JobEvent,
    exit_code: int | None,
    task: Sequence[LifePolicy],
    job: Sequence[LifePolicy],
) -> JobAction:
    """The task's own policies come before the job's; the first that answers decides.

    Without any the job just goes on.
    """
    for policy in (*task, *job):
        if policy.answers(event, exit_code):
            return policy.action
    return JobAction.SYNC


@dataclass(frozen=True, slots=True)
class PolicyReading:
    policies: tuple[LifePolicy, ...] = ()
    problems: tuple[str, ...] = field(default=())


def read_policies(stored: Sequence[object], place: str) -> PolicyReading:
    """Policies as a manifest has them: `event` or `events` or `exitCode`, and an `action`."""
    policies: list[LifePolicy] = []
    problems: list[str] = []
    for index, given in enumerate(stored):
        where = f"{place}[{index}]"
        entry: Mapping[str, object] = {}
        if isinstance(given, Mapping):
            entry = given
        action = ACTION_NAMES.get(str(entry.get("action")))
        names = entry.get("events") or []
        if not names and entry.get("event"):
            names = [entry["event"]]
        if not isinstance(names, list):
            names = [names]
        unknown = []
        for name in names:
            if str(name) not in EVENT_NAMES:
                unknown.append(str(name))
        code = entry.get("exitCode")
        problems += _policy_problems(where, entry, action, names, unknown, code)
        if action is not None and not unknown:
            events = tuple(EVENT_NAMES[str(name)] for name in names)
            policies.append(LifePolicy(action, events, code if isinstance(code, int) else None))
    problems += _contradicting_policies(stored, place)
    return PolicyReading(tuple(policies), tuple(problems))


def _contradicting_policies(stored: Sequence[object], place: str) -> list[str]:
    """What two policies both answer.

    Only the first would ever be followed, so the second is a mistake. Volcano's webhook refuses it
    too.
    """
    problems: list[str] = []
    answered: dict[JobEvent | int, int] = {}
    for index, given in enumerate(stored):
        if not isinstance(given, Mapping):
            continue
        for asked in _asked_by(given):
            first = answered.setdefault(asked, index)
            if first == index:
                continue
            field = "event" if isinstance(asked, JobEvent) else "exitCode"
            problems.append(
                f"{place}[{index}].{field}: {asked} is answered by {place}[{first}] already; "
                "one policy answers it"
            )
    events = [asked for asked in answered if isinstance(asked, JobEvent)]
    if JobEvent.ANY in answered and len(events) > 1:
        problems.append(
            f"{place}[{answered[JobEvent.ANY]}].event: * is every event, so no other policy may "
            "name one"
        )
    return problems


def _asked_by(entry: Mapping[str, object]) -> list[JobEvent | int]:
    """The events and the exit code that a policy answers, each once."""
    names = entry.get("events") or []
    if not isinstance(names, list):
        names = [names]
    asked: list[JobEvent | int] = []
    for name in (*names, entry.get("event")):
        if str(name) in EVENT_NAMES:
            asked.append(EVENT_NAMES[str(name)])
    code = entry.get("exitCode")
    if isinstance(code, int) and not isinstance(code, bool):
        asked.append(code)
    return list(dict.fromkeys(asked))


def _policy_problems(
    where: str,
    entry: Mapping[str, object],
    action: JobAction | None,
    names: list[object],
    unknown: list[str],
    code: object,
) -> list[str]:
    problems = []
    if action is None:
        problems.append(
            f"{where}.action: {entry.get('action')!r} is not an action; one of "
            f"{', '.join(sorted(set(ACTION_NAMES)))}"
        )
    if unknown:
        problems.append(
            f"{where}.event: {unknown[0]!r} is not an event; one of "
            f"{', '.join(sorted(EVENT_NAMES))}"
        )
    if bool(names) == (code is not None):
        problems.append(f"{where}: give either an event or an exitCode")
    if code is not None and not _is_failure(code):
        problems.append(f"{where}.exitCode: {code!r} is not an exit code of a failure")
    return problems


def _is_failure(code: object) -> bool:
    return isinstance(code, int) and not isinstance(code, bool) and code != 0
