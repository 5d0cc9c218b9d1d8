"""Plugins from outside, named in a policy by their dotted path."""

from __future__ import annotations

from scheduler.scenarios.fields import shown


def outside_plugin_problem(path: str) -> str:
    """Why the plugin at this path cannot be used; empty when it can."""
    from scheduler.engine.plugins import find_plugin

    try:
        find_plugin(path)
    # whatever a module from outside does when it is imported, only the policy is refused
    except Exception as error:
        return f"{shown(path)} cannot be loaded as a plugin: {error}"
    return ""
