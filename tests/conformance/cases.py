"""The cases taken from Volcano's tests and the scenarios run against the real one, as data.

And what our engine makes of them.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from scheduler.domain.resources import Resources
from scheduler.scenarios.files import read_scenarios
from scheduler.scenarios.running import Run, run_scenario

HERE = Path(__file__).parent
SCHEDULING = HERE / "scheduling"
DIFFERENTIAL = HERE / "differential"

Case = dict[str, Any]


def load(path: Path) -> list[Case]:
    document = json.loads(path.read_text())
    return document if isinstance(document, list) else document["cases"]


def scheduling_cases() -> dict[str, Case]:
    """By "file::name", as names are unique within a file only."""
    index = {(entry["file"], entry["name"]): entry for entry in load(SCHEDULING / "index.json")}
    files = sorted(path for path in SCHEDULING.glob("*.json") if path.name != "index.json")
    return {
        f"{path.stem}::{case['name']}": {**index[path.name, case["name"]], **case}
        for path in files
        for case in load(path)
    }


def differential_cases() -> dict[str, Case]:
    return {
        f"{path.stem}::{case['name']}": case
        for path in sorted(DIFFERENTIAL.glob("*.json"))
        for case in load(path)
    }


@cache
def differences() -> dict[str, dict[str, Case]]:
    """Every case that comes out otherwise than with Volcano, and the decided point that wants it
    so.
    """
    return json.loads((HERE / "differences.json").read_text())


def run(case: Case, sessions: int = 1) -> list[Run]:
    (scenario,) = read_scenarios(
        json.dumps(
            {key: value for key, value in case.items() if key not in ("probe", "testPlugins")}
        ),
        case["name"],
    )
    return list(run_scenario(scenario, sessions))


def queue_of_pods(case: Case) -> dict[str, str]:
    queues = {
        f"{group['namespace']}/{group['name']}": group["queue"] for group in case["podgroups"]
    }
    return {
        f"{pod['namespace']}/{pod['name']}": queues.get(f"{pod['namespace']}/{pod['podgroup']}", "")
        for pod in case["pods"]
    }


def volcano_amounts(amounts: Resources) -> dict[str, float]:
    """In the units of the observed outcomes: thousandths of a cpu, bytes, whole pieces of
    everything else.
    """
    whole = {name: amount for name, amount in amounts.items() if name in ("cpu", "memory", "pods")}
    return {
        **whole,
        **{name: amount / 1000 for name, amount in amounts.items() if name not in whole},
    }
