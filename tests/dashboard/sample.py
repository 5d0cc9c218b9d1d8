"""A small queue tree with figures, as a session would leave it.

For pages, sockets and screenshots.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model

from scheduler.domain.resources import Resources
from scheduler.models import ClusterState, Grant, PodGroup, Queue, QueueFigures
from scheduler.services.demo.setup import ensure_builtin_objects

GPU = "nvidia.com/gpu"
PASSWORD = "a long password"


def amounts(
    gpu: int | None = None,
    cpu: int | str | None = None,
    memory: str | None = None,
) -> Resources:
    given = {GPU: gpu, "cpu": cpu, "memory": memory}
    return Resources.parse({name: value for name, value in given.items() if value is not None})


def add_queue(name: str, parent: str = "root", **fields: Any) -> Queue:
    return Queue.objects.create(name=name, parent=Queue.objects.get(name=parent), **fields)


def set_figures(name: str, allocated: Resources, deserved: Resources, request: Resources) -> None:
    """What is asked for beyond what is allocated is what its jobs wait for."""
    asked = (request - allocated).clamped_at_zero()
    QueueFigures.objects.update_or_create(
        queue=Queue.objects.get(name=name),
        defaults={
            "allocated": allocated,
            "deserved": deserved,
            "request": request,
            "asked": asked,
            "lacking": asked,
        },
    )


def add_gang(queue: str, name: str, phase: str = "Running", **fields: Any) -> PodGroup:
    return PodGroup.objects.create(
        namespace="default",
        name=name,
        queue=Queue.objects.get(name=queue),
        phase=phase,
        **fields,
    )


def add_user(name: str, role: str = "viewer", queue: str = "root", hashed: str = "!") -> Any:
    """An account with one role, an empty one is none at all; "!" is no password, so that it cannot
    sign in by itself.
    """
    user = get_user_model().objects.create(username=name, password=hashed)
    if role:
        Grant.objects.create(user=user, role=role, queue=Queue.objects.get(name=queue))
    return user


def load_tree() -> None:
    """research (vision, language) and production (serving, batch) under root.

    Language borrows what vision does not use.
    """
    ensure_builtin_objects()
    ClusterState.objects.update(name="sample", total=amounts(64, 1024, "4Ti"))
    add_queue(
        "research",
        weight=3,
        deserved=amounts(40, 600, "2Ti"),
        guarantee=amounts(8, 64, "256Gi"),
    )
    add_queue(
        "vision",
        "research",
        weight=1,
        deserved=amounts(20, 300, "1Ti"),
        capability=amounts(32, 400, "1536Gi"),
    )
    add_queue(
        "language",
        "research",
        weight=2,
        deserved=amounts(20, 300, "1Ti"),
        guarantee=amounts(8),
    )
    add_queue(
        "production",
        weight=2,
        deserved=amounts(24, 400, "2Ti"),
        capability=amounts(48, 800, "3Ti"),
    )
    add_queue(
        "serving",
        "production",
        weight=4,
        deserved=amounts(16, 200, "1Ti"),
        state="Suspended",
        wish="Suspended",
    )
    add_queue(
        "batch",
        "production",
        weight=1,
        deserved=amounts(8, 200, "1Ti"),
        state="Closing",
        wish="Closed",
    )
    set_figures(
        "root",
        amounts(47, 553, "2100Gi"),
        amounts(64, 1024, "4Ti"),
        amounts(70, 700, "2800Gi"),
    )
    set_figures("default", amounts(0, 0, "0"), amounts(0, 24, "0"), amounts(0, 0, "0"))
    set_figures(
        "research",
        amounts(38, 353, "1300Gi"),
        amounts(40, 600, "2Ti"),
        amounts(58, 500, "2Ti"),
    )
    set_figures("vision", amounts(8, 53, "300Gi"), amounts(20, 300, "1Ti"), amounts(8, 53, "300Gi"))
    set_figures(
        "language",
        amounts(30, 300, "1000Gi"),
        amounts(20, 300, "1Ti"),
        amounts(50, 447, "1748Gi"),
    )
    set_figures(
        "production",
        amounts(9, 200, "800Gi"),
        amounts(24, 400, "2Ti"),
        amounts(12, 200, "800Gi"),
    )
    set_figures(
        "serving",
        amounts(6, 100, "500Gi"),
        amounts(16, 200, "1Ti"),
        amounts(6, 100, "500Gi"),
    )
    set_figures("batch", amounts(3, 100, "300Gi"), amounts(8, 200, "1Ti"), amounts(6, 100, "300Gi"))
    for number in range(3):
        add_gang("language", f"train-{number}")
        add_gang("batch", f"report-{number}", phase="Running" if number else "Pending")
    add_gang("language", "train-late", phase="Pending")
    add_gang("vision", "label", phase="Running")
