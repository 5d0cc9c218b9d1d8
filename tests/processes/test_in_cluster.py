"""The processes of deploy/kubernetes/README.md, with the commands, settings and rights of the
manifests.

There is no container engine here: each process runs in a folder with just what the Dockerfile
copies, and in an environment with just what its manifest sets. To the API server it is the service
account of the manifests, by a token that the API server has issued.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.control_plane import objects
from tests.control_plane.plane import ControlPlane, ProgramFailed
from tests.deploy.in_cluster import DOCKERFILE, Container, Manifests, folder_with_secrets, image_at
from tests.running import PATIENCE_SECONDS, random_port

pytestmark = pytest.mark.processes
_ACCOUNT = ("fumarole", "--namespace", "fumarole")
_BEFORE_WEB = ("fumarole-watcher", "fumarole-scheduler", "fumarole-worker", "fumarole-beat")
_ALL = (*_BEFORE_WEB, "fumarole-webhooks", "fumarole-web")
_CLEAN_ENDS = (0, -15)


class Installation:
    """All processes of the manifests, on this machine."""

    def __init__(
        self,
        control_plane: ControlPlane,
        place: Path,
        servers: Mapping[str, str],
    ) -> None:
        self._control_plane = control_plane
        self._place = place
        self._servers = servers
        self._image = image_at(place)
        self.manifests = Manifests(folder_with_secrets(place))
        self.ports = {"--port=8000": random_port(), "--port=8443": random_port()}
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self._make_folders()

    @property
    def token_file(self) -> Path:
        return self._place / "account" / "token"

    @property
    def certificate(self) -> Path:
        return self.manifests.folder / "secrets" / "webhooks.crt"

    def _make_folders(self) -> None:
        for name in ("account", "var", "tmp", "tls"):
            (self._place / name).mkdir()
        account = self._place / "account"
        (account / "ca.crt").write_bytes(self._control_plane.authority.read_bytes())
        (account / "namespace").write_text("fumarole")
        tls = self._place / "tls"
        (tls / "tls.crt").write_bytes(self.certificate.read_bytes())
        (tls / "tls.key").write_bytes(self.certificate.with_suffix(".key").read_bytes())

    def build(self) -> None:
        """What the Dockerfile runs after the packages are installed."""
        runs = [line for line in DOCKERFILE.read_text().splitlines() if line.startswith("RUN ")]
        setting, *command = shlex.split(runs[-1].removeprefix("RUN "))
        name, _, value = setting.partition("=")
        self._run(self._here(command), {name: value, "PATH": os.environ["PATH"]})

    def prepare(self) -> None:
        first = self.manifests.first_process("fumarole-scheduler")
        self._run(self._here(first.command), self._environment("fumarole-scheduler", first))

    def database_is_ready(self) -> bool:
        waiting = self.manifests.first_process("fumarole-web")
        done = subprocess.run(
            self._here(waiting.command),
            cwd=self._image,
            env=self._environment("fumarole-web", waiting),
            stdout=subprocess.DEVNULL,
            check=False,
        )
        return done.returncode == 0

    def start(self) -> None:
        for name in _ALL:
            process = self.manifests.process(name)
            self.running[name] = subprocess.Popen(
                self._here(process.command),
                cwd=self._image,
                env=self._environment(name, process),
            )

    def kill(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()

    def files(self) -> set[Path]:
        return set(self._image.rglob("*"))

    def _run(self, command: list[str], environment: dict[str, str]) -> None:
        subprocess.run(
            command,
            cwd=self._image,
            env=environment,
            stdout=subprocess.DEVNULL,
            check=True,
        )

    def _here(self, command: list[str]) -> list[str]:
        """The same with the paths and ports of this machine."""
        words = [self._path_here(word) for word in command]
        for said, port in self.ports.items():
            words = [f"--port={port}" if word == said else word for word in words]
        return [sys.executable if word == "python" else word for word in words]

    def _path_here(self, text: str) -> str:
        mounted = {"/var/lib/fumarole": "var", "/etc/fumarole/tls": "tls"}
        for path, folder in mounted.items():
            text = text.replace(path, str(self._place / folder))
        return text

    def _environment(self, deployment: str, container: Container) -> dict[str, str]:
        given = {name: self._path_here(text) for name, text in container.environment.items()}
        assert given["HOME"] == "/tmp"
        cluster = {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": self._control_plane.address.rpartition(":")[2],
        }
        if self.manifests.has_token(deployment):
            cluster["KUBERNETES_SERVICE_ACCOUNT"] = str(self._place / "account")
        here = {"PATH": os.environ["PATH"], "HOME": str(self._place / "tmp")}
        return {**given, **self._servers, **cluster, **here}


@pytest.fixture
def installation(
    control_plane: ControlPlane,
    tmp_path: Path,
    postgres_database: str,
    external_redis: str,
) -> Iterator[Installation]:
    servers = {"DATABASE_URL": postgres_database, "REDIS_URL": external_redis}
    made = Installation(control_plane, tmp_path, servers)
    yield made
    made.kill()


def test_the_manifests_run_renew_their_token_and_answer_the_api_server(
    installation: Installation,
    control_plane: ControlPlane,
    postgres_database: str,
) -> None:
    control_plane.kubectl("apply", "-k", str(installation.manifests.folder))
    installation.token_file.write_text(_token(control_plane, "first"))
    installation.build()
    files = installation.files()

    assert not installation.database_is_ready()
    installation.prepare()
    assert installation.database_is_ready()
    installation.start()
    objects.wait_until(lambda: _is_ready(installation), "an installation that is ready")

    _refuses_what_breaks_a_rule(installation, control_plane)
    _goes_on_with_another_token(installation, control_plane, postgres_database)
    _stops_in_time(installation)
    assert installation.files() == files


def _token(control_plane: ControlPlane, secret: str) -> str:
    """A token that is worth nothing as soon as this secret is deleted."""
    control_plane.kubectl("create", "secret", "generic", secret, "--namespace", "fumarole")
    bound = ("--bound-object-kind=Secret", f"--bound-object-name={secret}")
    return control_plane.kubectl("create", "token", *_ACCOUNT, *bound).strip()


def _is_ready(installation: Installation) -> bool:
    """As the alarm of an admin asks."""
    address = f"http://127.0.0.1:{installation.ports['--port=8000']}/readyz"
    try:
        answer = httpx.get(address, headers={"Host": "localhost"}, timeout=10)
    except httpx.HTTPError:
        return False
    return answer.status_code == 200


def _refuses_what_breaks_a_rule(installation: Installation, control_plane: ControlPlane) -> None:
    """The API server asks the Service that it is told to ask, over TLS.

    Nobody routes to the addresses of Services here, so it is told where that one is.
    """
    _point_service_here(control_plane)
    port = installation.ports["--port=8443"]
    where = ("--webhooks", f"https://fumarole-webhooks.fumarole.svc:{port}")
    command = (sys.executable, "manage.py", "kubernetes", "install", *where)
    subprocess.run(
        [*command, "--ca", str(installation.certificate)],
        env={**os.environ, "KUBECONFIG": str(control_plane.kubeconfig), "SECRET_KEY": "install"},
        stdout=subprocess.DEVNULL,
        check=True,
    )

    objects.wait_until(lambda: "orphan" in _refusal(control_plane), "a refusal by our rules")
    assert "denied the request" in _refusal(control_plane)


def _point_service_here(control_plane: ControlPlane) -> None:
    service = ("service", "fumarole-webhooks", "--namespace", "fumarole")
    control_plane.kubectl("delete", *service)
    control_plane.kubectl(
        *("create", "service", "externalname", *service[1:]), "--external-name=localhost"
    )


def _refusal(control_plane: ControlPlane) -> str:
    orphan = objects.queue("orphan", parent="nobody")
    try:
        control_plane.kubectl("create", "--dry-run=server", "-f", "-", given=json.dumps(orphan))
    except ProgramFailed as refusal:
        return str(refusal)
    return ""


def _goes_on_with_another_token(
    installation: Installation,
    control_plane: ControlPlane,
    database: str,
) -> None:
    """As the kubelet renews it: the file has another token before the first one ends."""
    first = installation.token_file.read_text()
    installation.token_file.write_text(_token(control_plane, "second"))
    control_plane.kubectl("delete", "secret", "first", "--namespace", "fumarole")
    objects.wait_until(lambda: _is_worthless(control_plane, first), "the end of the first token")

    control_plane.kubectl("create", "-f", "-", given=json.dumps(objects.queue("research")))

    objects.wait_until(lambda: _has_queue(database, "research"), "the queue in the mirror")
    objects.wait_until(lambda: _is_ready(installation), "an installation that is ready")


def _is_worthless(control_plane: ControlPlane, token: str) -> bool:
    answer = httpx.get(
        f"{control_plane.address}/version",
        headers={"Authorization": f"Bearer {token}"},
        verify=False,
    )
    return answer.status_code == 401


def _has_queue(database: str, name: str) -> bool:
    with psycopg.connect(database) as connection:
        found = connection.execute("SELECT 1 FROM scheduler_queue WHERE name = %s", [name])
        return found.fetchone() is not None


def _stops_in_time(installation: Installation) -> None:
    """As the kubelet stops it: SIGTERM, and no more than the time that the manifest gives."""
    for process in installation.running.values():
        process.terminate()
    for name, process in installation.running.items():
        grace = installation.manifests.pod_of(name)["terminationGracePeriodSeconds"]
        assert process.wait(max(grace, PATIENCE_SECONDS)) in _CLEAN_ENDS, name
