"""Policy files in Volcano's form, read into the engine's `Policy` and written back.

Whatever is wrong is found in one pass and named with its place; a policy with any problem is
refused as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import yaml

from scheduler.documents import POLICY_LIMIT, DocumentError, read_document
from scheduler.engine.arguments import number
from scheduler.engine.policy import Flag, PluginConfig, Policy, Tier
from scheduler.engine.presets import DEFAULT_POLICY
from scheduler.scenarios import vocabulary
from scheduler.scenarios.fields import FieldError, Fields, entries_of, read_flag, shown
from scheduler.scenarios.outside import outside_plugin_problem
from scheduler.scenarios.vocabulary import Reader

_SAME_QUESTION: Final = (Flag.JOB_ENQUEUED, Flag.ALLOCATABLE, Flag.RECLAIMABLE, Flag.PREEMPTIVE)


@dataclass(frozen=True, slots=True)
class Notice:
    """One problem or warning and where it is, such as `tiers[1].plugins[0].arguments.foo`."""

    place: str
    message: str

    def __str__(self) -> str:
        if self.place:
            return f"{self.place}: {self.message}"
        return self.message


class PolicyError(ValueError):
    """A policy that cannot be used; `problems` names every place."""

    def __init__(self, problems: tuple[Notice, ...]) -> None:
        self.problems = problems
        super().__init__("; ".join(str(problem) for problem in problems))


@dataclass(frozen=True, slots=True)
class PolicyReading:
    """A usable policy, and what in its text has no effect here."""

    policy: Policy
    warnings: tuple[Notice, ...] = ()


@dataclass(slots=True)
class _Notices:
    problems: list[Notice] = field(default_factory=list)
    warnings: list[Notice] = field(default_factory=list)

    def refuse(self, place: str, message: str) -> None:
        self.problems.append(Notice(place, message))

    def warn(self, place: str, message: str) -> None:
        self.warnings.append(Notice(place, message))

    def attempt(self, read: Callable[..., Any], *arguments: object, otherwise: Any = None) -> Any:
        """What `read` gives; where it complains, the complaint is kept and reading goes on."""
        try:
            return read(*arguments)
        except FieldError as error:
            self.refuse(error.place, error.problem)
            return otherwise


def read_policy(text: str) -> PolicyReading:
    """From the text of a `volcano-scheduler.conf`. Raises `PolicyError`."""
    try:
        document = read_document(text, POLICY_LIMIT)
        return policy_from(Fields(document, ""))
    except (DocumentError, FieldError) as error:
        raise PolicyError((Notice("", str(error)),)) from None


def policy_from(fields: Fields, *, may_be_idle: bool = False) -> PolicyReading:
    """From a mapping that was already read.

    `may_be_idle`: no action at all is allowed, for scenarios that only look at shares.
    """
    notices = _Notices()
    unlisted = notices.attempt(fields.flag, "unlistedFlags", True, otherwise=True)
    policy = Policy(
        actions=_read_actions(fields, notices, may_be_idle),
        tiers=_read_tiers(fields, notices),
        configurations=_read_configurations(fields, notices),
        unlisted_flags=unlisted,
    )
    _refuse_unknown_sections(fields, notices)
    _refuse_two_answers(policy, fields, notices)
    if notices.problems:
        raise PolicyError(tuple(notices.problems))
    return PolicyReading(policy, tuple(notices.warnings))


def _refuse_unknown_sections(fields: Fields, notices: _Notices) -> None:
    for key in vocabulary.UNUSED_SECTIONS & set(fields):
        fields.ignore(key)
        notices.warn(fields.at(key), "is known to Volcano and not used here")
    fields.ignore("pluginsListedButNotLoaded")
    notices.attempt(fields.finish)


def _read_actions(fields: Fields, notices: _Notices, may_be_idle: bool) -> tuple[str, ...]:
    actions = notices.attempt(_action_names, fields, otherwise=[])
    if not actions and not may_be_idle and not notices.problems:
        notices.refuse(
            fields.at("actions"),
            "must name at least one action, such as “enqueue, allocate, backfill”",
        )
    for name, place in actions:
        if name not in vocabulary.SETTINGS:
            notices.refuse(
                place, f"{shown(name)} is not an action; there are {', '.join(vocabulary.SETTINGS)}"
            )
    return tuple(name for name, _ in actions)


def _action_names(fields: Fields) -> list[tuple[str, str]]:
    """A text with commas as Volcano writes it, or a list."""
    written = fields.take("actions")
    if isinstance(written, str):
        if written.strip():
            parts = written.split(",")
        else:
            parts = []
        found: list[tuple[str, str]] = []
        for index, part in enumerate(parts):
            found.append((part.strip(), f"{fields.at('actions')}[{index}]"))
        return found
    result: list[tuple[str, str]] = []
    for name, place in fields.values("actions"):
        result.append((str(name), place))
    return result


def _read_tiers(fields: Fields, notices: _Notices) -> tuple[Tier, ...]:
    tiers: list[Tier] = []
    seen: set[str] = set()
    for entry, place in notices.attempt(fields.values, "tiers", otherwise=[]):
        plugins = notices.attempt(_plugins_of, entry, place, otherwise=[])
        tier = []
        for plugin in plugins:
            config = _read_plugin(plugin, seen, notices)
            if config is not None:
                tier.append(config)
        tiers.append(tuple(tier))
    return tuple(tiers)


def _plugins_of(entry: object, place: str) -> list[Fields]:
    """A tier is `plugins: […]` in a policy file and a bare list in a scenario."""
    if isinstance(entry, list):
        return entries_of(entry, place)
    tier = Fields(entry, place)
    plugins = tier.items("plugins")
    tier.finish()
    return plugins


def _read_plugin(fields: Fields, seen: set[str], notices: _Notices) -> PluginConfig | None:
    """None for a plugin that is left out."""
    name = notices.attempt(fields.name, "name", otherwise="")
    if name in vocabulary.UNUSED_PLUGINS:
        notices.warn(fields.at("name"), f"the plugin {name} is known to Volcano and not used here")
        return None
    if name in seen:
        notices.refuse(fields.at("name"), f"the plugin {shown(name)} is listed twice")
    seen.add(name)
    problem = _name_problem(name)
    if problem:
        notices.refuse(fields.at("name"), problem)
    return PluginConfig(
        name, _read_flags(fields, notices), _read_plugin_arguments(name, fields, notices)
    )


def _name_problem(name: str) -> str:
    if not name or name in vocabulary.ARGUMENTS:
        return ""
    if "." in name:
        return outside_plugin_problem(name)
    return f"{shown(name)} is not a plugin; there are {', '.join(sorted(vocabulary.ARGUMENTS))}"


def _read_flags(fields: Fields, notices: _Notices) -> dict[Flag, bool]:
    flags: dict[Flag, bool] = {}
    for key in fields:
        if key in ("name", "arguments"):
            continue
        name = _flag_name(key)
        value = notices.attempt(read_flag, fields.take(key), fields.at(key))
        if name in vocabulary.UNUSED_FLAGS:
            notices.warn(fields.at(key), "is known to Volcano and not used here")
        elif name not in vocabulary.FLAGS:
            _unknown_flag(fields.at(key), notices)
        elif value is not None:
            _keep_flag(flags, vocabulary.FLAGS[name], value, fields.at(key), notices)
    return flags


def _unknown_flag(place: str, notices: _Notices) -> None:
    """The name matters more than its value: a complaint about the value is replaced."""
    notices.problems = [problem for problem in notices.problems if problem.place != place]
    notices.refuse(place, "is not a known key; remove it or correct its spelling")


def _keep_flag(
    flags: dict[Flag, bool],
    flag: Flag,
    value: bool,
    place: str,
    notices: _Notices,
) -> None:
    if flags.setdefault(flag, value) != value:
        notices.refuse(place, "is given in both spellings, with different values")


def _flag_name(key: str) -> str:
    """`enableJobOrder` and `enabledJobOrder` are the same flag: jobOrder."""
    for head in ("enabled", "enable"):
        rest = key.removeprefix(head)
        if rest != key and rest[:1].isupper():
            return rest[0].lower() + rest[1:]
    return ""


def _read_plugin_arguments(name: str, fields: Fields, notices: _Notices) -> dict[str, object]:
    arguments = notices.attempt(fields.mapping, "arguments")
    if arguments is None:
        return {}
    if "." in name:
        return {key: arguments.take(key) for key in arguments}
    unused = vocabulary.UNUSED_ARGUMENTS.get(name, frozenset())
    read = _read_arguments(arguments, vocabulary.ARGUMENTS.get(name, {}), unused, notices)
    return _with_lifted_factor(read, arguments, notices)


def _with_lifted_factor(
    arguments: dict[str, object],
    fields: Fields,
    notices: _Notices,
) -> dict[str, object]:
    """Volcano reads a factor below 1 as its default."""
    factor = arguments.get("overcommit-factor")
    if not isinstance(factor, float) or factor >= 1:
        return arguments
    default = vocabulary.VOLCANO_OVERCOMMIT
    notices.warn(
        fields.at("overcommit-factor"),
        f"a factor below 1 would admit nothing into a full cluster; {default} is used",
    )
    return {**arguments, "overcommit-factor": default}


def _read_arguments(
    fields: Fields,
    readers: Mapping[str, Reader],
    unused: frozenset[str],
    notices: _Notices,
) -> dict[str, object]:
    found: dict[str, object] = {}
    for key in fields:
        value = fields.take(key)
        place = fields.at(key)
        reader = vocabulary.reader_of(key, readers)
        if reader is not None:
            found[key] = notices.attempt(reader, value, place)
        elif vocabulary.is_unused(key, unused):
            notices.warn(place, "is known to Volcano and not used here")
        else:
            notices.refuse(place, _unknown_argument(readers))
    return found


def _unknown_argument(readers: Mapping[str, Reader]) -> str:
    if readers:
        return f"is not a known argument; there are {', '.join(readers)}"
    return "is not a known argument; there are none here"


def _read_configurations(fields: Fields, notices: _Notices) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    for entry in notices.attempt(fields.items, "configurations", otherwise=[]):
        name = notices.attempt(entry.name, "name", otherwise="")
        arguments = notices.attempt(entry.mapping, "arguments")
        notices.attempt(entry.finish)
        if name in vocabulary.UNUSED_CONFIGURATIONS:
            notices.warn(
                entry.at("name"), f"the action {name} is known to Volcano and not used here"
            )
        elif name not in vocabulary.SETTINGS:
            notices.refuse(
                entry.at("name"),
                f"{shown(name)} is not an action; there are {', '.join(vocabulary.SETTINGS)}",
            )
        elif name in found:
            notices.refuse(entry.at("name"), f"the action {name} is configured twice")
        else:
            unused = vocabulary.UNUSED_SETTINGS.get(name, frozenset())
            found[name] = (
                _read_arguments(arguments, vocabulary.SETTINGS[name], unused, notices)
                if arguments
                else {}
            )
    return {name: settings for name, settings in found.items() if settings}


def _refuse_two_answers(policy: Policy, fields: Fields, notices: _Notices) -> None:
    """`proportion` and `capacity` may stand together only as long as they do not answer the same
    question, save queue order.
    """
    both = {}
    for plugin in policy.plugins():
        if plugin.name in ("proportion", "capacity"):
            both[plugin.name] = plugin
    if len(both) < 2:
        return
    shared = []
    for flag in _SAME_QUESTION:
        if all(policy.enables(plugin, flag) for plugin in both.values()):
            shared.append(flag)
    if shared:
        questions = ", ".join(f"enable{flag.value[0].upper()}{flag.value[1:]}" for flag in shared)
        notices.refuse(
            fields.at("tiers"),
            f"proportion and capacity both answer {questions}; switch these off in one of the two",
        )


def write_policy(policy: Policy) -> str:
    """Volcano's YAML; read again it gives the same policy."""
    return yaml.safe_dump(policy_document(policy), sort_keys=False, allow_unicode=True)


def policy_document(policy: Policy) -> dict[str, Any]:
    tiers = []
    for tier in policy.tiers:
        tiers.append({"plugins": [_plugin_document(plugin) for plugin in tier]})
    written: dict[str, Any] = {
        "actions": ", ".join(policy.actions),
        "tiers": tiers,
    }
    if policy.configurations:
        written["configurations"] = []
        for name, settings in policy.configurations.items():
            written["configurations"].append({"name": name, "arguments": dict(settings)})
    if not policy.unlisted_flags:
        written["unlistedFlags"] = "off"
    return written


def _plugin_document(plugin: PluginConfig) -> dict[str, Any]:
    flags = {}
    for flag, on in plugin.flags.items():
        flags[f"enable{flag.value[0].upper()}{flag.value[1:]}"] = on
    if plugin.arguments:
        arguments = {"arguments": dict(plugin.arguments)}
    else:
        arguments = {}
    return {"name": plugin.name, **flags, **arguments}


def policy_of(text: str | None) -> Policy:
    """Of a text that was checked when it was written; None is the built-in policy."""
    if text is None:
        return DEFAULT_POLICY
    return _read_checked(text)


@lru_cache(maxsize=8)
def _read_checked(text: str) -> Policy:
    return read_policy(text).policy


def min_run_seconds_of(policy: Policy) -> int:
    """How long pods run before reclaim may evict them, where no queue says anything else."""
    return int(number(policy.configurations.get("reclaim", {}), "minRunSeconds", 0))


def default_policy_text() -> str:
    return write_policy(DEFAULT_POLICY)
