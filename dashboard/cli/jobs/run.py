"""`vcctl job run`: submitting a job, from flags or from a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from dashboard.cli import amounts, output
from dashboard.cli.asking import DryRun
from dashboard.cli.client import api
from dashboard.cli.commands import command
from dashboard.cli.files.documents import documents_of, read_sources
from dashboard.cli.jobs.read import app
from dashboard.cli.names import complete_queue
from dashboard.cli.output import Format, Output
from dashboard.cli.problems import usage

VERSION = "batch.volcano.sh/v1alpha1"
JobName = Annotated[
    str, typer.Option("--name", "-N", metavar="NAME", help="The job's name; needed without a file.")
]
NamespaceOfJob = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAMESPACE",
        help="The job's namespace.",
        show_default="default",
    ),
]
Queue = Annotated[
    str,
    typer.Option(
        "--queue",
        "-q",
        metavar="QUEUE",
        help="The queue that it goes to.",
        autocompletion=complete_queue,
        show_default="default",
    ),
]
Image = Annotated[
    str,
    typer.Option(
        "--image",
        "-i",
        metavar="IMAGE",
        help="What its pods run.",
        show_default="busybox",
    ),
]
Min = Annotated[
    int | None,
    typer.Option("--min", "-m", help="How many pods must run at once.", show_default="1"),
]
Replicas = Annotated[
    int | None, typer.Option("--replicas", "-r", help="How many pods it has.", show_default="1")
]
_AMOUNTS = "cpu=1000m,memory=100Mi"
Requests = Annotated[
    str,
    typer.Option(
        "--requests",
        "-R",
        metavar=_AMOUNTS,
        help="What each pod needs.",
        show_default=_AMOUNTS,
    ),
]
Limits = Annotated[
    str,
    typer.Option(
        "--limits",
        "-L",
        metavar=_AMOUNTS,
        help="What each pod may use.",
        show_default=_AMOUNTS,
    ),
]
SchedulerOfJob = Annotated[
    str,
    typer.Option(
        "--scheduler",
        "-S",
        metavar="NAME",
        help="Its scheduler.",
        show_default="volcano",
    ),
]
File = Annotated[
    str,
    typer.Option(
        "--filename", "-f", metavar="FILE", help="A manifest of jobs instead; - is standard input."
    ),
]
PriorityClass = Annotated[
    str, typer.Option("--priority-class", metavar="NAME", help="Its priority class.")
]
_OF_PODS = {
    "image": "--image",
    "min_available": "--min",
    "replicas": "--replicas",
    "requests": "--requests",
    "limits": "--limits",
}


@command(
    app,
    "run",
    "vcctl job run --name train --queue team-a --replicas 4 --min 4 --requests "
    "cpu=2,nvidia.com/gpu=1",
    "vcctl job run -f job.yaml",
    "# the same file to another queue",
    "vcctl job run -f job.yaml --queue team-b",
    "vcctl job run -N test -q team-a --dry-run -o yaml",
)
def run_job(
    name: JobName = "",
    namespace: NamespaceOfJob = "",
    queue: Queue = "",
    image: Image = "",
    min_available: Min = None,
    replicas: Replicas = None,
    requests: Requests = "",
    limits: Limits = "",
    scheduler: SchedulerOfJob = "",
    priority_class: PriorityClass = "",
    file: File = "",
    dry_run: DryRun = False,
    form: Output = Format.TABLE,
) -> None:
    """Submit a job: one task of equal pods from flags, or any job from a file.

    --queue and --namespace override what the file says.
    """
    given = {"queue": queue, "schedulerName": scheduler, "priorityClassName": priority_class}
    if file:
        _refuse_flags_of_pods(
            {
                "image": image,
                "min_available": min_available,
                "replicas": replicas,
                "requests": requests,
                "limits": limits,
            }
        )
        manifests = documents_of(read_sources([file]))
        submit(_with_options(manifests, name, namespace, given), dry_run, form)
        return
    if not name:
        raise usage("The job needs a name. Give it with --name, or the whole job with -f.")
    asked = amounts.parse_pairs([requests or _AMOUNTS], "--requests")
    resources = {"requests": asked, "limits": amounts.parse_pairs([limits or _AMOUNTS], "--limits")}
    resources["limits"] = {**resources["limits"], **_not_below(resources)}
    container = {
        "name": name,
        "image": image or "busybox",
        "imagePullPolicy": "IfNotPresent",
        "resources": resources,
    }
    pods = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    task = {"name": "task", "replicas": _or_one(replicas), "template": pods}
    spec: dict[str, Any] = {
        "schedulerName": "volcano",
        "queue": "default",
        "minAvailable": _or_one(min_available),
        "tasks": [task],
    }
    spec |= {field: value for field, value in given.items() if value}
    metadata = {"name": name, "namespace": namespace or "default"}
    submit(
        [{"apiVersion": VERSION, "kind": "Job", "metadata": metadata, "spec": spec}],
        dry_run,
        form,
    )


def _or_one(number: int | None) -> int:
    if number is None:
        return 1
    return number


def _refuse_flags_of_pods(given: Mapping[str, object]) -> None:
    """What a file says of each task cannot be said once for all of them."""
    wrong = []
    for name, value in given.items():
        if value not in ("", None):
            wrong.append(_OF_PODS[name])
    if wrong:
        raise usage(f"{wrong[0]} does not go with -f: change it in the file, or leave -f out.")


def _with_options(
    manifests: list[Any],
    name: str,
    namespace: str,
    given: Mapping[str, str],
) -> list[Any]:
    """The jobs of a file with the options of the command line, which count before the file."""
    if name and len(manifests) != 1:
        raise usage(f"--name is for one job; the file has {len(manifests)}.")
    for manifest in manifests:
        if not isinstance(manifest, dict):
            continue
        metadata = manifest.setdefault("metadata", {})
        spec = manifest.setdefault("spec", {})
        if isinstance(metadata, dict):
            if name:
                metadata["name"] = name
            if namespace:
                metadata["namespace"] = namespace
            metadata.setdefault("namespace", "default")
        if isinstance(spec, dict):
            spec |= {field: value for field, value in given.items() if value}
    return manifests


def _not_below(resources: dict[str, dict[str, str]]) -> dict[str, str]:
    """A limit that was left alone follows a request that was raised above it."""
    limits = resources["limits"]
    found: dict[str, str] = {}
    for name, amount in resources["requests"].items():
        if amounts.value(amount) > amounts.value(limits.get(name, "0")):
            found[name] = amount
    return found


def submit(manifests: list[Any], dry_run: bool, form: Format) -> None:
    """Each on its own: what is refused does not keep the others out, and is said at the end."""
    for manifest in manifests:
        kind = ""
        if isinstance(manifest, dict):
            kind = manifest.get("kind", "")
        if kind not in ("", "Job"):
            raise usage(
                f"The file has a {kind}; vcctl job run takes jobs. Use vcctl apply -f for files of "
                "other objects."
            )
    for manifest in manifests:
        saved = api().post("jobs/", manifest, dry_run=dry_run)
        output.warn(saved.get("warnings") or ())
        if form in output.PLAIN_FORMATS:
            output.show_saved(saved, form)
        else:
            output.done(f"{output.name_of(saved)} created", dry_run)
