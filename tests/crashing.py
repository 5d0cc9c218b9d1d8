"""python -m tests.crashing KILLS SEED: a scheduler that is killed over and over again while it
works; what is broken afterwards, as JSON.

Each worker is a process of its own that runs sessions, carries decisions out, hears what the
cluster reports, submits jobs and gives orders to queues, with the code that the real workers run.
It is killed (SIGKILL) at a random moment; then the rules are checked, and the next one takes over
where it stopped. DATABASE_URL says where; without it SQLite under VAR_DIR.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

BORN = 0.25  # a worker lives at least about so long, so that it gets to work


def main(kills: int, seed: int) -> dict[str, Any]:
    _prepare()
    from django.db import connection

    dice = random.Random(seed)
    broken = []
    for number in range(kills):
        connection.close()  # a connection must not be shared with a child
        child = _start(lambda number=number: _work(seed * 10_000 + number))
        time.sleep(BORN + dice.random() * 0.7)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        broken += [f"after kill {number}: {problem}" for problem in _problems()]
    connection.close()
    child = _start(_settle)
    _, status = os.waitpid(child, 0)
    broken += [] if status == 0 else [f"the last worker ended with status {status}"]
    return {"broken": broken + _problems() + _leftovers(), **_figures()}


def _prepare() -> None:
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)
    from django.conf import settings

    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    from scheduler.services.sessions import requests
    from tests.histories import build_cluster

    requests._ask = lambda: None  # there is no broker here; the workers look by themselves
    build_cluster()


def _start(work: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    except BaseException:
        import traceback

        traceback.print_exc()
        os._exit(1)


def _work(seed: int) -> None:
    """Until it is killed."""
    from tests.histories import History

    history = History(seed)
    while True:
        _turn()
        history.submit()
        history.command_a_queue_and_note_it()
        history.step()


def _turn() -> None:
    from scheduler.services.cluster.dispatch import dispatch
    from scheduler.services.cluster.observe import observe
    from scheduler.services.sessions.runner import run_scheduling_session

    run_scheduling_session("tick")
    dispatch()
    observe()


def _settle() -> None:
    """The last worker is left alone until it has had its say: it takes over when the lease of the
    one before has run out.
    """
    from scheduler.models import SchedulingSession

    before = SchedulingSession.objects.latest("number").number
    until = time.monotonic() + 60
    while SchedulingSession.objects.filter(state="Done", number__gt=before).count() < 2:
        assert time.monotonic() < until, "no worker took over"
        _turn()
        time.sleep(0.05)


def _problems() -> list[str]:
    from tests.histories import broken_rules, half_gangs

    return [*broken_rules(), *half_gangs(), *bound_twice()]


def bound_twice() -> list[str]:
    """The cluster and the database name the same node for every pod, and no pod has two places
    open.
    """
    from django.db.models import Count

    from scheduler.models import Decision, Pod, SimulatedPod

    open_binds = Decision.objects.filter(kind="Bind", done_at=None).exclude(pod=None)
    twice = (
        open_binds.values_list("pod_name")
        .annotate(number=Count("pk"))
        .filter(number__gt=1, pod__phase="Binding")
    )
    places = dict(SimulatedPod.objects.filter(leaving=False).values_list("pod_id", "node_name"))
    stored = dict(
        Pod.objects.filter(pk__in=places, phase__in=("Bound", "Running")).values_list(
            "pk", "node__name"
        )
    )
    moved = [
        f"pod {pk} is on {places[pk]} and should be on {node}"
        for pk, node in stored.items()
        if places[pk] != node
    ]
    return [*(f"{name} is bound twice" for name, _ in twice), *moved]


def _leftovers() -> list[str]:
    from scheduler.models import SchedulingSession

    states = set(SchedulingSession.objects.values_list("state", flat=True))
    problems = [f"sessions are {sorted(states)}"] if not states <= {"Done", "TakenOver"} else []
    return [*problems, *lost_or_repeated_orders()]


def lost_or_repeated_orders() -> list[str]:
    """Orders on record that were not carried out, are not what is the case, or were given twice."""
    from scheduler.models import Command, Queue

    problems = []
    if Command.objects.filter(executed_at=None).exists():
        problems.append("a command is on record that was not carried out")
    wishes = {
        "OpenQueue": "Open",
        "CloseQueue": "Closed",
        "SuspendQueue": "Suspended",
        "ResumeQueue": "Open",
    }
    for queue in Queue.objects.exclude(name="root"):
        last = (
            Command.objects.filter(target_kind="Queue", target_name=queue.name, result="Done")
            .order_by("-executed_at", "-id")
            .first()
        )
        if last and wishes[last.action] != queue.wish and not _from_above(last, queue):
            problems.append(f"{queue.name} is wished {queue.wish} after {last.action}")
    noted = Counter(Command.objects.exclude(reason="").values_list("reason", flat=True))
    problems += [f"the order {reason} was given twice" for reason in noted if noted[reason] > 1]
    return problems


def _from_above(last: Any, queue: Any) -> bool:
    """A later order to a queue above may have changed this one too; its effect says so."""
    from scheduler.models import Command

    later = Command.objects.filter(result="Done", id__gt=last.id)
    return any(
        change["name"] == queue.name
        for command in later
        for change in (command.effect or {}).get("queues", [])
    )


def _figures() -> dict[str, Any]:
    from scheduler.models import Command, Decision, SchedulingSession

    return {
        "sessions": SchedulingSession.objects.count(),
        "takenOver": SchedulingSession.objects.filter(state="TakenOver").count(),
        "binds": Decision.objects.filter(kind="Bind").count(),
        "evictions": Decision.objects.filter(kind="Evict").count(),
        "commands": Command.objects.count(),
    }


def stopped_past_its_lease() -> dict[str, Any]:
    """Two workers: the first is stopped (SIGSTOP) between thinking and writing, the second takes
    over, the first goes on (SIGCONT).
    """
    _prepare()
    from django.db import connection

    from scheduler.models import Decision, Pod, SchedulingSession
    from tests.worlds import job

    job("train", replicas=3)
    connection.close()
    first = _start(_stop_before_writing)
    os.waitpid(first, os.WUNTRACED)  # it has stopped itself
    connection.close()
    second = _start(_take_over)
    _, status = os.waitpid(second, 0)
    os.kill(first, signal.SIGCONT)
    _, late = os.waitpid(first, 0)
    return {
        "secondEnded": status,
        "firstEnded": late,
        "sessions": list(
            SchedulingSession.objects.order_by("number").values_list("state", flat=True)
        ),
        "tokens": list(
            SchedulingSession.objects.order_by("number").values_list("fencing_token", flat=True)
        ),
        "bindsByToken": sorted(
            Decision.objects.filter(kind="Bind").values_list("session__fencing_token", flat=True)
        ),
        "phases": sorted(Pod.objects.values_list("phase", flat=True)),
    }


def _stop_before_writing() -> None:
    from scheduler.services.sessions import runner as session_runner

    think = session_runner.run_session

    def think_and_stop(*args: Any, **more: Any) -> Any:
        outcome = think(*args, **more)
        assert outcome.binds
        os.kill(os.getpid(), signal.SIGSTOP)
        return outcome

    session_runner.run_session = think_and_stop  # type: ignore[assignment]
    assert session_runner.SessionRunner().run() is None, "it wrote although its lease was gone"


def _take_over() -> None:
    from scheduler.services.sessions.runner import SessionRunner

    runner = SessionRunner()
    until = time.monotonic() + 60
    while runner.run() is None:
        assert time.monotonic() < until, "the lease was never free"
        time.sleep(0.05)


def killed_after_sending(url: str) -> dict[str, Any]:
    """A worker that is killed (SIGKILL) when it has sent a message and not yet noted it; then
    another one.
    """
    _prepare()
    from datetime import timedelta

    from django.db import connection

    from scheduler.models import NoticeDelivery
    from scheduler.services.notices import delivery

    _wait_to_be_sent(url)
    connection.close()
    child = _start(_send_and_die)
    _, status = os.waitpid(child, 0)
    tries = delivery.deliver_notices()
    row = NoticeDelivery.objects.get()
    row.claimed_at -= 2 * delivery.ABANDONED
    row.due_at -= timedelta(hours=1)
    row.save()
    delivery.deliver_notices()
    row.refresh_from_db()
    return {
        "killedBy": os.WTERMSIG(status),
        "triesWhileClaimed": tries,
        "state": row.state,
        "attempts": row.attempts,
        "noted": row.log.count(),
    }


def _wait_to_be_sent(url: str) -> None:
    """One message, due at once."""
    from django.contrib.auth import get_user_model
    from django.utils import timezone

    from scheduler.domain.notices import NoticeKind
    from scheduler.models import NoticeDelivery
    from scheduler.services.accounts.actors import Actor
    from scheduler.services.notices.choices import add_channel, save_rule
    from scheduler.services.notices.fan_out import write_notices
    from scheduler.services.notices.publish import publish
    from tests.services.notices.people import started

    ada = get_user_model().objects.create(username="ada", is_superuser=True)
    by = Actor("ada", user=ada)
    add_channel(ada, "Webhook", "hook", url, by=by)
    save_rule(ada, NoticeKind.JOB_STARTED, channels=["hook"], by=by)
    publish([started()])
    write_notices()
    NoticeDelivery.objects.update(due_at=timezone.now())


def _send_and_die() -> None:
    from scheduler.services.notices import delivery

    delivery.note_result = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    delivery.deliver_notices()


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    if sys.argv[1] == "stop":
        answer = stopped_past_its_lease()
    elif sys.argv[1] == "notice":
        answer = killed_after_sending(sys.argv[2])
    else:
        answer = main(int(sys.argv[1]), int(sys.argv[2]))
    print(json.dumps(answer))
