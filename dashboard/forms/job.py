"""The form that makes a job's manifest, and the queues to choose from with what is free there."""

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
        requests = {}
        for name, text in amounts.items():
            if text.strip():
                requests[name] = as_typed(text)
        container: dict[str, Any] = {"name": self.task or "worker", "image": self.image}
        if self.command.strip():
            container["command"] = ["sh", "-c", self.command]
        container["resources"] = {"requests": requests}
        task = {
            "name": self.task or "worker",
            "replicas": number_or_text(self.replicas),
            "template": {"spec": {"containers": [container]}},
        }
        spec: dict[str, Any] = {"queue": self.queue, "minAvailable": self._min_available()}
        if self.priority_class:
            spec["priorityClassName"] = self.priority_class
        spec["tasks"] = [task]
        metadata = {
            "name": self.name.strip(),
            "namespace": self.namespace.strip() or "default",
        }
        return {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": metadata,
            "spec": spec,
        }

    def _min_available(self) -> int | str:
        """All pods where the field is empty."""
        if not self.needed.strip():
            return number_or_text(self.replicas)
        return number_or_text(self.needed)


def form_from_post(post: Mapping[str, str]) -> JobForm:
    return JobForm(**{item.name: post.get(item.name, "") for item in fields(JobForm)})


def form_from_manifest(manifest: Mapping[str, Any]) -> JobForm | None:
    """None if the form cannot show all of it: several tasks or containers, or not a job."""
    spec = _mapping(manifest.get("spec"))
    task = _only(spec.get("tasks"))
    template = _mapping(_mapping(_mapping(task).get("template")).get("spec"))
    container = _only(template.get("containers"))
    if task is None or container is None:
        return None
    if spec.get("policies") or task.get("policies"):
        return None
    if set(template) - {"containers", "restartPolicy"}:
        return None
    if not isinstance(container.get("command") or [], list):
        return None
    return _filled_form(_mapping(manifest.get("metadata")), spec, task, container)


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        return {}
    return value


def _only(value: object) -> Mapping[str, Any] | None:
    """The one object of a list that has no more."""
    if not isinstance(value, list) or len(value) != 1:
        return None
    if not isinstance(value[0], Mapping):
        return None
    return value[0]


def _command_text(command: list[Any]) -> str:
    if command[:2] == ["sh", "-c"]:
        return str(command[-1])
    return " ".join(map(str, command))


def _filled_form(
    metadata: Mapping[str, Any],
    spec: Mapping[str, Any],
    task: Mapping[str, Any],
    container: Mapping[str, Any],
) -> JobForm:
    requests = _mapping(_mapping(container.get("resources")).get("requests"))
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
        command=_command_text(container.get("command") or []),
        cpu=str(requests.get("cpu", "")),
        memory=str(requests.get("memory", "")),
        gpu=str(requests.get(gpu_name, "")),
        gpu_name=gpu_name,
    )


def next_name(name: str, taken: Iterable[str]) -> str:
    """ "train-2" after "train", "train-10" after "train-9"."""
    known = set(taken)
    base = name
    start = 2
    stem, dash, number = name.rpartition("-")
    if dash and number.isdecimal() and len(number) < 6:
        base = stem
        start = int(number) + 1
    while f"{base}-{start}" in known:
        start += 1
    return f"{base[:240]}-{start}"


# The queue picker


@dataclass(frozen=True, slots=True)
class Choice:
    """A queue that takes jobs from this user.

    `free` is what is left under every limit from here to the root; None where it is not known.
    """

    name: str
    state: str
    path: str
    free: dict[str, int] | None
    waiting: int

    @property
    def words(self) -> str:
        if self.free is None:
            return "free: not evaluated yet"
        amounts = []
        for name in in_page_order(self.free):
            amounts.append(with_unit(name, self.free[name]))
        return "free: " + (" · ".join(amounts) or "no capability known")

    @property
    def line(self) -> str:
        if not self.waiting:
            return "nobody waits"
        return f"{self.waiting} waiting"


def queue_choices(board: QueueBoard, access: Access) -> list[Choice]:
    """Leaf queues that are open or suspended and that the user may submit to."""
    rows = {row.name: row for row in board.rows}
    choices = []
    for row in board.rows:
        takes_jobs = row.is_leaf and row.state in TAKES_JOBS
        if takes_jobs and access.may(Permission.SUBMIT, row.name):
            path = " / ".join(_path_to(row, rows))
            free = _free_amounts(row, rows, board)
            choices.append(Choice(row.name, row.state, path, free, _waiting_gangs(row)))
    return choices


def _waiting_gangs(row: QueueRow) -> int:
    counts = dict(zip(PHASES, row.own, strict=True))
    return counts["Pending"] + counts["Inqueue"]


def _path_to(row: QueueRow, rows: Mapping[str, QueueRow]) -> list[str]:
    """The names from the topmost queue to this one."""
    names: list[str] = []
    current: QueueRow | None = row
    while current is not None and current.name not in names:
        names.insert(0, current.name)
        current = rows.get(current.parent)
    return names


def _free_amounts(
    row: QueueRow,
    rows: Mapping[str, QueueRow],
    board: QueueBoard,
) -> dict[str, int] | None:
    if row.figures is None:
        return None
    free = dict(board.total)
    for name in _path_to(row, rows):
        level = rows[name]
        if level.figures is None:
            return None
        if name == "root":
            limits = board.total
        else:
            limits = level.capability
        for resource, limit in limits.items():
            left = limit - _taken(level.figures, resource)
            free[resource] = min(free.get(resource, limit), max(0, left))
    return free


def _taken(figures: QueueFiguresRow, resource: str) -> int:
    """What is in use, and what is promised beyond the room that is being left."""
    kept = figures.promised.amount(resource) - figures.leaving.amount(resource)
    return figures.allocated.amount(resource) + max(0, kept)
