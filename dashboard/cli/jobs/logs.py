"""`vcctl job logs` and `vcctl pod logs`: what containers have written, and what they write now."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from dashboard.cli import output
from dashboard.cli.client import api, path
from dashboard.cli.commands import Options, command
from dashboard.cli.jobs.pods import pods
from dashboard.cli.jobs.read import app
from dashboard.cli.names import JobArgument, JobOption, Namespace, job_name
from dashboard.cli.problems import ExitCode, Problem, usage

_MOST_PODS = 10
_RETRIES = 5
_RETRY_SECONDS = 2.0
_CUT = "The log is longer than can be shown, so its end is missing: ask for fewer lines."
_CODES = {"away": ExitCode.NO_CONNECTION, "rights": ExitCode.NOT_ALLOWED}

Follow = Annotated[
    bool, typer.Option("--follow", "-f", help="Stay, and show what is written; Ctrl-C ends it.")
]
ContainerName = Annotated[
    str, typer.Option("--container", "-c", help="Which container, where there are several.")
]
Tail = Annotated[
    int, typer.Option("--tail", "--lines", min=1, help="How many lines of each pod, from the end.")
]
Since = Annotated[
    str, typer.Option("--since", metavar="TIME", help="Only lines of so long ago, such as 10m.")
]
Previous = Annotated[
    bool, typer.Option("--previous", help="Of the run before the container started again.")
]
Times = Annotated[bool, typer.Option("--timestamps", help="With the time of each line.")]
_WHICH_LINES: Options = {
    "follow": (Follow, False),
    "container": (ContainerName, ""),
    "tail": (Tail, 200),
    "since": (Since, ""),
    "previous": (Previous, False),
    "timestamps": (Times, False),
}


@command(
    pods,
    "logs",
    "vcctl pod logs train-worker-0",
    "vcctl pod logs research/train-worker-0 --container main --tail 1000",
    "vcctl pod logs train-worker-0 --since 10m --timestamps",
    "# stay, and show what is written from now on\n  vcctl pod logs train-worker-0 -f --tail 1",
    options=_WHICH_LINES,
)
def pod_logs(
    name: Annotated[str, typer.Argument(metavar="POD", help="A pod, with or without namespace.")],
    namespace: Namespace = "default",
    **given: Any,
) -> None:
    """What a container of a pod has written, or writes now."""
    place, _, pod = name.rpartition("/")
    where = path("pods", place or namespace, pod, "log")
    if given["follow"]:
        _Followed(f"{where}follow/", given).to_the_end()
    else:
        _print_log(where, given, "")


@command(
    app,
    "logs",
    "vcctl job logs train",
    "vcctl job logs research/train --task worker --index 0 --tail 1000",
    "# all pods, as they write\n  vcctl job logs train -f",
    options=_WHICH_LINES,
)
def job_logs(
    name: JobArgument = "",
    option: JobOption = "",
    task: Annotated[str, typer.Option("--task", help="Only pods of this task.")] = "",
    index: Annotated[
        int | None, typer.Option("--index", min=0, help="Only the pod with this number.")
    ] = None,
    namespace: Namespace = "default",
    **given: Any,
) -> None:
    """What the pods of a job have written, or write now.

    Each line has the name of its pod in front where there are several.
    """
    place, wanted = job_name(name, option, namespace, "read the logs of")
    names = _pods_of(place, wanted, task, index)
    if given["follow"]:
        where = path("jobs", place, wanted, "log", "follow")
        asked = {"task": task, "index": index}
        _Followed(where, given, asked, with_names=len(names) != 1).to_the_end()
        return
    if not names:
        output.remark(f"{place}/{wanted} has no such pods.")
    for pod in names[:_MOST_PODS]:
        prefix = f"[{pod}] " if len(names) > 1 else ""
        _print_log(path("pods", place, pod, "log"), given, prefix)
    if len(names) > _MOST_PODS:
        output.remark(f"{len(names) - _MOST_PODS} more pods are not shown. Name one with --index.")


def _pods_of(place: str, job: str, task: str, index: int | None) -> list[str]:
    api().get(path("jobs", place, job), fields="metadata.name")  # told here if there is none
    found = api().all("pods/", podgroup=job, namespace=place, ordering="name")
    names = []
    for pod in found:
        name: str = pod["metadata"]["name"]
        is_of_task = task in ("", pod["status"]["task"])
        if is_of_task and (index is None or name.endswith(f"-{index}")):
            names.append(name)
    return names


def _print_log(where: str, given: Mapping[str, Any], prefix: str) -> None:
    asked = _asked(given)
    asked["previous"] = str(given["previous"]).lower()
    asked["timestamps"] = str(given["timestamps"]).lower()
    answer = api().get(where, **asked)
    if answer["message"]:
        output.remark(answer["message"])
    for line in answer["log"].splitlines():
        output.line(prefix + line)
    if answer["cut"]:
        output.remark(_CUT)


def _asked(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "container": given["container"],
        "lines": given["tail"],
        "since": given["since"],
    }


@dataclass(slots=True)
class _Followed:
    """A stream of lines. Where it breaks, it goes on after the last line that was shown."""

    where: str
    given: Mapping[str, Any]
    more: Mapping[str, Any] = field(default_factory=dict)
    with_names: bool = False
    positions: dict[str, str] = field(default_factory=dict)
    _is_over: bool = False

    def to_the_end(self) -> None:
        if self.given["previous"]:
            raise usage("--previous and --follow cannot be together: that run has ended.")
        failures = 0
        while not self._is_over:
            before = dict(self.positions)
            try:
                self._listen()
            except Problem as problem:
                failures = failures + 1 if self.positions == before else 1
                is_lost = problem.code is ExitCode.NO_CONNECTION and not self._is_over
                if not is_lost or failures > _RETRIES:
                    raise
                output.remark(f"{problem} Trying again.")
                time.sleep(_RETRY_SECONDS)

    def _listen(self) -> None:
        asked = {**self.more, **_asked(self.given)}
        if self.positions:
            places = [f"{pod}={position}" for pod, position in self.positions.items()]
            asked["from"] = ",".join(places)
        for name, data in api().events(self.where, asked):
            if name == "end":
                self._take_end(data)
                return
            if name == "remark":
                output.remark(data["message"])
            else:
                self._take_lines(data)
        raise Problem("The server ended the connection.", ExitCode.NO_CONNECTION)

    def _take_lines(self, data: Mapping[str, Any]) -> None:
        self.positions[data["pod"]] = data["position"]
        if data["leftOut"]:
            output.remark(f"Some lines of {data['pod']} are missing: it writes too fast.")
        for stamp, text in data["lines"]:
            line = text
            if self.given["timestamps"]:
                line = f"{stamp} {line}"
            if self.with_names:
                line = f"[{data['pod']}] {line}"
            output.line(line)

    def _take_end(self, data: Mapping[str, Any]) -> None:
        if data["reason"] == "time":
            return  # it is followed again from there
        self._is_over = True
        if data["reason"] in _CODES:
            raise Problem(data["message"], _CODES[data["reason"]])
        output.remark(data["message"])
