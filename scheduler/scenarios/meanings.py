"""What the settings of a policy mean, for people, and what holds where they are not given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from scheduler.engine.policy import Policy


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of an action, or an argument of a plugin. `default` holds where it is not given."""

    owner: str  # the action or the plugin
    name: str
    default: object
    meaning: str

    def value_in(self, policy: Policy) -> object:
        """What holds under this policy; None if the policy leaves the action or plugin out."""
        given = _given_by(policy, self.owner)
        if given is None:
            return None
        return given.get(self.name, self.default)


def _given_by(policy: Policy, owner: str) -> dict[str, object] | None:
    if owner in policy.actions:
        return dict(policy.configurations.get(owner, {}))
    for plugin in policy.plugins():
        if plugin.name == owner:
            return dict(plugin.arguments)
    return None


SETTINGS_OF_PRESETS: Final = (
    Setting(
        "reclaim",
        "wholeGangs",
        False,
        "Only a queue that is below its deserved takes resources, only what it is short of, and "
        "only from queues that have more than their deserved of it. Whole gangs are evicted, or "
        "members beyond the minimum, and only if the gang that asks can then start. Where run "
        "times are declared, nothing is evicted if that loses more work than the gang gains by not "
        "waiting, unless for a guarantee.",
    ),
    Setting(
        "reclaim",
        "gainPercent",
        100,
        "With wholeGangs: how much work the gang must gain by not waiting, in percent of the work "
        "that is lost. A guarantee does not wait.",
    ),
    Setting(
        "reclaim",
        "waitSeconds",
        0,
        "With wholeGangs: nothing of another queue is evicted for a gang before it has waited this "
        "long for pods to end by themselves. A guarantee does not wait.",
    ),
    Setting(
        "reclaim",
        "waitPercent",
        0,
        "With wholeGangs: the gang must also have waited for this share of the time that the pods "
        "to be evicted have run, in percent. A guarantee does not wait.",
    ),
    Setting(
        "reclaim",
        "shortRunWaitSeconds",
        0,
        "With wholeGangs: a gang that would do less work in its whole run than an eviction loses "
        "waits first, at most this long. A second of that counts as four of its work. It needs "
        "declared run times (fumarole.io/run-seconds). A guarantee does not wait.",
    ),
    Setting(
        "reclaim",
        "minRunSeconds",
        0,
        "With wholeGangs: pods that started less than this time ago are not evicted for another "
        "queue. The time is four times as long after each eviction of the gang. A guarantee does "
        "not wait. A queue may have its own minimum running time.",
    ),
    Setting(
        "reclaim",
        "patienceSeconds",
        0,
        "With wholeGangs: pods that are expected to end within this time, or are late by less, are "
        "not evicted, and nothing is evicted for a queue whose gang has a place set aside that is "
        "free by then. A guarantee does not wait.",
    ),
    Setting(
        "reclaim",
        "patiencePercent",
        0,
        "With wholeGangs: a gang that declares its run time waits longer for a place that is set "
        "aside for it: this share of its run time, in percent, if that is more than "
        "patienceSeconds.",
    ),
    Setting(
        "preempt",
        "wholeGangs",
        False,
        "Inside a queue, a gang of higher priority evicts whole gangs of lower priority, or "
        "members beyond their minimum, and only if it can then start. Where run times are "
        "declared, it evicts nothing if that loses more work than it gains by not waiting.",
    ),
    Setting(
        "preempt",
        "gainPercent",
        100,
        "With wholeGangs: how much work the gang must gain by not waiting, in percent of the work "
        "that is lost.",
    ),
    Setting(
        "preempt",
        "minRunSeconds",
        0,
        "With wholeGangs: pods that started less than this time ago are not evicted for a gang of "
        "higher priority. The time is four times as long after each eviction of the gang.",
    ),
    Setting(
        "preempt",
        "patienceSeconds",
        0,
        "With wholeGangs: pods that are expected to end within this time, or are late by less, are "
        "not evicted for a gang of higher priority. It needs declared run times "
        "(fumarole.io/run-seconds).",
    ),
    Setting(
        "allocate",
        "setAside",
        0,
        "At most this many large gangs get a place in the future: nodes that take only pods that "
        "end in time, or that fit beside the gang. It needs declared run times "
        "(fumarole.io/run-seconds).",
    ),
    Setting(
        "capacity",
        "admission",
        "room",
        "Which gangs enqueue admits. room: those for which their queue has room now, as Volcano "
        "does. possible: all that can ever run within their queue's capability, so that no large "
        "gang keeps small ones out.",
    ),
    Setting(
        "capacity",
        "fillByWeight",
        False,
        "Queues that name no deserved divide what is left of their parent's by weight.",
    ),
    Setting(
        "capacity",
        "reserveGuarantees",
        False,
        "Room that a queue is guaranteed and does not use stays free for it. Only gangs that can "
        "be evicted for the guarantee may use it.",
    ),
    Setting(
        "scarcity",
        "scarcity.weight",
        10,
        "Pods without devices avoid nodes with devices such as GPUs, and nodes with devices are "
        "filled one after the other. How much more that counts than nodeorder and binpack.",
    ),
    Setting(
        "nodeorder",
        "leastrequested.weight",
        1,
        "How much an empty node is preferred. 0 packs pods on few nodes.",
    ),
)
"""Those that the presets differ in, and that they set."""

OTHER_SETTINGS: Final = (
    Setting(
        "reclaim",
        "breakGangs",
        True,
        "Without wholeGangs: reclaim may take a gang below its minimum if nothing else suffices.",
    ),
    Setting(
        "reclaim",
        "strictDeserved",
        False,
        "Without wholeGangs: a queue reclaims only while it stays within its deserved.",
    ),
    Setting(
        "reclaim",
        "suspendedVictims",
        "protect",
        "Whether pods of suspended queues may be reclaimed: protect or allow.",
    ),
    Setting(
        "shed",
        "graceSessions",
        3,
        "A gang that fell below its minimum keeps its other pods for this many sessions.",
    ),
    Setting(
        "backfill",
        "beyondDeserved",
        True,
        "Under proportion: idle room beyond the shares is lent to queues that want more.",
    ),
    Setting(
        "overcommit",
        "overcommit-factor",
        1.2,
        "Gangs are admitted until they ask for this many times the cluster.",
    ),
    Setting(
        "sla",
        "sla-waiting-time",
        None,
        "A gang that has waited for longer than this is admitted and served first.",
    ),
    Setting(
        "capacity",
        "hierarchyViolation",
        "subtree",
        "What stops where queues promise more than their parent has: subtree, session, or warn "
        "for nothing.",
    ),
    Setting(
        "capacity",
        "ancestorReclaimLevel",
        0,
        "This many levels above the leaf, a queue within its deserved may reclaim for the leaf.",
    ),
    Setting(
        "nodeorder", "mostrequested.weight", 0, "How much a node that is nearly full is preferred."
    ),
    Setting(
        "nodeorder",
        "balancedresource.weight",
        1,
        "How much a node is preferred whose cpu and memory are then equally full.",
    ),
    Setting("nodeorder", "nodeaffinity.weight", 2, "How much preferred node affinity counts."),
    Setting(
        "nodeorder", "tainttoleration.weight", 3, "How much taints that only prefer are avoided."
    ),
    Setting("binpack", "binpack.weight", 1, "How much filling up nodes counts."),
    Setting("binpack", "binpack.cpu", 1, "How much cpu counts in it."),
    Setting("binpack", "binpack.memory", 1, "How much memory counts in it."),
    Setting("binpack", "binpack.resources", "", "Other resources that count, with commas."),
    Setting("binpack", "binpack.resources.*", 1, "How much each of them counts."),
)

ALL_SETTINGS: Final = (*SETTINGS_OF_PRESETS, *OTHER_SETTINGS)
