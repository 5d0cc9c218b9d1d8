"""What writing queues costs: many at once, and one in a tree of a thousand, through the API, on
either database.

Each database is measured in a process of its own, because Django settles its database once. `cpuMs`
is the web process's, `serverCpuMs` the database server's; `statements` is how often the database
was asked.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter, process_time
from typing import Any

from tests.bench.database import server_seconds
from tests.bench.server import database_with_tables

Row = dict[str, object]
Manifest = dict[str, Any]

DATABASES = ("SQLite", "PostgreSQL")
QUEUES = 1000


def queue_writes(scale: float, repetitions: int) -> list[Row]:
    return [
        row
        for database in DATABASES
        for row in _in_a_process_of_its_own(database, int(QUEUES * scale), repetitions)
    ]


def _in_a_process_of_its_own(database: str, queues: int, repetitions: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        address = (
            f"sqlite:///{folder}/bench.sqlite3"
            if database == "SQLite"
            else database_with_tables("fumarole_bench_writes")
        )
        environment = {
            **os.environ,
            "DATABASE_URL": address,
            "LOG_LEVEL": "CRITICAL",
            "SECRET_KEY": "bench",
            "ALLOWED_HOSTS": "testserver",
        }
        command = [sys.executable, "-m", "tests.bench.queue_writes", str(queues), str(repetitions)]
        found = subprocess.run(
            command, env=environment, text=True, stdout=subprocess.PIPE, check=True
        ).stdout
    return [{**row, "what": f"{database}: {row['what']}"} for row in json.loads(found)]


def _measured(queues: int, repetitions: int) -> list[Row]:
    ask = _caller()
    tree = _tree(queues)
    file = [
        {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", **manifest}
        for manifest in tree
    ]
    heavier = [{**manifest, "spec": {**manifest["spec"], "weight": 3}} for manifest in file]
    orders = [
        {"action": "Suspend", "target": {"kind": "Queue", "name": manifest["metadata"]["name"]}}
        for manifest in tree
    ]
    name = tree[-1]["metadata"]["name"]
    numbers = itertools.count()
    few = min(repetitions, 3)
    bulk = [
        _row(
            f"{queues} queues created by one POST",
            few,
            lambda: ask("post", "queues/", tree),
            before=_empty,
        ),
        _row(
            f"{queues} queues applied from one file",
            few,
            lambda: ask("post", "apply/", file),
            before=_empty,
        ),
        _row(
            "the same file, children before parents",
            few,
            lambda: ask("post", "apply/", file[::-1]),
            before=_empty,
        ),
        _row("the same file again, nothing to change", few, lambda: ask("post", "apply/", file)),
        _row(f"a file that changes {queues} queues", 1, lambda: ask("post", "apply/", heavier)),
        _row(f"{queues} commands in one POST", 1, lambda: ask("post", "commands/", orders[::-1])),
        _row(
            f"{queues} commands that change nothing",
            1,
            lambda: ask("post", "commands/", orders[::-1]),
        ),
    ]
    _empty()
    ask("post", "apply/", file)
    one = [
        _row(
            "one create",
            repetitions,
            lambda: ask("post", "queues/", _queue(f"new-{next(numbers)}", "team-0")),
        ),
        _row(
            "one patch",
            repetitions,
            lambda: ask("patch", f"queues/{name}/", {"spec": {"weight": 2 + next(numbers)}}),
        ),
        _row(
            "one close",
            repetitions,
            lambda: ask("post", f"queues/{name}/close/", {}),
            before=lambda: ask("post", f"queues/{name}/open/"),
        ),
        _row("one read", repetitions, lambda: ask("get", f"queues/{name}/")),
        _row("a list of 100", repetitions, lambda: ask("get", "queues/")),
    ]
    return [*bulk, *({**row, "what": f"{row['what']}, {queues} queues there"} for row in one)]


def _tree(queues: int) -> list[Manifest]:
    """Teams with nine queues each, parents first.

    What they ask for together is more than the cluster has.
    """
    teams = [_queue(f"team-{number}", "root", cpu=90) for number in range(queues // 10)]
    return [
        *teams,
        *(
            _queue(f"team-{team}-{number}", f"team-{team}", cpu=10)
            for team in range(len(teams))
            for number in range(9)
        ),
    ]


def _queue(name: str, parent: str, cpu: int = 0) -> Manifest:
    quotas = (
        {
            "deserved": {"cpu": str(cpu), "memory": f"{cpu}Gi"},
            "guarantee": {"resource": {"cpu": str(cpu // 10)}},
        }
        if cpu
        else {}
    )
    return {"metadata": {"name": name}, "spec": {"parent": parent, **quotas}}


def _caller() -> Callable[..., Any]:
    """Sends a request as a cluster admin; every answer must be a good one."""
    import django
    from django.conf import settings
    from django.core.management import call_command

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    django.setup()
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    settings.API_RATE_PER_MINUTE = 0
    settings.CELERY_BROKER_URL = "memory://"
    settings.SECURE_SSL_REDIRECT = False
    call_command("migrate", verbosity=0)

    from django.contrib.auth import get_user_model
    from django.test import Client

    from scheduler.domain.resources import Resources
    from scheduler.models import Node
    from scheduler.services.accounts.actors import SYSTEM
    from scheduler.services.accounts.tokens import create_token

    Node.objects.create(name="n1", allocatable=Resources.parse({"cpu": "640", "memory": "4Ti"}))
    secret = create_token(
        get_user_model().objects.create_superuser("bench"), "bench", ("admin",), by=SYSTEM
    ).secret
    client = Client(headers={"Authorization": f"Bearer {secret}"})

    def ask(method: str, path: str, body: Any = None) -> Any:
        response = getattr(client, method)(
            f"/api/v1/{path}",
            **({} if method == "get" else {"data": body, "content_type": "application/json"}),
        )
        answer = json.loads(response.content)
        assert response.status_code < 300, answer
        assert not [item for item in answer.get("results", []) if item.get("problem")], answer[
            "results"
        ][:3]
        return answer

    return ask


def _empty() -> None:
    from scheduler.models import Command, Event, Queue

    Queue.objects.filter(parent__parent__isnull=False).delete()
    Queue.objects.exclude(name__in=("root", "default")).delete()
    Event.objects.all().delete()
    Command.objects.all().delete()


def _row(
    what: str, repetitions: int, work: Callable[[], Any], before: Callable[[], Any] = lambda: None
) -> Row:
    found = [_once(work, before) for _ in range(repetitions)]
    wall, cpu, server, statements = zip(*found, strict=True)
    figures = {
        "medianMs": round(median(wall) * 1000, 1),
        "cpuMs": round(median(cpu) * 1000, 1),
        "cpuMinMs": round(min(cpu) * 1000, 1),
        "cpuMaxMs": round(max(cpu) * 1000, 1),
        "serverCpuMs": round(median(server) * 1000, 1),
    }
    return {"what": what, **figures, "statements": max(statements), "repetitions": repetitions}


def _once(work: Callable[[], Any], before: Callable[[], Any]) -> tuple[float, float, float, int]:
    from django.db import connection

    before()
    asked = itertools.count()
    with connection.execute_wrapper(lambda execute, *given: (next(asked), execute(*given))[1]):
        wall = perf_counter()
        cpu = process_time()
        server = _server_seconds()
        work()
        spent = perf_counter() - wall, process_time() - cpu, _server_seconds() - server
        return *spent, next(asked)


def _server_seconds() -> float:
    """SQLite has no server."""
    from django.db import connection

    return server_seconds() if connection.vendor == "postgresql" else 0.0


def main(arguments: list[str]) -> Iterator[Row]:
    queues, repetitions = map(int, arguments)
    yield from _measured(queues, repetitions)


if __name__ == "__main__":
    print(json.dumps(list(main(sys.argv[1:]))))
