"""The form of a queue, as a browser sends it."""

from __future__ import annotations

from typing import Any

from django.test import Client

from scheduler.models import Queue

EDIT = "/queues/vision/edit/"


def typed(client: Client, name: str = "vision", **changes: str) -> dict[str, Any]:
    """What the form sends when nothing is typed but the changes."""
    form = client.get(f"/queues/{name}/edit/").context["form"]
    amounts = {
        f"{quota}:{resource}": amount
        for resource, given in form.amounts.items()
        for quota, amount in given.items()
    }
    fields = {
        "weight": form.weight,
        "priority": form.priority,
        "dequeue_strategy": form.dequeue_strategy,
        "reclaimable": "on",
    }
    parent = {"parent": form.parent} if form.parent else {}
    return {"version": "1", **fields, **parent, **amounts, **changes}


def stored(name: str = "vision") -> Queue:
    return Queue.objects.get(name=name)
