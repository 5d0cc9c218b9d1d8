"""Who we are to the API server, from files of all kinds, and what is said of bad ones."""

from __future__ import annotations

import base64
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler.clusters.kubernetes.credentials import (
    Credentials,
    CredentialsError,
    Identity,
    Server,
    from_kubeconfig,
    in_cluster,
    load_credentials,
)

PEM = "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def kubeconfig(
    folder: Path,
    *,
    user: dict[str, Any] | None = None,
    cluster: dict[str, Any] | None = None,
    **fields: Any,
) -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team"}}
        ],
        "clusters": [
            {"name": "c", "cluster": {"server": "https://example.com:6443/", **(cluster or {})}}
        ],
        "users": [{"name": "u", "user": user or {}}],
        **fields,
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(config))
    return path


def test_a_token_and_the_authority_as_data(tmp_path):
    path = kubeconfig(
        tmp_path,
        user={"token": "secret"},
        cluster={"certificate-authority-data": encoded(PEM), "tls-server-name": "other"},
    )

    credentials = from_kubeconfig(path)

    assert credentials.server == Server("https://example.com:6443", PEM, tls_name="other")
    assert credentials.identity() == Identity(token="secret")
    assert (credentials.name, credentials.namespace) == ("here", "team")


def test_files_are_looked_for_beside_the_kubeconfig(tmp_path):
    for name in ("ca.crt", "me.crt", "me.key"):
        (tmp_path / name).write_text(f"text of {name}")
    path = kubeconfig(
        tmp_path,
        user={"client-certificate": "me.crt", "client-key": "me.key"},
        cluster={"certificate-authority": "ca.crt"},
    )

    credentials = from_kubeconfig(path)

    assert credentials.server.ca == "text of ca.crt"
    assert credentials.identity().certificate == "text of me.crt"
    assert credentials.identity().key == "text of me.key"


def test_another_context_than_the_current_one(tmp_path):
    contexts = [
        {"name": "here", "context": {"cluster": "c", "user": "u"}},
        {"name": "there", "context": {"cluster": "c", "namespace": "far"}},
    ]

    credentials = from_kubeconfig(kubeconfig(tmp_path, contexts=contexts), "there")

    assert (credentials.name, credentials.namespace) == ("there", "far")
    assert credentials.identity() == Identity()


def test_a_secret_never_shows_in_a_message():
    assert "secret" not in repr(Identity(token="secret", key="secret"))


@pytest.mark.parametrize(
    ("change", "names"),
    [
        pytest.param({"current-context": ""}, "current-context", id="no-context"),
        pytest.param({"current-context": "gone"}, "contexts has no entry called gone", id="other"),
        pytest.param({"clusters": None}, "clusters is missing", id="no-clusters"),
        pytest.param(
            {"clusters": [{"name": "c", "cluster": None}]},
            "clusters[0].cluster must be",
            id="empty",
        ),
        pytest.param(
            {"clusters": [{"name": "c", "cluster": {}}]},
            "clusters[0].cluster.server is missing",
            id="no-server",
        ),
        pytest.param(
            {"cluster": {"server": "example.com"}},
            "clusters[0].cluster.server is example.com",
            id="scheme",
        ),
        pytest.param(
            {"cluster": {"server": 6443}}, "clusters[0].cluster.server must be text", id="number"
        ),
        pytest.param(
            {"cluster": {"certificate-authority": "gone.crt"}},
            "clusters[0].cluster.certificate-authority names",
            id="no-file",
        ),
        pytest.param(
            {"cluster": {"certificate-authority-data": "§"}},
            "clusters[0].cluster.certificate-authority-data is no PEM",
            id="no-base64",
        ),
        pytest.param(
            {"cluster": {"insecure-skip-tls-verify": "no"}},
            "insecure-skip-tls-verify must be",
            id="truth",
        ),
        pytest.param({"users": []}, "users has no entry called u", id="no-user"),
        pytest.param(
            {"user": {"username": "me"}}, "users[0].user.username is not supported", id="password"
        ),
        pytest.param(
            {"user": {"client-key-data": encoded(PEM)}},
            "users[0].user.client-certificate is missing",
            id="half",
        ),
        pytest.param({"user": {"tokenFile": "gone"}}, "gone does not exist", id="no-token-file"),
        pytest.param(
            {"user": {"exec": {"apiVersion": "v1"}}},
            "users[0].user.exec.command is missing",
            id="exec",
        ),
        pytest.param(
            {"user": {"exec": {"command": "/gone", "apiVersion": "v1"}}},
            "users[0].user.exec.command failed",
            id="no-program",
        ),
    ],
)
def test_a_bad_kubeconfig_is_told_with_file_and_field(tmp_path, change, names):
    path = kubeconfig(tmp_path, **change)

    with pytest.raises(CredentialsError) as error:
        from_kubeconfig(path).identity()

    assert names in str(error.value)
    assert str(tmp_path) in str(error.value)


@pytest.mark.parametrize(("text", "says"), [("{", "is no YAML"), ("- a", "is no kubeconfig")])
def test_a_file_of_another_kind_is_told(tmp_path, text, says):
    path = tmp_path / "config"
    path.write_text(text)

    with pytest.raises(CredentialsError, match=says):
        from_kubeconfig(path)


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(CredentialsError, match="gone does not exist"):
        load_credentials(str(tmp_path / "gone"))


def test_without_a_name_the_environment_says_which_file(tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, user={"token": "t"})))

    assert load_credentials().identity().token == "t"


def other_file(folder: Path, **fields: Any) -> Path:
    (folder / "more").mkdir()
    path = folder / "more/config"
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **fields}))
    return path


def several(*paths: Path) -> str:
    return os.pathsep.join(str(path) for path in paths)


def test_several_files_count_as_one_and_the_first_of_a_name_counts(tmp_path):
    first = kubeconfig(tmp_path, user={"token": "first"})
    second = other_file(
        tmp_path,
        **{"current-context": "there"},
        contexts=[{"name": "there", "context": {"cluster": "far", "user": "u"}}],
        clusters=[{"name": "far", "cluster": {"server": "https://far.example.com"}}],
        users=[{"name": "u", "user": {"token": "second"}}],
    )

    here = load_credentials(several(first, second))
    there = load_credentials(several(first, second), "there")

    assert (here.name, here.identity().token) == ("here", "first")
    assert there.server.url == "https://far.example.com"
    assert there.identity().token == "first"
    assert load_credentials(several(second, first)).name == "there"


def test_of_several_files_those_that_are_missing_are_passed_over(tmp_path, monkeypatch):
    path = kubeconfig(tmp_path, user={"token": "t"})
    monkeypatch.setenv("KUBECONFIG", several(tmp_path / "gone", path))

    assert load_credentials().identity().token == "t"
    with pytest.raises(CredentialsError, match=r"gone:.*lost does not exist"):
        load_credentials(several(tmp_path / "gone", tmp_path / "lost"))


def test_a_path_begins_at_the_file_that_names_it(tmp_path):
    second = other_file(tmp_path, users=[{"name": "u", "user": {"tokenFile": "token"}}])
    (tmp_path / "more/token").write_text("beside the second")
    first = kubeconfig(tmp_path, users=[])

    assert load_credentials(several(first, second)).identity().token == "beside the second"


def test_an_entry_that_none_of_several_files_has_is_told_with_all_of_them(tmp_path):
    second = other_file(tmp_path, users=[])
    first = kubeconfig(tmp_path)

    with pytest.raises(CredentialsError, match=r"config:.*more/config: contexts has no entry"):
        load_credentials(several(first, second), "nowhere")


def test_an_auth_provider_is_refused_with_what_to_use_instead(tmp_path):
    path = kubeconfig(tmp_path, user={"auth-provider": {"name": "oidc", "config": {}}})

    with pytest.raises(CredentialsError) as error:
        load_credentials(str(path)).identity()

    assert str(error.value) == (
        f"{path}: users[0].user.auth-provider is not supported, because Kubernetes has given it "
        "up; use exec with a credential plugin, such as kubelogin for OIDC."
    )


# A program that gives credentials

PLUGIN = """
import json, os, pathlib, sys
folder = pathlib.Path(sys.argv[1])
calls = folder / "calls"
calls.write_text(calls.read_text() + "x" if calls.exists() else "x")
status = json.loads((folder / "status.json").read_text())
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
print(json.dumps({"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": status}))
"""


def plugin_kubeconfig(folder: Path, status: dict[str, Any], **cluster: Any) -> Path:
    (folder / "plugin.py").write_text(PLUGIN)
    (folder / "status.json").write_text(json.dumps(status))
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": [str(folder / "plugin.py"), str(folder)],
        "interactiveMode": "Never",
    }
    return kubeconfig(folder, user={"exec": plugin}, cluster=cluster)


def calls(folder: Path) -> int:
    return len((folder / "calls").read_text())


def test_a_program_gives_a_token_which_is_kept_until_it_ends(tmp_path):
    status = {"token": "t1", "expirationTimestamp": "2030-01-01T00:00:00Z"}
    credentials = from_kubeconfig(plugin_kubeconfig(tmp_path, status))
    end = 1_893_456_000.0  # of the token
    credentials.clock = lambda: end - 3600
    first = credentials.identity()
    credentials.identity()
    assert calls(tmp_path) == 1

    credentials.clock = lambda: end - 30
    (tmp_path / "status.json").write_text('{"token": "t2"}')

    assert (first.token, credentials.identity().token) == ("t1", "t2")
    assert calls(tmp_path) == 2


def test_a_program_may_give_a_certificate(tmp_path):
    status = {"clientCertificateData": PEM, "clientKeyData": "key"}

    identity = from_kubeconfig(plugin_kubeconfig(tmp_path, status)).identity()

    assert (identity.certificate, identity.key) == (PEM, "key")


def test_a_program_that_gives_nothing_is_told(tmp_path):
    path = plugin_kubeconfig(tmp_path, {})

    with pytest.raises(CredentialsError, match=r"users\[0\].user.exec.command gave neither"):
        from_kubeconfig(path).identity()


def test_without_the_official_package_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "kubernetes.config.exec_provider", None)
    path = plugin_kubeconfig(tmp_path, {"token": "t"})

    with pytest.raises(CredentialsError, match=r"requirements-kubernetes\.txt"):
        from_kubeconfig(path).identity()


# Inside a cluster


def service_account(folder: Path) -> dict[str, str]:
    for name, text in {"ca.crt": PEM, "token": "t1\n", "namespace": "fumarole"}.items():
        (folder / name).write_text(text)
    return {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}


def test_inside_a_cluster_the_service_account_counts(tmp_path):
    credentials = in_cluster(tmp_path, service_account(tmp_path))

    assert credentials.server == Server("https://10.0.0.1:6443", PEM)
    assert (credentials.identity().token, credentials.namespace) == ("t1", "fumarole")


def test_a_service_account_may_be_mounted_elsewhere(tmp_path):
    environment = {**service_account(tmp_path), "KUBERNETES_SERVICE_ACCOUNT": str(tmp_path)}

    assert in_cluster(environment=environment).identity().token == "t1"


def test_an_address_of_version_6_gets_brackets(tmp_path):
    environment = {**service_account(tmp_path), "KUBERNETES_SERVICE_HOST": "fd00::1"}

    assert in_cluster(tmp_path, environment).server.url == "https://[fd00::1]:6443"


def test_a_renewed_token_is_read_after_a_minute(tmp_path):
    credentials = in_cluster(tmp_path, service_account(tmp_path))
    now = credentials.clock()
    assert credentials.identity().token == "t1"

    (tmp_path / "token").write_text("t2")
    credentials.clock = lambda: now + 30
    before = credentials.identity().token
    credentials.clock = lambda: now + 65

    assert (before, credentials.identity().token) == ("t1", "t2")


def test_outside_a_cluster_there_is_no_service_account(tmp_path):
    with pytest.raises(CredentialsError, match="KUBERNETES_SERVICE_HOST"):
        in_cluster(tmp_path, {})


# Renewal


def counted() -> Credentials:
    given = iter(range(1, 10))
    return Credentials(Server("http://s"), lambda: Identity(token=f"t{next(given)}"))


def test_refused_credentials_are_loaded_again_once_for_all_threads():
    credentials = counted()
    refused = credentials.identity()

    answers = [credentials.renew(refused).token for _thread in range(3)]

    assert answers == ["t2", "t2", "t2"]
    assert credentials.identity().token == "t2"
