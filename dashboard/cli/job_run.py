"""`vcctl job run`: submitting a job, from flags or from a file."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dashboard.cli import amounts, output
from dashboard.cli.asking import DryRun
from dashboard.cli.client import api
from dashboard.cli.commands import command
from dashboard.cli.documents import documents_of, read_sources
from dashboard.cli.job_read import app
from dashboard.cli.names import complete_queue
from dashboard.cli.output import Format, Output
from dashboard.cli.problems import usage

VERSION = "batch.volcano.sh/v1alpha1"
JobName = Annotated[str, typer.Option("--name", "-N", metavar="NAME", help="The job's name; needed without a file.")]
NamespaceOfJob = Annotated[str, typer.Option("--namespace", "-n", metavar="NAMESPACE", help="Where the job shall live.")]
Queue = Annotated[str, typer.Option("--queue", "-q", metavar="QUEUE", help="The queue that it goes to.", autocompletion=complete_queue)]
Image = Annotated[str, typer.Option("--image", "-i", metavar="IMAGE", help="What its pods run.")]
Min = Annotated[int, typer.Option("--min", "-m", help="How many pods must run at once.")]
Replicas = Annotated[int, typer.Option("--replicas", "-r", help="How many pods it has.")]
Requests = Annotated[str, typer.Option("--requests", "-R", metavar="cpu=1000m,memory=100Mi", help="What each pod needs.")]
Limits = Annotated[str, typer.Option("--limits", "-L", metavar="cpu=1000m,memory=100Mi", help="What each pod may use.")]
SchedulerOfJob = Annotated[str, typer.Option("--scheduler", "-S", metavar="NAME", help="Its scheduler.")]
File = Annotated[str, typer.Option("--filename", "-f", metavar="FILE", help="A manifest of jobs instead; - is standard input.")]
PriorityClass = Annotated[str, typer.Option("--priority-class", metavar="NAME", help="Its priority class.")]
DEFAULT_AMOUNTS = "cpu=1000m,memory=100Mi"


@command(
    app,
    "run",
    "vcctl job run --name train --queue team-a --replicas 4 --min 4 --requests cpu=2,nvidia.com/gpu=1",
    "vcctl job run -f job.yaml",
    "vcctl job run -N test -q team-a --dry-run -o yaml",
)
def run_job(
    name: JobName = "",
    namespace: NamespaceOfJob = "default",
    queue: Queue = "default",
    image: Image = "busybox",
    min_available: Min = 1,
    replicas: Replicas = 1,
    requests: Requests = DEFAULT_AMOUNTS,
    limits: Limits = DEFAULT_AMOUNTS,
    scheduler: SchedulerOfJob = "volcano",
    priority_class: PriorityClass = "",
    file: File = "",
    dry_run: DryRun = False,
    form: Output = Format.TABLE,
) -> None:
    """Submit a job: one task of equal pods from flags, or any job from a file."""
    if file:
        submit(documents_of(read_sources([file])), namespace, dry_run, form)
        return
    if not name:
        raise usage("Which name shall the job have? Give it with --name, or the whole job with -f.")
    resources = {"requests": amounts.parse_pairs([requests], "--requests"), "limits": amounts.parse_pairs([limits], "--limits")}
    resources["limits"] = {**resources["limits"], **_not_below(resources)}
    container = {"name": name, "image": image, "imagePullPolicy": "IfNotPresent", "resources": resources}
    task = {"name": "task", "replicas": replicas, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    spec: dict[str, Any] = {"schedulerName": scheduler, "queue": queue, "minAvailable": min_available, "tasks": [task]}
    if priority_class:
        spec["priorityClassName"] = priority_class
    manifest = {"apiVersion": VERSION, "kind": "Job", "metadata": {"name": name, "namespace": namespace}, "spec": spec}
    submit([manifest], namespace, dry_run, form)


def _not_below(resources: dict[str, dict[str, str]]) -> dict[str, str]:
    """A limit that was left alone follows a request that was raised above it."""
    limits = resources["limits"]
    return {name: amount for name, amount in resources["requests"].items() if amounts.value(amount) > amounts.value(limits.get(name, "0"))}


def submit(manifests: list[Any], namespace: str, dry_run: bool, form: Format) -> None:
    """Each on its own: what is refused does not keep the others out, and is said at the end."""
    for manifest in manifests:
        kind = manifest.get("kind", "") if isinstance(manifest, dict) else ""
        if kind not in ("", "Job"):
            raise usage(f"The file has a {kind}; vcctl job run takes jobs. Use vcctl apply -f for files of other objects.")
    for manifest in manifests:
        metadata = manifest.setdefault("metadata", {}) if isinstance(manifest, dict) else {}
        if isinstance(metadata, dict):
            metadata.setdefault("namespace", namespace)
        saved = api().post("jobs/", manifest, dry_run=dry_run)
        output.warn(saved.get("warnings") or ())
        if form in output.PLAIN_FORMATS:
            output.show_value({key: value for key, value in saved.items() if key not in ("warnings", "changed")}, form)
        else:
            output.line(f"{output.name_of(saved)} created{' (dry run)' if dry_run else ''}")
