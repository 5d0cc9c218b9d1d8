"""The plugins that come with the engine, by the name that a policy uses."""

from __future__ import annotations

import importlib
from typing import Final

from scheduler.engine.plugin import Plugin
from scheduler.engine.plugins.binpack import Binpack
from scheduler.engine.plugins.capacity import Capacity
from scheduler.engine.plugins.conformance import Conformance
from scheduler.engine.plugins.drf import Drf
from scheduler.engine.plugins.gang import GangPlugin
from scheduler.engine.plugins.nodeorder import NodeOrder
from scheduler.engine.plugins.overcommit import Overcommit
from scheduler.engine.plugins.predicates import Predicates
from scheduler.engine.plugins.priority import Priority
from scheduler.engine.plugins.proportion import Proportion
from scheduler.engine.plugins.scarcity import Scarcity
from scheduler.engine.plugins.sla import Sla

PLUGINS: Final[dict[str, type[Plugin]]] = {
    "binpack": Binpack,
    "capacity": Capacity,
    "conformance": Conformance,
    "drf": Drf,
    "gang": GangPlugin,
    "nodeorder": NodeOrder,
    "overcommit": Overcommit,
    "predicates": Predicates,
    "priority": Priority,
    "proportion": Proportion,
    "scarcity": Scarcity,
    "sla": Sla,
}


class UnknownPluginError(ValueError):
    """A plugin that is neither in the table nor a class at a dotted path; the message names it."""


def find_plugin(name: str) -> type[Plugin]:
    """The class of a plugin: from the table, or by dotted path `package.module.Class`.

    Raises `UnknownPluginError`.
    """
    if name in PLUGINS:
        return PLUGINS[name]
    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute) if module else None
    except (ImportError, AttributeError) as error:
        raise UnknownPluginError(f"plugin {name}: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Plugin)):
        raise UnknownPluginError(
            f"plugin {name} is not known; write one of {', '.join(PLUGINS)}, "
            "or the dotted path of a Plugin class"
        )
    return found
