"""deploy/systemd, deploy/compose.yaml and deploy/Dockerfile start what docs/how-to/production.md
starts, closed as far as it goes.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.needed import debian_program
from tests.running import BASE

DEPLOY = BASE / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*[!@].service"))
SEVERAL = DEPLOY / "systemd" / "fumarole-web@.service"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
PROCESSES = {
    "web": "uvicorn",
    "scheduler": "-Q scheduler",
    "worker": "-Q default",
    "beat": " beat ",
}
_COMMAND = re.compile(r"^\.venv/bin/python (-m (?:uvicorn|dashboard\.worker) .+)$", re.MULTILINE)


def documented() -> dict[str, list[str]]:
    """By process, the words after “python” in docs/how-to/production.md."""
    lines = _COMMAND.findall((BASE / "docs/how-to/production.md").read_text())
    found = {}
    for name, mark in PROCESSES.items():
        (line,) = [each for each in lines if mark in f"{each} "]
        found[name] = shlex.split(line)
    return found


def of_unit(unit: Path, setting: str) -> str:
    (line,) = [line for line in unit.read_text().splitlines() if line.startswith(f"{setting}=")]
    return line.partition("=")[2]


def test_there_is_a_unit_for_each_process_with_the_documented_command():
    found = {}
    for unit in UNITS:
        _python, *words = shlex.split(of_unit(unit, "ExecStart").replace("%%", "%"))
        found[unit.stem.removeprefix("fumarole-")] = words

    assert found == documented()


def test_the_unit_of_several_web_processes_differs_in_the_port_alone():
    one = (DEPLOY / "systemd" / "fumarole-web.service").read_text()
    several = SEVERAL.read_text().replace(" at port %i", "").replace("--port %i", "--port 8000")

    assert several == one


def test_every_unit_that_is_enabled_belongs_to_the_target():
    """The target names none itself: with several web processes the single one is not started."""
    target = (DEPLOY / "systemd" / "fumarole.target").read_text()

    assert "Wants=" not in target
    for unit in (*UNITS, SEVERAL):
        assert of_unit(unit, "WantedBy") == "fumarole.target"
        assert of_unit(unit, "PartOf") == "fumarole.target"


def test_systemd_finds_nothing_wrong(tmp_path: Path):
    for unit in (*UNITS, SEVERAL, DEPLOY / "systemd" / "fumarole.target"):
        here = unit.read_text().replace("/opt/fumarole/.venv/bin/python", sys.executable)
        (tmp_path / unit.name).write_text(here.replace("User=fumarole", "User=www-data"))

    systemd = debian_program("systemd-analyze", "systemd")
    command = [systemd, "verify", "--man=no", *map(str, sorted(tmp_path.iterdir()))]
    done = subprocess.run(command, text=True, capture_output=True, check=False)

    told = [line for line in done.stderr.splitlines() if "fumarole" in line]
    assert told == []


def test_compose_keeps_to_its_specification():
    schema = json.loads((BASE / "tests/deploy/compose-spec/compose-spec.json").read_text())
    validator = Draft202012Validator(schema)

    assert [error.message for error in validator.iter_errors(COMPOSE)] == []


def test_every_name_in_compose_means_something():
    """What the schema cannot say: services and volumes that are named are there."""
    for service in COMPOSE["services"].values():
        assert set(service.get("depends_on", ())) <= set(COMPOSE["services"])
        for volume in service.get("volumes", ()):
            assert volume.split(":")[0] in COMPOSE["volumes"]


def test_compose_starts_the_documented_commands():
    for name, words in documented().items():
        _python, *given = shlex.split(COMPOSE["services"][name]["command"])
        assert given == ["0.0.0.0" if word == "127.0.0.1" else word for word in words]


@pytest.mark.parametrize("name", ["prepare", *PROCESSES])
def test_compose_closes_each_process(name: str):
    service = COMPOSE["services"][name]

    assert service["read_only"] is True
    assert service["user"] == "10001:10001"
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]


def test_compose_waits_for_the_tables_and_servers():
    services = COMPOSE["services"]

    for name in PROCESSES:
        assert services[name]["depends_on"]["prepare"]["condition"] == (
            "service_completed_successfully"
        )
    for name in ("web", "postgres", "redis"):
        assert services[name]["healthcheck"]["test"]
    assert services["web"]["ports"] == ["127.0.0.1:8000:8000"]


def test_the_image_runs_as_nobody_and_without_what_built_it():
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    stages = [number for number, line in enumerate(lines) if line.startswith("FROM ")]
    last = lines[stages[-1] :]

    assert len(stages) == 2
    assert "USER 10001:10001" in last
    assert not any("pip install" in line for line in last)
    for line in last:
        if line.startswith("COPY ") and "--from=" not in line:
            assert (BASE / line.split()[1]).exists()


def test_the_dockerfile_has_none_of_the_usual_mistakes():
    """What a linter for Dockerfiles warns of: rebuilds that give something else, or too much."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    orders = {line.split()[0] for line in lines}

    assert orders <= {
        "FROM",
        "ARG",
        "RUN",
        "COPY",
        "ENV",
        "WORKDIR",
        "USER",
        "CMD",
    }  # no ADD, no shell
    for line in lines:
        order, *words = line.split()
        if order == "FROM":
            assert re.fullmatch(r"\S+:\d\S*", words[0]), f"{line}: which version?"
        if order == "WORKDIR":
            assert words[0].startswith("/")
        if order == "RUN":
            assert not re.search(r"\b(sudo|cd|curl|wget|apt-get)\b", line), line
        if order == "RUN" and "pip install" in line:
            assert "--require-hashes" in words
            assert "--no-cache-dir" in words
        if order in ("CMD", "ENTRYPOINT"):
            assert words[0].startswith("["), "a shell would not pass signals on"
    secrets = [line for line in lines if line.startswith("ENV") and "SECRET" in line]
    assert secrets == []


def test_the_image_can_have_every_extra_and_has_none_unasked():
    """`make image-check` builds it both ways."""
    text = (DEPLOY / "Dockerfile").read_text()
    extras = {file.stem.removeprefix("requirements-") for file in BASE.glob("requirements-*.txt")}

    copied = set(re.findall(r"^COPY requirements-(\w+)\.txt", text, re.MULTILINE))

    assert copied == extras - {"dev"}
    assert 'ARG EXTRAS=""' in text.splitlines()


def test_compose_passes_every_setting_of_sign_on_on():
    documented = set(
        re.findall(r"`(SSO_\w+)`", (BASE / "docs/how-to/single-sign-on.md").read_text())
    )
    given = COMPOSE["services"]["web"]["environment"]

    assert COMPOSE["services"]["prepare"]["build"]["args"] == {"EXTRAS": "${EXTRAS:-}"}
    for name in documented:
        assert given[name] == f"${{{name}:-}}"


def test_the_image_starts_the_web_process():
    (line,) = [
        line for line in (DEPLOY / "Dockerfile").read_text().splitlines() if line.startswith("CMD ")
    ]
    python, *words = yaml.safe_load(line.removeprefix("CMD "))
    spread = [part for word in words for part in word.split("=", 1)]

    assert python == "python"
    assert spread == ["0.0.0.0" if word == "127.0.0.1" else word for word in documented()["web"]]
