"""The data path on PostgreSQL: whole sessions from changed rows to committed decisions, and the
write-back against its floor.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from scheduler.domain.workloads import Phase, Pod, PodStatus
from scheduler.scenarios.clusters import Cluster
from tests.bench.clusters import Size, roomy
from tests.bench.measuring import Timing, interleaved
from tests.bench.server import database_with_tables

Row = dict[str, object]

_PODS_AT_ONCE = 200_000  # one value of PostgreSQL has at most 256 MB
LARGE = Size(nodes=10_000, pending=10_000, running=100_000)


@contextmanager
def a_database() -> Iterator[None]:
    """An empty PostgreSQL with all tables, for this process; Django must not have been set up
    before.
    """
    import django
    from django.conf import settings

    os.environ["DATABASE_URL"] = database_with_tables("fumarole_bench")
    os.environ.setdefault("SECRET_KEY", "bench")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    os.environ["LOG_LEVEL"] = "ERROR"
    os.environ["SCHEDULER_LEASE_SECONDS"] = "600"  # nobody else is here to take it
    django.setup()
    settings.CHANNEL_LAYERS = {
        "default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}
    }  # no Redis is needed to measure a database
    yield
    from django.db import connection

    connection.close()


def fill(cluster: Cluster) -> None:
    """The cluster as rows, a statement a table."""
    from django.db import connection
    from django.utils import timezone

    from scheduler.models import Node, PodClass, PodGroup, Queue

    queues = {"root": Queue.objects.get(name="root"), "default": Queue.objects.get(name="default")}
    for queue in sorted(
        cluster.queues, key=lambda queue: (queue.spec.parent != "root", queue.name)
    ):
        if queue.name not in queues:
            queues[queue.name] = Queue.objects.create(
                name=queue.name, parent=queues[queue.spec.parent], weight=queue.spec.weight
            )
    nodes = _by_name(
        Node, (Node(name=node.name, allocatable=node.allocatable) for node in cluster.nodes)
    )
    requests = {pod.request: pod for pod in cluster.pods}
    classes = {
        request: PodClass.objects.create(digest=str(number), requests=request, priority=1)
        for number, request in enumerate(requests)
    }
    groups = _by_name(
        PodGroup,
        (
            PodGroup(
                name=group.name,
                namespace=group.namespace,
                queue=queues[group.queue],
                min_member=group.min_member,
                min_resources=group.min_resources,
                phase=Phase(group.phase).label,
            )
            for group in cluster.podgroups
        ),
    )
    now = timezone.now()
    for first in range(0, len(cluster.pods), _PODS_AT_ONCE):
        pods = cluster.pods[first : first + _PODS_AT_ONCE]
        _insert_pods([_pod_row(pod, groups, classes, nodes, now) for pod in pods])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _by_name(model: Any, rows: Iterable[Any]) -> dict[str, int]:
    model.objects.bulk_create(rows, batch_size=2000)
    return dict(model.objects.values_list("name", "pk"))


_PHASES = {PodStatus.RUNNING: "Running", PodStatus.PENDING: "Pending"}


def _pod_row(
    pod: Pod,
    groups: Mapping[str, int],
    classes: Mapping[Any, Any],
    nodes: Mapping[str, int],
    now: Any,
) -> tuple[Any, ...]:
    import uuid

    group = groups[pod.podgroup.rpartition("/")[2]]
    return (
        uuid.uuid4().hex,
        pod.namespace,
        pod.name,
        group,
        classes[pod.request].pk,
        nodes.get(pod.node),
        _PHASES[pod.status],
        now,
    )


def _insert_pods(rows: list[tuple[Any, ...]]) -> None:
    from scheduler.models.bulk import as_parameter, execute, values_table

    columns = {
        "uid": "uuid",
        "namespace": "text",
        "name": "text",
        "podgroup_id": "bigint",
        "pod_class_id": "bigint",
        "node_id": "bigint",
        "phase": "text",
        "created_at": "timestamptz",
    }
    names = ", ".join(columns)
    parameter = as_parameter(dict(zip(columns, row, strict=True)) for row in rows)
    execute(
        f'INSERT INTO scheduler_pod ({names}, task, "index", job_version, borrowed, '
        "planned_exit_code, message, unwanted) "
        f"SELECT {names}, '', 0, 0, false, 0, '', false FROM {values_table('d', columns)}",
        [parameter],
    )


class Bench:
    """One runner that lives through all measurements, as the scheduler's worker does."""

    def __init__(self) -> None:
        from scheduler.garbage import set_aside
        from scheduler.services.sessions.runner import SessionRunner

        self.runner = SessionRunner("bench")
        self.turn = 0
        set_aside()

    def cold(self) -> None:
        from scheduler.selectors.sessions.snapshots import ResidentSnapshot

        ResidentSnapshot().reload()

    def session(self) -> Any:
        result = self.runner.run()
        assert result is not None
        return result

    def undo(self) -> None:
        """Everything that was placed waits again, as before.

        What that changes is read here, outside of any measurement.
        """
        from scheduler.models.bulk import execute

        execute(
            "UPDATE scheduler_pod SET phase = 'Pending', node_id = NULL, bound_at = NULL "
            "WHERE phase = 'Binding'"
        )
        execute(
            "UPDATE scheduler_podgroup SET phase = 'Pending', conditions = '[]' WHERE name "
            "LIKE 'new-%%'"
        )
        execute("DELETE FROM scheduler_decision")
        execute("VACUUM ANALYZE scheduler_pod")  # as autovacuum does every minute

    def change(self, count: int) -> None:
        """Touch so many running pods in a column that a session looks at."""
        from scheduler.models.bulk import execute

        self.turn += 1
        execute(
            "UPDATE scheduler_pod SET borrowed = NOT borrowed WHERE id IN (SELECT id FROM "
            "scheduler_pod WHERE phase = 'Running' ORDER BY id "
            "LIMIT %s OFFSET %s %% (SELECT count(*) - %s + 1 FROM scheduler_pod WHERE "
            "phase = 'Running'))",
            [count, self.turn * 997, count],
        )


def sessions_end_to_end(scale: float, repetitions: int) -> list[Row]:
    """From the changed rows to the committed decisions.

    `queries` counts every statement but BEGIN and COMMIT.
    """
    size = LARGE if scale == 1 else LARGE.times(nodes=scale, pending=scale, running=scale)
    with a_database():
        fill(roomy(size))
        bench = Bench()
        rows = _timed("read everything (cold start)", bench.cold, repetitions, lambda: None)
        rows += _measure("full change: every pending pod placed", bench, bench.undo, repetitions)
        bench.session()
        for count, name in (
            (size.running // 100, "1% change"),
            (100, "100 changes"),
            (0, "no change"),
        ):
            bench.session()
            rows += _measure(
                f"{name} ({count} pods)",
                bench,
                lambda count=count: bench.change(count) if count else None,
                5 * repetitions,
            )
        rows += _write_back(bench, min(repetitions, 5))
    return rows


def _timed(
    what: str, work: Callable[[], object], repetitions: int, before: Callable[[], object]
) -> list[Row]:
    found = []
    server = []
    for _ in range(repetitions):
        before()
        begin = perf_counter()
        own_begin = process_time()
        server_begin = server_seconds()
        work()
        found.append((perf_counter() - begin, process_time() - own_begin))
        server.append(server_seconds() - server_begin)
    timing = Timing(*zip(*found, strict=True))
    return [
        {
            "what": what,
            **timing.as_json(),
            "serverCpuMs": round(sum(server) / repetitions * 1000, 1),
        }
    ]


def _measure(what: str, bench: Bench, before: Callable[[], object], repetitions: int) -> list[Row]:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    before()
    with CaptureQueriesContext(connection) as log:
        bench.session()
    queries = len(
        [
            query
            for query in log.captured_queries
            if not query["sql"].startswith(("BEGIN", "COMMIT"))
        ]
    )
    results: list[Any] = []
    (row,) = _timed(what, lambda: results.append(bench.session()), repetitions, before)
    medians = {
        f"{part}Ms": round(median(result.durations[part] for result in results), 1)
        for part in results[0].durations
    }
    last = results[-1]
    return [
        {
            **row,
            **medians,
            "changedRows": last.refreshed.changed,
            "binds": len(last.written.bound),
            "queries": queries,
        }
    ]


def server_seconds() -> float:
    """Processor time of this connection's server process.

    On a busy machine the clock tells little.
    """
    from django.db import connection

    try:
        return (
            int(
                Path(f"/proc/{connection.connection.info.backend_pid}/schedstat")
                .read_text()
                .split()[0]
            )
            / 1e9
        )
    except OSError:  # a server on another machine
        return 0.0


# Write-back


def _write_back(bench: Bench, repetitions: int) -> list[Row]:
    """The same placements two ways in turn, each rolled back: a bare update of a narrow table, and
    ours.
    """
    from django.db import transaction

    from scheduler.engine import run_session
    from scheduler.models.bulk import execute

    bench.undo()
    bench.runner.resident.refresh()
    outcome = run_session(bench.runner.resident.snapshot)
    execute("CREATE TABLE bench_narrow (id bigint PRIMARY KEY, phase text, node_id bigint)")
    execute("INSERT INTO bench_narrow SELECT id, phase, node_id FROM scheduler_pod")
    execute("ANALYZE bench_narrow")
    ways = {
        "floor: one bare UPDATE … FROM on a narrow table": lambda: _floor(bench, outcome),
        "write-back of pods, podgroups and decisions": lambda: _ours(bench, outcome),
    }

    def undone(work: Callable[[], object]) -> Callable[[], object]:
        def run() -> None:
            with transaction.atomic():
                work()
                transaction.set_rollback(True)

        return run

    timings = interleaved({name: undone(work) for name, work in ways.items()}, repetitions)
    cpu = {name: _processor_seconds(undone(work), repetitions) for name, work in ways.items()}
    floor = next(iter(timings.values())).median
    least = next(iter(cpu.values()))
    return [
        {
            "what": name,
            **timing.as_json(),
            "timesTheFloor": round(timing.median / floor, 2),
            "withServerCpuMs": round(cpu[name] * 1000, 1),
            "timesTheFloorInCpu": round(cpu[name] / least, 2) if least else "",
            "placements": len(outcome.binds),
        }
        for name, timing in timings.items()
    ]


def _processor_seconds(work: Callable[[], object], repetitions: int) -> float:
    """Of this process and of the server's, together."""
    begin = process_time() + server_seconds()
    for _ in range(repetitions):
        work()
    return (process_time() + server_seconds() - begin) / repetitions


def _floor(bench: Bench, outcome: Any) -> None:
    from scheduler.models.bulk import execute

    resident = bench.runner.resident
    ids = [resident.pod_ids[bind.row] for bind in outcome.binds]
    nodes = [resident.node_ids[bind.node] for bind in outcome.binds]
    execute(
        "UPDATE bench_narrow SET phase = 'Binding', node_id = d.node_id FROM "
        "unnest(%s::bigint[], %s::bigint[]) AS d(id, node_id) "
        "WHERE bench_narrow.id = d.id",
        [ids, nodes],
    )


def _ours(bench: Bench, outcome: Any) -> None:
    from django.utils import timezone

    from scheduler.models import SchedulingSession
    from scheduler.services.sessions.write_outcome import write_outcome

    session = SchedulingSession.objects.latest("id")
    written = write_outcome(
        bench.runner.resident,
        outcome,
        session_id=session.pk,
        number=session.number,
        now=timezone.now(),
    )
    assert len(written.bound) == len(outcome.binds)
