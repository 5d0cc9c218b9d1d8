"""python -m tests.processes.soak.rolling ROUNDS: three web processes behind nginx are
restarted in turn by deploy/restart-web, while people submit, click, read and watch.

What clients and database have to say about it, as JSON in the last line.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.control_plane.process import Process
from tests.processes.soak.checker import Checker
from tests.processes.soak.clients import Crowd
from tests.processes.soak.harness import furnish, is_ready
from tests.processes.soak.stack import Stack
from tests.running import BASE, random_port

GUIDE = BASE / "docs" / "how-to" / "operation.md"
_STOP_SECONDS = 30.0  # TimeoutStopSec of the unit
_DOCUMENTED_PORTS = ("8001", "8002", "8003")


class Nginx:
    """Debian's, with the blocks of the guide and this test's ports."""

    def __init__(self, folder: Path, port: int, web_ports: list[int]) -> None:
        self.folder = folder
        self.port = port
        self.upstream = folder / "upstream.conf"
        self._program = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
        assert self._program is not None, "install the package “nginx”"
        upstream, server = re.findall(r"^```nginx\n(.*?)^```", GUIDE.read_text(), re.S | re.M)
        for documented, own in zip(_DOCUMENTED_PORTS, web_ports, strict=True):
            upstream = upstream.replace(f":{documented};", f":{own};")
        self.upstream.write_text(upstream)
        self._configuration = folder / "nginx.conf"
        self._configuration.write_text(self._frame(server))

    def _frame(self, location: str) -> str:
        temporary = "".join(
            f"{name}_temp_path {self.folder};\n"
            for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        own_user = "user root;\n" if os.geteuid() == 0 else ""
        return (
            f"{own_user}daemon off;\npid {self.folder}/nginx.pid;\nerror_log stderr crit;\n"
            f"worker_processes 2;\nevents {{}}\nhttp {{\naccess_log off;\n{temporary}"
            "map $http_upgrade $connection_upgrade { default upgrade; '' close; }\n"
            f"include {self.upstream};\n"
            f"server {{\nlisten 127.0.0.1:{self.port};\n{location}}}\n}}\n"
        )

    @property
    def command(self) -> list[str]:
        assert self._program is not None
        return [self._program, "-p", str(self.folder), "-c", str(self._configuration)]

    @contextmanager
    def running(self, log: Path) -> Iterator[None]:
        process = Process("nginx", self.command, log)
        try:
            yield
        finally:
            process.stop()


def restart_in_turn(stack: Stack, nginx: Nginx) -> int:
    """As an admin does. The part of systemd is played here: whoever starts a process must stay."""
    hook = stack.folder / "restart"
    hook.write_text(
        '#!/usr/bin/env bash\ntouch "$0-$1"\nwhile [ -e "$0-$1" ]; do sleep 0.1; done\n'
    )
    hook.chmod(0o755)
    own = {
        "UPSTREAM_FILE": str(nginx.upstream),
        "RESTART": f"{hook} ",
        "RELOAD": " ".join([*nginx.command, "-s", "reload"]),
        "DRAIN_SECONDS": "3",
    }
    ports = [str(port) for port in stack.web_ports.values()]
    script = [str(BASE / "deploy" / "restart-web"), "127.0.0.1", *ports]
    restarted = 0
    with subprocess.Popen(script, env={**os.environ, **own}) as admin:
        while admin.poll() is None:
            for name, port in stack.web_ports.items():
                asked = Path(f"{hook}-{port}")
                if asked.exists():
                    stack.stop(name, _STOP_SECONDS)
                    stack.start(name)
                    restarted += 1
                    asked.unlink()
            time.sleep(0.1)
    assert admin.returncode == 0
    return restarted


def main(rounds: int, seed: int) -> dict[str, Any]:
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="fumarole-roll-")))
        folder.chmod(0o755)
        port = random_port()
        origin = f"http://127.0.0.1:{port}"
        stack = opened.enter_context(
            Stack(
                folder,
                webs=3,
                schedulers=1,
                CSRF_TRUSTED_ORIGINS=origin,
                TRUSTED_PROXIES="127.0.0.1",
            )
        )
        token, cookie = furnish(stack)
        stack.start_all()
        nginx = Nginx(folder, port, list(stack.web_ports.values()))
        opened.enter_context(nginx.running(stack.log_of("nginx")))
        while not all(map(is_ready, [*stack.addresses, origin])):
            time.sleep(0.2)
        crowd = Crowd([origin], token, cookie, seed, wait_seconds=0.3)
        logs = [stack.log_of(name) for name in stack.names]
        checker = opened.enter_context(Checker(crowd, logs))
        with crowd:
            time.sleep(3)
            restarted = sum(restart_in_turn(stack, nginx) for _ in range(rounds))
            time.sleep(3)
        checker.look()
        return _found(crowd, checker, restarted)


def _found(crowd: Crowd, checker: Checker, restarted: int) -> dict[str, Any]:
    deeds = list(crowd.ledger.over())
    failed = {
        what: count
        for what, count in crowd.ledger.answers.items()
        if what.endswith("none") or int(what.rpartition(" ")[2]) >= 500
    }
    return {
        "restarted": restarted,
        "requests": sum(crowd.ledger.answers.values()),
        "deeds": len(deeds),
        "done": sum(deed.is_done for deed in deeds),
        "failed": failed,
        "problems": checker.take(),
        "connects": crowd.connects,
        "brokenSockets": crowd.broken_sockets,
    }


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), seed=1)))
