"""A running control plane: etcd and kube-apiserver, and others beside them on request.

with ControlPlane(programs.find(), folder) as plane:
    plane.kubectl("get", "queues")
    with plane.kwok(), plane.controllers():
        ...
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import yaml

from tests.control_plane.api import Api
from tests.control_plane.certificates import Authority
from tests.control_plane.process import NotStarted, Process
from tests.control_plane.programs import Programs
from tests.control_plane.storage import Remembered, Storage
from tests.running import random_port

_ATTEMPTS = 3  # somebody else may take a port between choosing and using it
_CRD_LIST = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_HOST_NAMES = ("127.0.0.1", "localhost", "10.0.0.1", "kubernetes", "kubernetes.default.svc")
_CONTROLLERS = (
    "namespace-controller",
    "node-lifecycle-controller",
    "garbage-collector-controller",
    "pod-garbage-collector-controller",
    "disruption-controller",
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "daemonset-controller",
    "job-controller",
    "serviceaccount-controller",
    "podgroup-protection-controller",
)
_ADMIN_GROUP = "system:masters"
_GATES = ("GenericWorkload=true",)
"""Kubernetes' own PodGroups. Off by default in 1.36."""
ACCOUNT = "system:serviceaccount:fumarole:fumarole"
"""Who Fumarole is in a cluster, as `deploy/kubernetes/rbac.yaml` makes it."""


class ProgramFailed(Exception):
    """kubectl or vcctl ended with an error; the text is what it wrote."""


class ControlPlane:
    """Everything it needs and writes is in one folder."""

    def __init__(
        self, programs: Programs, folder: Path, *, api_server_options: Sequence[str] = ()
    ) -> None:
        self.programs = programs
        self.folder = folder
        self._options = tuple(api_server_options)
        self._authority = Authority(folder / "certificates")
        self._etcd: Process | None = None
        self._api_server: Process | None = None
        self._at_first: Remembered | None = None

    def __enter__(self) -> ControlPlane:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start both servers, install Volcano's CRDs, and remember this state for `reset`."""
        for attempt in range(_ATTEMPTS):
            try:
                self._start_on_free_ports()
                break
            except NotStarted:
                self.stop()
                if attempt == _ATTEMPTS - 1:
                    raise
        self._install_crds()
        self._at_first = self._storage.remember()

    def stop(self) -> None:
        for process in (self._api_server, self._etcd):
            if process is not None:
                process.stop()
        self._api_server = None
        self._etcd = None

    def reset(self) -> None:
        """Put the cluster back to the state after the start."""
        assert self._at_first is not None
        self._at_first, restored = self._storage.put_back(self._at_first)
        if any(b"/customresourcedefinitions/" in key for key in restored):
            self._wait_until_all_are_served()

    def is_ready(self) -> bool:
        return self.api.answers("/readyz")

    def pids(self) -> dict[str, int]:
        """Of the two servers, by the names of their programs."""
        found = {}
        for name, process in (("kube-apiserver", self._api_server), ("etcd", self._etcd)):
            if process is not None:
                found[name] = process.pid
        return found

    @property
    def address(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    @property
    def authority(self) -> Path:
        """The certificate of the authority that has signed the API server's own."""
        return self._authority.certificate

    @property
    def kubeconfig(self) -> Path:
        """Credentials of an administrator, who may do everything."""
        return self.folder / "admin.kubeconfig"

    @property
    def audit_log(self) -> Path:
        """Each request of our account, and whoever writes the status of a queue.

        A line of JSON each. Of all tests that share the server.
        """
        return self.folder / "audit.log"

    def user(self, name: str, group: str = "tests") -> Path:
        """The kubeconfig of a user, who may do what RBAC says, so nothing at first."""
        certificate, key = self._authority.issue_user(name, group)
        credentials = {"client-certificate": str(certificate), "client-key": str(key)}
        path = certificate.with_suffix(".kubeconfig")
        return self._authority.write_kubeconfig(path, self.address, credentials)

    def token_user(self, name: str, token: str) -> Path:
        """The kubeconfig of somebody who shows a token."""
        path = self.folder / f"{name}.kubeconfig"
        return self._authority.write_kubeconfig(path, self.address, {"token": token})

    def api_of(self, name: str, group: str = "tests") -> Api:
        """Requests with the rights of a user."""
        certificate, key = self._authority.issue_user(name, group)
        return Api.with_certificate(self.address, self.authority, certificate, key)

    def kubectl(self, *arguments: str, given: str = "", kubeconfig: Path | None = None) -> str:
        """What kubectl prints. Raises ProgramFailed, with what it said about it."""
        return self.run("kubectl", *arguments, given=given, kubeconfig=kubeconfig)

    def vcctl(self, *arguments: str, kubeconfig: Path | None = None) -> str:
        """What Volcano's own vcctl prints."""
        return self.run("vcctl", *arguments, kubeconfig=kubeconfig)

    def run(
        self, program: str, *arguments: str, given: str = "", kubeconfig: Path | None = None
    ) -> str:
        environment = {
            "KUBECONFIG": str(kubeconfig or self.kubeconfig),
            "HOME": str(self.folder),
        }
        done = subprocess.run(
            [self.programs.path_of(program), *arguments],
            input=given,
            env=environment,
            text=True,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            raise ProgramFailed(f"{program} {' '.join(arguments)}: {done.stderr or done.stdout}")
        return done.stdout

    def kill_api_server(self) -> None:
        """kill -9: connections break in the middle."""
        assert self._api_server is not None
        self._api_server.kill()

    @contextmanager
    def frozen_api_server(self) -> Iterator[None]:
        """It keeps its connections and says nothing, as behind a network that is gone."""
        assert self._api_server is not None
        os.kill(self._api_server.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._api_server.pid, signal.SIGCONT)

    def start_api_server(self) -> None:
        """Start it again, at the same address."""
        self._api_server = self._start_process("kube-apiserver", self._api_server_command())
        self._api_server.wait_until(self.is_ready)

    def install_crd(self, crd: dict[str, Any]) -> None:
        """Put it in the place of the one of that name. It is served a moment later."""
        self.api.apply(f"{_CRD_LIST}/{crd['metadata']['name']}", crd)

    @contextmanager
    def controllers(self, *gates: str) -> Iterator[Process]:
        """Kubernetes' controllers: namespaces end, Jobs get pods, PDBs get a status.

        `gates` are features that are off by default: "WorkloadWithJob=true".
        """
        yield from self._beside(
            "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig}",
            f"--service-account-private-key-file={self._token_key}",
            f"--root-ca-file={self.authority}",
            f"--controllers={','.join(_CONTROLLERS)}",
            "--leader-elect=false",
            "--secure-port=0",
            f"--feature-gates={','.join((*_GATES, *gates))}",
        )

    @contextmanager
    def kwok(self, stages: Sequence[Path] | None = None, *options: str) -> Iterator[Process]:
        """KWOK plays the kubelet of nodes with the annotation `kwok.x-k8s.io/node: fake`."""
        config = self.folder / "stages.yaml"
        chosen = self.programs.stages() if stages is None else stages
        config.write_text("\n---\n".join(stage.read_text() for stage in chosen))
        yield from self._beside(
            "kwok",
            f"--kubeconfig={self.kubeconfig}",
            f"--config={config}",
            "--manage-all-nodes=false",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            "--node-lease-duration-seconds=40",
            *options,
        )

    @contextmanager
    def volcano_controllers(self, *options: str) -> Iterator[Process]:
        """Volcano's own controller manager: jobs, podgroups, queues and commands."""
        yield from self._beside(
            "vc-controller-manager",
            f"--kubeconfig={self.kubeconfig}",
            "--leader-elect=false",
            "--enable-healthz=false",
            *options,
        )

    def _beside(self, program: str, *options: str) -> Iterator[Process]:
        process = self._start_process(program, [self.programs.path_of(program), *options])
        try:
            yield process
        finally:
            process.stop()

    def _start_on_free_ports(self) -> None:
        self._port = random_port()
        self._start_etcd()
        self._prepare_api_server()
        self.start_api_server()

    def _start_etcd(self) -> None:
        client = f"http://127.0.0.1:{random_port()}"
        peer = f"http://127.0.0.1:{random_port()}"
        command = [
            self.programs.path_of("etcd"),
            "--data-dir",
            str(self.folder / f"etcd-{self._port}"),
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",  # what is lost with the machine is only a test
            "--log-level=warn",
        ]
        self._storage = Storage(client)
        self._storage_address = client
        self._etcd = self._start_process("etcd", command)
        self._etcd.wait_until(self._storage.is_healthy)

    def _prepare_api_server(self) -> None:
        self._certificate, self._key = self._authority.issue_server("api-server", *_HOST_NAMES)
        _, self._token_key = self._authority.issue_server("service-accounts", "localhost")
        self.user("admin", _ADMIN_GROUP).replace(self.kubeconfig)
        self.api = self.api_of("admin", _ADMIN_GROUP)

    def _api_server_command(self) -> list[str]:
        return [
            self.programs.path_of("kube-apiserver"),
            f"--etcd-servers={self._storage_address}",
            f"--secure-port={self._port}",
            "--bind-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--tls-cert-file={self._certificate}",
            f"--tls-private-key-file={self._key}",
            f"--client-ca-file={self.authority}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._token_key}",
            f"--service-account-signing-key-file={self._token_key}",
            # It waits for accounts that only a controller makes.
            "--disable-admission-plugins=ServiceAccount",
            f"--audit-policy-file={self._write_audit_policy()}",
            f"--audit-log-path={self.audit_log}",
            f"--feature-gates={','.join(_GATES)}",
            "--runtime-config=scheduling.k8s.io/v1alpha2=true",
            *self._options,
        ]

    def _write_audit_policy(self) -> Path:
        """What our account asks for is noted, and who writes the status of queues."""
        status = {"group": "scheduling.volcano.sh", "resources": ["queues/status"]}
        rules = [
            {"level": "Metadata", "users": [ACCOUNT]},
            {"level": "Metadata", "resources": [status]},
            {"level": "None"},
        ]
        policy = {
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "rules": rules,
        }
        path = self.folder / "audit-policy.yaml"
        path.write_text(yaml.safe_dump(policy))
        return path

    def _start_process(self, name: str, command: list[str]) -> Process:
        return Process(name, command, self.folder / f"{name}.log")

    def _install_crds(self) -> None:
        self._crds = [_read_yaml(file) for file in self.programs.crds()]
        for crd in self._crds:
            self.install_crd(crd)
        self._wait_until_all_are_served()

    def _wait_until_all_are_served(self) -> None:
        for crd in self._crds:
            self._wait_until_served(crd["spec"])

    def _wait_until_served(self, spec: dict[str, Any]) -> None:
        assert self._api_server is not None
        version = spec["versions"][0]["name"]
        path = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"
        self._api_server.wait_until(lambda: self.api.answers(path))


def _read_yaml(file: Path) -> dict[str, Any]:
    """With the loader in C: the CRDs are long, and the other would take seconds."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return cast(dict[str, Any], yaml.load(file.read_text(), Loader=loader))
