"""python -m tests.processes.soak.standby: two scheduler workers on two machines, and how long it
takes until the second goes on when the first is killed, loses its network, or freezes and comes
back. As JSON in the last line.

The machines are network namespaces with host names of their own. They reach PostgreSQL and Redis
on this machine over a bridge.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.processes.soak.harness import furnish
from tests.processes.soak.stack import Stack
from tests.running import descendants_of

LEASE_SECONDS = 6
FIRST, SECOND = "scheduler-1", "scheduler-2"
_PATIENCE_SECONDS = 180.0


class Machines:
    """`fm-PID-1` and `fm-PID-2`, each with a cable to a bridge of this machine."""

    def __init__(self) -> None:
        number = os.getpid() % 10_000
        self.address = f"10.{77 + number % 100}.{number // 100}.1"
        self._net = self.address.rpartition(".")[0]
        self._bridge = f"fmb{number}"
        self._names = {FIRST: f"fm{number}-1", SECOND: f"fm{number}-2"}

    def __enter__(self) -> Machines:
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("addr", "add", f"{self.address}/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        for number, name in enumerate(self._names.values(), start=2):
            _ip("netns", "add", name)
            _ip("link", "add", f"{name}h", "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("link", "set", f"{name}h", "master", self._bridge, "up")
            _ip("-n", name, "addr", "add", f"{self._net}.{number}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")
            _ip("-n", name, "link", "set", "lo", "up")
        return self

    def __exit__(self, *exception: object) -> None:
        for name in self._names.values():
            subprocess.run(["ip", "netns", "del", name], check=False)
        subprocess.run(["ip", "link", "del", self._bridge], check=False)

    def wraps(self) -> dict[str, list[str]]:
        """Words before a command that start it there, under the name of that machine."""
        rename = 'hostname "$0" && exec "$@"'
        return {
            process: ["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c", rename, name]
            for process, name in self._names.items()
        }

    def name_of(self, process: str) -> str:
        return self._names[process]

    @contextmanager
    def cut(self, process: str) -> Iterator[None]:
        """Nothing comes or goes, and nobody is told: as if the cable were pulled."""
        cable = f"{self._names[process]}h"
        _ip("link", "set", cable, "nomaster")
        try:
            yield
        finally:
            _ip("link", "set", cable, "master", self._bridge)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Trial:
    def __init__(self, stack: Stack, machines: Machines) -> None:
        self._stack = stack
        self._machines = machines

    def killed(self) -> float:
        first = self._whoever_leads()
        began = time.monotonic()
        self._stack.kill(first)
        seconds = self._until_another_than(first, began)
        self._stack.start(first)
        return seconds

    def cut_off(self) -> float:
        first = self._whoever_leads()
        began = time.monotonic()
        with self._machines.cut(first):
            seconds = self._until_another_than(first, began)
            time.sleep(3)
        return seconds

    def frozen(self) -> float:
        """It comes back when another has taken over, with whatever it had begun."""
        first = self._whoever_leads()
        pid = self._stack.pid_of(first)
        stopped = [pid, *descendants_of(pid)]
        began = time.monotonic()
        for each in stopped:
            os.kill(each, signal.SIGSTOP)
        seconds = self._until_another_than(first, began)
        for each in stopped:
            os.kill(each, signal.SIGCONT)
        time.sleep(3)
        return seconds

    def _whoever_leads(self) -> str:
        """When both have had time to be ready."""
        self._wait(lambda: len(_sessions()) > 3, "sessions")
        time.sleep(2 * LEASE_SECONDS)
        machine = _sessions()[-1][1].partition(":")[0]
        (found,) = [name for name in (FIRST, SECOND) if self._machines.name_of(name) == machine]
        return found

    def _until_another_than(self, first: str, began: float) -> float:
        """Until a session of the other one has ended."""
        machine = self._machines.name_of(first)
        before = _sessions()[-1][0]

        def has_taken_over() -> bool:
            new = [holder for number, holder, _, _ in _sessions() if number > before]
            return any(holder.partition(":")[0] != machine for holder in new)

        self._wait(has_taken_over, f"another than {first}")
        return round(time.monotonic() - began, 1)

    def _wait(self, is_so: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not is_so():
            assert time.monotonic() < deadline, f"waited in vain for {what}"
            self._stack.start_what_has_ended()
            time.sleep(0.05)


def _sessions() -> list[tuple[int, str, int, Any]]:
    """Those that ended well: number, holder, token, and when they ended, by number."""
    from scheduler.models import SchedulingSession

    done = SchedulingSession.objects.filter(state="Done").order_by("number")
    return list(done.values_list("number", "worker", "fencing_token", "finished_at"))


def written_late() -> list[str]:
    """Sessions that ended after one with a higher token had begun."""
    from scheduler.models import SchedulingSession

    began: dict[int, Any] = {}
    for token, at in SchedulingSession.objects.values_list("fencing_token", "started_at"):
        began[token] = min(at, began.get(token, at))
    late = []
    for number, holder, token, ended in _sessions():
        newer = [at for other, at in began.items() if other > token]
        if newer and ended > min(newer):
            late.append(f"session {number} of {holder} with token {token}")
    return late


def main(rounds: int) -> dict[str, Any]:
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="fumarole-two-")))
        folder.chmod(0o755)
        machines = opened.enter_context(Machines())
        stack = opened.enter_context(
            Stack(
                folder,
                webs=0,
                listen=machines.address,
                wraps=machines.wraps(),
                SCHEDULER_LEASE_SECONDS=str(LEASE_SECONDS),
            )
        )
        furnish(stack)
        stack.start_all()
        trial = Trial(stack, machines)
        cases = {"killed": trial.killed, "cutOff": trial.cut_off, "frozen": trial.frozen}
        seconds: dict[str, list[float]] = {name: [] for name in cases}
        for _ in range(rounds):
            for name, case in cases.items():
                seconds[name].append(case())
        holders = {holder.partition(":")[0] for _, holder, _, _ in _sessions()}
        return {
            "leaseSeconds": LEASE_SECONDS,
            "failover": seconds,
            "machines": len(holders),
            "sessions": len(_sessions()),
            "writtenLate": written_late(),
        }


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]))))
