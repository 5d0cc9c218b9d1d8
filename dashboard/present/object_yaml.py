"""One object as YAML: as the API server of a real cluster holds it, else as it is stored here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler.conf import is_kubernetes
from scheduler.services.cluster.kubectl_lines import get_line
from scheduler.services.cluster.live_objects import HIDDEN, read_live_object, without_values
from scheduler.yaml_texts import to_yaml

Context = dict[str, Any]


def object_document(
    kind: str,
    name: str,
    namespace: str = "",
    *,
    stored: Mapping[str, Any],
    with_values: bool,
) -> Context:
    """For the part `parts/object_yaml.html`.

    Where the cluster cannot be asked, it says so and shows what is `stored` here.
    """
    title = f"{kind} {namespace}/{name}"
    if not namespace:
        title = f"{kind} {name}"
    if not is_kubernetes():
        return {"title": title, "yaml": to_yaml(stored)}
    shown = {"title": title, "kubectl": get_line(kind, name, namespace), "is_live": True}
    live = read_live_object(kind, name, namespace, with_values=with_values)
    if live.content is not None:
        hidden = HIDDEN if live.has_hidden_values else ""
        return {**shown, "yaml": to_yaml(live.content), "hidden": hidden}
    known = stored if with_values else without_values(stored)
    return {**shown, "problem": live.problem, "is_live": False, "yaml": to_yaml(known)}
