"""`manage.py kubernetes`: what it prints and refuses before it speaks with a cluster."""

from __future__ import annotations

import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command

from tests.control_plane.plane import ControlPlane
from tests.mirrored import kubernetes_mode
from tests.running import BASE, clean_environment


def test_a_dry_run_prints_what_would_be_applied_in_the_mode_that_was_asked_for() -> None:
    watching = _documents("install", "--dry-run")
    scheduling = _documents("install", "--dry-run", "--mode", "schedule")

    assert "ClusterRole fumarole-watch" in watching
    assert "ClusterRole fumarole-schedule" not in watching
    assert "ClusterRole fumarole-schedule" in scheduling
    assert not any("Webhook" in name for name in scheduling)


def test_a_dry_run_shows_the_webhooks_with_address_and_authority(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("certificate")
    options = ("--webhooks", "https://console.example", "--ca", str(tmp_path / "ca.pem"))

    shown = _documents("install", "--dry-run", *options)

    (hook, *_) = shown["ValidatingWebhookConfiguration fumarole-validate"]["webhooks"]
    assert hook["clientConfig"]["url"] == "https://console.example/admission/queues/validate"
    assert hook["clientConfig"]["caBundle"] == "Y2VydGlmaWNhdGU="


def test_a_service_of_the_cluster_is_named_as_a_service(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("certificate")
    options = ("--webhooks", "https://console.tools.svc:8443", "--ca", str(tmp_path / "ca.pem"))

    shown = _documents("install", "--dry-run", *options)

    (hook, *_) = shown["ValidatingWebhookConfiguration fumarole-validate"]["webhooks"]
    assert hook["clientConfig"] == {
        "service": {
            "name": "console",
            "namespace": "tools",
            "port": 8443,
            "path": "/admission/queues/validate",
        },
        "caBundle": "Y2VydGlmaWNhdGU=",
    }


def test_pods_of_the_schedulers_in_the_settings_are_asked_about(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("certificate")
    options = ("--webhooks", "https://console.example", "--ca", str(tmp_path / "ca.pem"))

    with kubernetes_mode(scheduler_names=("volcano", "default-scheduler")):
        shown = _documents("install", "--dry-run", *options)

    hook = shown["ValidatingWebhookConfiguration fumarole-validate"]["webhooks"][-1]
    (condition,) = hook["matchConditions"]
    assert hook["name"] == "validate.pods.fumarole.io"
    assert condition["expression"].endswith('in ["volcano", "default-scheduler"]')


def test_no_installation_and_no_secret_are_needed(tmp_path: Path) -> None:
    command = [sys.executable, "manage.py", "kubernetes", "install", "--dry-run"]
    environment = clean_environment(tmp_path / "var", 0)

    done = subprocess.run(
        command, cwd=BASE, env=environment, text=True, capture_output=True, check=True
    )

    assert "kind: ClusterRoleBinding" in done.stdout


def test_a_dry_run_of_uninstall_leaves_the_definitions_out() -> None:
    assert not any("Definition" in name for name in _documents("uninstall", "--dry-run"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--webhooks", "http://console.example"), "https://"),
        (("--webhooks", "https://console.example"), "--ca"),
        (("--webhooks", "https://console.example", "--ca", "/no/such/file"), "/no/such/file"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: tuple[str, ...], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        _run("install", "--dry-run", *options)


def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="missing"):
        _run("status", "--kubeconfig", str(tmp_path / "missing"))


def test_install_tells_each_step(control_plane: ControlPlane) -> None:
    output = _run("install", "--kubeconfig", str(control_plane.kubeconfig))

    assert "applied   ClusterRole fumarole-watch\n" in output
    assert "kept      CustomResourceDefinition queues.scheduling.volcano.sh: it does not" in output


def test_a_namespace_is_taken_over_and_given_back(control_plane: ControlPlane) -> None:
    cluster = ("--kubeconfig", str(control_plane.kubeconfig))

    taken = _run("take-over", "--namespace", "default", *cluster)
    status = _run("status", *cluster)
    given_back = _run("give-back", *cluster)

    assert taken == "Fumarole's from now on: new work of the namespace default.\n"
    assert "present   MutatingAdmissionPolicy fumarole-take-over-jobs\n" in status
    assert status.endswith("taken over: the namespace default\n")
    assert given_back == "Given back. Still taken over: nothing.\n"


def test_a_dry_run_shows_the_policies_with_the_names() -> None:
    shown = _documents("take-over", "--dry-run", "--namespace", "team-a", "--queue", "research")

    for name in ("jobs", "pods"):
        policy = shown[f"MutatingAdmissionPolicy fumarole-take-over-{name}"]
        condition = policy["spec"]["matchConditions"][-1]["expression"]
        assert '["team-a"]' in condition
        assert '["research"]' in condition
        assert "example" not in condition


def test_what_to_take_over_must_be_named(control_plane: ControlPlane) -> None:
    cluster = ("--kubeconfig", str(control_plane.kubeconfig))

    with pytest.raises(CommandError, match="--namespace NAME or --queue NAME"):
        _run("take-over", *cluster)
    with pytest.raises(CommandError, match="There is no queue nobody"):
        _run("take-over", "--queue", "nobody", *cluster)


def _run(*arguments: str) -> str:
    output = StringIO()
    call_command("kubernetes", *arguments, stdout=output)
    return output.getvalue()


def _documents(*arguments: str) -> dict[str, dict[str, Any]]:
    found = {}
    for document in yaml.load_all(_run(*arguments), Loader=yaml.CSafeLoader):
        found[f"{document['kind']} {document['metadata']['name']}"] = document
    return found
