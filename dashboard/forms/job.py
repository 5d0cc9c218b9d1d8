"""The form that makes a job's manifest, and the queues that one may choose from, with what is free in each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from dashboard.forms.typed import number_or_text
from dashboard.present.amounts import as_typed, in_page_order, with_unit
from scheduler.domain.access import Access, Permission
from scheduler.selectors.queues.listing import PHASES, QueueBoard, QueueFiguresRow, QueueRow

GPU_NAMES = ("nvidia.com/gpu", "amd.com/gpu")
TAKES_JOBS = ("Open", "Suspended")


@dataclass(frozen=True, slots=True)
class JobForm:
    """One task, as text from a page; what is empty is left out of the manifest."""

    name: str = ""
    namespace: str = "default"
    queue: str = ""
    priority_class: str = ""
    task: str = "worker"
    replicas: str = "1"
    needed: str = ""
    image: str = "busybox:1.36"
    command: str = ""
    cpu: str = "1"
    memory: str = "1Gi"
    gpu: str = ""
    gpu_name: str = GPU_NAMES[0]

    def manifest(self) -> dict[str, Any]:
        amounts = {"cpu": self.cpu, "memory": self.memory, self.gpu_name: self.gpu}
        requests = {name: as_typed(text) for name, text in amounts.items() if text.strip()}
        container: dict[str, Any] = {"name": self.task or "worker", "image": self.image}
        if self.command.strip():
            container["command"] = ["sh", "-c", self.command]
        container["resources"] = {"requests": requests}
        replicas = number_or_text(self.replicas)
        needed = number_or_text(self.needed) if self.needed.strip() else replicas
        spec = {
            "queue": self.queue,
            "minAvailable": needed,
            **({"priorityClassName": self.priority_class} if self.priority_class else {}),
            "tasks": [
                {
                    "name": self.task or "worker",
                    "replicas": replicas,
                    "template": {"spec": {"containers": [container]}},
                }
            ],
        }
        return {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {
                "name": self.name.strip(),
                "namespace": self.namespace.strip() or "default",
            },
            "spec": spec,
        }


def form_from_post(post: Mapping[str, str]) -> JobForm:
    return JobForm(**{item.name: post.get(item.name, "") for item in fields(JobForm)})


def form_from_manifest(manifest: Mapping[str, Any]) -> JobForm | None:
    """None when the form cannot show all of it: more than one task, more than one container, or something that is no job."""
    spec = _mapping(manifest.get("spec"))
    task = _only(spec.get("tasks"))
    template = _mapping(_mapping(_mapping(task).get("template")).get("spec"))
    container = _only(template.get("containers"))
    if task is None or container is None or spec.get("policies") or task.get("policies"):
        return None
    if set(template) - {"containers", "restartPolicy"} or not isinstance(
        container.get("command") or [], list
    ):
        return None
    return _form(_mapping(manifest.get("metadata")), spec, task, container)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _only(value: object) -> Mapping[str, Any] | None:
    """The one object of a list that has no more."""
    return (
        value[0]
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping)
        else None
    )


def _form(
    metadata: Mapping[str, Any],
    spec: Mapping[str, Any],
    task: Mapping[str, Any],
    container: Mapping[str, Any],
) -> JobForm:
    requests = _mapping(_mapping(container.get("resources")).get("requests"))
    command = container.get("command") or []
    gpu_name = next((name for name in requests if name in GPU_NAMES), GPU_NAMES[0])
    return JobForm(
        name=str(metadata.get("name", "")),
        namespace=str(metadata.get("namespace", "default")),
        queue=str(spec.get("queue", "")),
        priority_class=str(spec.get("priorityClassName", "")),
        task=str(task.get("name", "worker")),
        replicas=str(task.get("replicas", 1)),
        needed=str(spec.get("minAvailable", "")),
        image=str(container.get("image", "")),
        command=str(command[-1]) if command[:2] == ["sh", "-c"] else " ".join(map(str, command)),
        cpu=str(requests.get("cpu", "")),
        memory=str(requests.get("memory", "")),
        gpu=str(requests.get(gpu_name, "")),
        gpu_name=gpu_name,
    )


def next_name(name: str, taken: Iterable[str]) -> str:
    """ "train-2" after "train", "train-10" after "train-9"."""
    known = set(taken)
    stem, dash, number = name.rpartition("-")
    base, start = (
        (stem, int(number) + 1) if dash and number.isdecimal() and len(number) < 6 else (name, 2)
    )
    while f"{base}-{start}" in known:
        start += 1
    return f"{base[:240]}-{start}"


# The queue picker


@dataclass(frozen=True, slots=True)
class Choice:
    """A queue that takes jobs from this user. `free` is what is left under every limit on the way up; None where that is not known."""

    name: str
    state: str
    path: str
    free: dict[str, int] | None
    waiting: int

    @property
    def words(self) -> str:
        if self.free is None:
            return "free: not evaluated yet"
        amounts = [with_unit(name, self.free[name]) for name in in_page_order(self.free)]
        return "free: " + (" · ".join(amounts) or "no capability known")

    @property
    def line(self) -> str:
        return f"{self.waiting} waiting" if self.waiting else "nobody waits"


def queue_choices(board: QueueBoard, access: Access) -> list[Choice]:
    """Leaf queues that are open or suspended and that the user may submit to."""
    rows = {row.name: row for row in board.rows}
    chosen = [
        row
        for row in board.rows
        if row.is_leaf and row.state in TAKES_JOBS and access.may(Permission.SUBMIT, row.name)
    ]
    return [
        Choice(
            row.name, row.state, " / ".join(_way(row, rows)), _free(row, rows, board), _waiting(row)
        )
        for row in chosen
    ]


def _waiting(row: QueueRow) -> int:
    return sum(
        number
        for phase, number in zip(PHASES, row.own, strict=True)
        if phase in ("Pending", "Inqueue")
    )


def _way(row: QueueRow, rows: Mapping[str, QueueRow]) -> list[str]:
    names: list[str] = []
    current: QueueRow | None = row
    while current is not None and current.name not in names:
        names.insert(0, current.name)
        current = rows.get(current.parent)
    return names


def _free(row: QueueRow, rows: Mapping[str, QueueRow], board: QueueBoard) -> dict[str, int] | None:
    if row.figures is None:
        return None
    free = dict(board.total)
    for name in _way(row, rows):
        level = rows[name]
        if level.figures is None:
            return None
        limits = dict(board.total) if name == "root" else dict(level.capability)
        for resource, limit in limits.items():
            left = limit - _taken(level.figures, resource)
            free[resource] = min(free.get(resource, limit), max(0, left))
    return free


def _taken(figures: QueueFiguresRow, resource: str) -> int:
    """What is in use, and what is promised beyond the room that is being left."""
    kept = figures.promised.amount(resource) - figures.leaving.amount(resource)
    return figures.allocated.amount(resource) + max(0, kept)
