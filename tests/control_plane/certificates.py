"""The certificates of a control plane: its authority, the servers' own, and one for each user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import trustme
import yaml

_ANY_NAME = "client.invalid"  # the authority asks for a host name, and a user has none


class Authority:
    """Issues certificates into one folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._authority = trustme.CA()
        self.certificate = folder / "authority.crt"
        self._authority.cert_pem.write_to_path(str(self.certificate))

    def issue_server(self, name: str, *host_names: str) -> tuple[Path, Path]:
        """The files of certificate and key of a server with these names and addresses."""
        return self._write(name, self._authority.issue_cert(*host_names, common_name=name))

    def issue_user(self, name: str, group: str) -> tuple[Path, Path]:
        """The files of certificate and key of a user; Kubernetes reads both names from it."""
        issued = self._authority.issue_cert(_ANY_NAME, common_name=name, organization_name=group)
        return self._write(f"user-{name.replace(':', '-')}", issued)

    def write_kubeconfig(self, path: Path, server: str, credentials: dict[str, Any]) -> Path:
        """A kubeconfig for this server; the credentials are a `user` as kubectl reads it."""
        cluster = {"server": server, "certificate-authority": str(self.certificate)}
        context = {"cluster": "test", "user": "user", "namespace": "default"}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "user", "user": credentials}],
            "contexts": [{"name": "test", "context": context}],
            "current-context": "test",
        }
        path.write_text(yaml.safe_dump(config))
        return path

    def _write(self, name: str, issued: trustme.LeafCert) -> tuple[Path, Path]:
        certificate = self._folder / f"{name}.crt"
        key = self._folder / f"{name}.key"
        issued.cert_chain_pems[0].write_to_path(str(certificate))
        issued.private_key_pem.write_to_path(str(key))
        key.chmod(0o600)
        return certificate, key
