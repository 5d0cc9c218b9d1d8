"""A random history of a cluster: changes through the API server, a few at a time."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

from urllib3.exceptions import HTTPError

from tests.control_plane import objects
from tests.control_plane.api import ApiError
from tests.services.cluster.mirror.both_sides import CLASSES_PATH, GROUP, QUEUES_PATH

NODES = "/api/v1/nodes"
NAMESPACES = "/api/v1/namespaces"
PODS = "/api/v1/namespaces/default/pods"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
_PATHS = {
    "node": NODES,
    "queue": QUEUES_PATH,
    "job": JOBS,
    "group": GROUPS,
    "pod": PODS,
    "budget": BUDGETS,
    "class": CLASSES_PATH,
}
_APPS = ("web", "batch", "")


def bind(api: Any, pod: str, node: str) -> None:
    api.post(f"{PODS}/{pod}/binding", objects.binding(pod, node))


def delete(api: Any, path: str) -> None:
    """At once, as there is no kubelet that would end a pod."""
    api.delete(path, {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0})


def grouped(name: str, group: str, **given: Any) -> dict[str, Any]:
    return objects.pod(name, annotations={GROUP: group}, **given)


class History:
    """Random changes that a cluster could see, a few at a time."""

    def __init__(self, api: Any, seed: int) -> None:
        self.api = api
        self.chance = random.Random(seed)
        self.made = 0
        self.known: dict[str, list[str]] = {kind: [] for kind in _PATHS}

    def step(self) -> None:
        chosen = self.chance.choices(
            [self.add, self.bind, self.change, self.remove], weights=[5, 4, 3, 3]
        )[0]
        with suppress(ApiError, HTTPError):  # it is gone already, or the server is
            chosen()

    def add(self) -> None:
        self.made += 1
        kind = self.chance.choices(list(_PATHS), weights=[2, 2, 2, 2, 6, 1, 1])[0]
        name = f"{kind}-{self.made}"
        if kind != "node" and self.chance.random() < 0.3 and self.known[kind]:
            name = self.chance.choice(self.known[kind])  # perhaps one that was deleted before
        getattr(self, f"_add_{kind}")(name)
        self.known[kind].append(name)

    def _add_node(self, name: str) -> None:
        self.api.post(NODES, objects.node(name, labels={"zone": self.chance.choice("ab")}))

    def _add_queue(self, name: str) -> None:
        parent = self.chance.choice(["root", *self.known["queue"]])
        self.api.post(QUEUES_PATH, objects.queue(name, weight=1, parent=parent))

    def _add_job(self, name: str) -> None:
        """With its podgroup, now and then, as Volcano's controller would make it."""
        queue = self.chance.choice(["default", *self.known["queue"]])
        made = self.api.post(JOBS, objects.volcano_job(name, queue=queue))["metadata"]
        group = objects.podgroup(f"{name}-{made['uid']}", queue=queue)
        owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "controller": True}
        group["metadata"]["ownerReferences"] = [{**owner, "name": name, "uid": made["uid"]}]
        self.known["group"].append(group["metadata"]["name"])
        if self.chance.random() < 0.7:
            self.api.post(GROUPS, group)

    def _add_group(self, name: str) -> None:
        queue = self.chance.choice(["default", "missing", *self.known["queue"]])
        if self.known["job"] and self.chance.random() < 0.3:
            name = self.chance.choice(self.known["job"])  # somebody else's, of the same name
        self.api.post(GROUPS, objects.podgroup(name, queue=queue))

    def _add_pod(self, name: str) -> None:
        kind = self.chance.choice(["gang", "gang", "bare", "foreign"])
        labels = {"app": self.chance.choice(_APPS)}
        if kind == "foreign":
            self.api.post(PODS, objects.pod(name, scheduler="default-scheduler", labels=labels))
        elif kind == "bare" or not self.known["group"]:
            self.api.post(PODS, objects.pod(name, labels=labels))
        else:
            self.api.post(PODS, grouped(name, self._any("group"), labels=labels))

    def _add_budget(self, name: str) -> None:
        spec = {"minAvailable": 1, "selector": self._any_selector()}
        self.api.post(BUDGETS, {"metadata": {"name": name}, "spec": spec})

    def _any_selector(self) -> dict[str, Any]:
        app = self.chance.choice(_APPS)
        if not app:
            return {}
        return {"matchLabels": {"app": app}}

    def _add_class(self, name: str) -> None:
        self.api.post(CLASSES_PATH, {"metadata": {"name": name}, "value": self.made})

    def bind(self) -> None:
        if self.known["pod"] and self.known["node"]:
            bind(self.api, self.chance.choice(self.known["pod"]), self._any("node"))

    def change(self) -> None:
        kind = self.chance.choice(["node", "queue", "pod", "pod", "label", "budget"])
        changed = {"label": "pod"}.get(kind, kind)
        if self.known[changed]:
            getattr(self, f"_change_{kind}")(f"{_PATHS[changed]}/{self._any(changed)}")

    def _change_node(self, path: str) -> None:
        self.api.patch(path, {"spec": {"unschedulable": self.chance.random() < 0.5}})

    def _change_queue(self, path: str) -> None:
        self.api.patch(path, {"spec": {"weight": self.made % 90 + 1}})

    def _change_pod(self, path: str) -> None:
        phase = self.chance.choice(["Running", "Succeeded", "Failed"])
        self.api.patch(f"{path}/status", {"status": {"phase": phase}})

    def _change_label(self, path: str) -> None:
        self.api.patch(path, {"metadata": {"labels": {"app": self.chance.choice(_APPS)}}})

    def _change_budget(self, path: str) -> None:
        """Its figures, which a controller would count, or whom it protects."""
        if self.chance.random() < 0.5:
            self.api.patch(path, {"spec": {"selector": self._any_selector()}})
            return
        counts = {"currentHealthy": 3, "desiredHealthy": 1, "expectedPods": 3}
        allowed = {"disruptionsAllowed": self.made % 3}
        self.api.patch(f"{path}/status", {"status": {**counts, **allowed}})

    def remove(self) -> None:
        kind = self.chance.choices(list(_PATHS), weights=[1, 1, 1, 2, 2, 1, 1])[0]
        if self.known[kind]:
            delete(self.api, f"{_PATHS[kind]}/{self._any(kind)}")

    def _any(self, kind: str) -> str:
        return self.chance.choice(self.known[kind])
