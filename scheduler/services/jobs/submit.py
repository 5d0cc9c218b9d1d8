"""Everything that can be done to a job, whoever asks, and what its pods' fates make of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from scheduler import notify
from scheduler.admission.facts import Facts
from scheduler.admission.reading.queue import place_of
from scheduler.admission.reading.workload import JobManifest, read_job
from scheduler.admission.rules.backlogs import (
    LongestRun,
    check_room,
    check_run_time,
    is_forbidden_by_state,
)
from scheduler.admission.rules.namespaces import check_namespace
from scheduler.admission.rules.workloads import check_queue_takes_work, job_verdict
from scheduler.admission.violations import Notice, Rejected, Verdict, Violation
from scheduler.domain.jobs.commands import COMMANDS, NotPossible, command
from scheduler.domain.jobs.facts import JobStep
from scheduler.domain.jobs.phases import FINISHED
from scheduler.domain.jobs.policies import ACTION_NAMES, JobAction
from scheduler.domain.jobs.settling import phase_after_stopping
from scheduler.domain.queues import DEFAULT, QueueState, QueueTree
from scheduler.models import AuditEntry, Command, Job, Namespace, PodGroup, Queue
from scheduler.selectors.jobs.run_limits import limit_on_the_way
from scheduler.selectors.queues.backlogs import judged
from scheduler.selectors.queues.submission import Scene, submission_scene
from scheduler.services.accounts import access
from scheduler.services.accounts.actors import SYSTEM, Actor, submitter
from scheduler.services.cluster import job_writes
from scheduler.services.cluster.mirrored import changed_in_cluster
from scheduler.services.cluster.queue_writes import SENT_TO_CLUSTER
from scheduler.services.files.versions import Expected, check_version
from scheduler.services.jobs.lifecycle import announce, facts_of, settle_jobs, sync_jobs, take_steps
from scheduler.services.jobs.limit_turns import take_turn
from scheduler.services.jobs.new_jobs import insert_jobs, is_about_a_job
from scheduler.services.jobs.pod_creation import AT_ONCE, first_tasks, podgroup_of
from scheduler.services.jobs.pod_stopping import is_stopped_in_steps
from scheduler.services.jobs.pods import Priorities, are_taken, stored_task, template_of
from scheduler.services.locks import alone_with_pods, share_tree
from scheduler.services.records import audit
from scheduler.services.sessions.requests import want_session

__all__ = [
    "JobCommandResult",
    "Submitted",
    "check_job",
    "check_manifest",
    "command_job",
    "submit_job",
    "sync_jobs",
]


@dataclass(frozen=True, slots=True)
class Submitted:
    """`pods` is how many were made; those of tasks that wait for others come later.

    `run_limit` says how long it may run.
    """

    job: Job
    notices: tuple[Notice, ...] = ()
    pods: int = 0
    run_limit: LongestRun | None = None


@changed_in_cluster("Job")
def submit_job(
    manifest: Mapping[str, Any],
    *,
    by: Actor = SYSTEM,
    dry_run: bool = False,
) -> Submitted:
    """Admit a job and make its podgroup and pods.

    Raises `Rejected` with every violation, and writes nothing then.
    """
    if dry_run:
        return _rehearse_submit(manifest, by)
    if job_writes.are_jobs_in_cluster():
        return _submit_to_cluster(manifest, by)
    with transaction.atomic():
        share_tree()
        scene = read_scene(manifest, submitter(by))
        reading, notices = admit_job(manifest, scene, by)
        if take_turn(scene.facts, pods=reading.replicas):
            scene = read_scene(manifest, submitter(by))
            reading, notices = admit_job(manifest, scene, by)
        job, pods = _create_job(reading, scene, by)
        want_session()
        notify.jobs_changed([str(job)], queues=[job.queue.name])
    return Submitted(job, notices, pods, run_limit_in(scene, reading))


def run_limit_in(scene: Scene, reading: JobManifest) -> LongestRun | None:
    return limit_on_the_way(scene.facts.queue_limits.get(reading.queue, ()))


def _submit_to_cluster(manifest: Mapping[str, Any], by: Actor) -> Submitted:
    """The API server stores it, and the mirror brings it in. Nothing is locked."""
    scene = read_scene(manifest, submitter(by))
    reading, notices = admit_job(manifest, scene, by)
    sent = job_writes.send_new_job(manifest, reading, scene.facts, by.name)
    uid = sent["metadata"]["uid"]
    rows = stored_jobs().filter(uid=uid, podgroup__isnull=False)
    if job_writes.shows(rows.exists):
        job = rows.get()
    else:
        job = _job_in_memory(reading, scene, by)
        job.uid = UUID(uid)
        notices += (job_writes.sent_notice(reading.queue),)
    audit.write([entry_of_submit(job, by)])
    pods = sum(task["replicas"] for task in first_tasks(job))
    return Submitted(job, notices, pods, run_limit_in(scene, reading))


def entry_of_submit(job: Job, by: Actor) -> AuditEntry:
    return audit.entry(
        by,
        "SubmitJob",
        "Job",
        job.name,
        namespace=job.namespace,
        queue=job.queue.name,
        after=_audit_summary(job),
    )


def _job_in_memory(reading: JobManifest, scene: Scene, by: Actor) -> Job:
    """With its podgroup. Neither is saved."""
    job = new_job(reading, scene.queues[reading.queue], by)
    job.created_at = timezone.now()
    podgroup_of(job, Priorities.of_rows(scene.priorities))
    return job


def _rehearse_submit(manifest: Mapping[str, Any], by: Actor) -> Submitted:
    """The same answer without a transaction: whoever only asks writes nothing, and nobody has to
    wait for them.
    """
    scene = read_scene(manifest, submitter(by))
    reading, notices = admit_job(manifest, scene, by)
    job = _job_in_memory(reading, scene, by)
    taken = _taken_name(job, reading)
    if taken is not None:
        raise Rejected([taken], by_state=True)
    pods = sum(task["replicas"] for task in first_tasks(job))
    return Submitted(job, notices, pods, run_limit_in(scene, reading))


def _taken_name(job: Job, manifest: JobManifest) -> Violation | None:
    """The name that the database would refuse. Of very many pods only the first are looked for."""
    if Job.objects.filter(namespace=job.namespace, name=job.name).exists():
        return _exists_violation(job.namespace, manifest)
    names = []
    for task in first_tasks(job):
        for index in range(min(task["replicas"], AT_ONCE)):
            names.append(f"{job.name}-{task['name']}-{index}")
    groups = PodGroup.objects.filter(namespace=job.namespace, name=job.name)
    if groups.exists() or are_taken(job.namespace, names[:AT_ONCE]):
        return _names_taken(job.namespace, manifest)
    return None


def _audit_summary(job: Job) -> dict[str, Any]:
    """What the audit log keeps of a job; its tasks are with the job itself."""
    replicas = {}
    for task in job.tasks:
        replicas[task["name"]] = task["replicas"]
    return {
        "queue": job.queue.name,
        "minAvailable": job.min_available,
        "replicas": replicas,
    }


def check_job(
    manifest: object,
    user: str,
    tree: QueueTree | None = None,
    states: Mapping[str, QueueState] | None = None,
) -> tuple[JobManifest | None, tuple[Violation, ...], tuple[Notice, ...]]:
    """Every rule that this job would break if this user submitted it, without making it.

    With another tree and its states: if the queues were like that.
    """
    scene = read_scene(manifest, user)
    if tree is not None:
        scene = scene._replace(tree=tree, facts=replace(scene.facts, states=states or {}))
    return check_manifest(manifest, scene)


def read_scene(manifest: object, user: str) -> Scene:
    namespace, queue = place_of(manifest)
    return submission_scene({queue}, namespace, user)


def check_manifest(
    manifest: object, scene: Scene
) -> tuple[JobManifest | None, tuple[Violation, ...], tuple[Notice, ...]]:
    """The same for whoever has looked at its queue and namespace already."""
    reading = read_job(manifest, scene.facts)
    verdict = judged(lambda facts: job_verdict(reading, scene.tree, facts), scene.facts)
    return reading.value, verdict.violations, verdict.notices


def admit_job(
    manifest: Mapping[str, Any],
    scene: Scene,
    by: Actor,
) -> tuple[JobManifest, tuple[Notice, ...]]:
    job, violations, notices = check_manifest(manifest, scene)
    access.require_to_submit(by, job.queue if job else place_of(manifest)[1])
    if violations or job is None:
        raise Rejected(violations, notices, by_state=is_forbidden_by_state(violations))
    return job, notices


def _exists_violation(namespace: str, job: JobManifest) -> Violation:
    message = f"There is a job {namespace}/{job.metadata.name} already."
    return Violation("already_exists", job.queue, "metadata.name", message, "choose another name")


def _create_job(manifest: JobManifest, scene: Scene, by: Actor) -> tuple[Job, int]:
    """The job, and how many pods it has.

    That its name is taken is found out by the database, which is asked anyway.
    """
    job = new_job(manifest, scene.queues[manifest.queue], by)
    if job.namespace not in scene.facts.namespaces:
        Namespace.objects.get_or_create(name=job.namespace)
    try:
        (pods,) = insert_jobs(
            [job], [entry_of_submit(job, by)], Priorities.of_rows(scene.priorities)
        )
    except IntegrityError as error:
        if is_about_a_job(error):
            violation = _exists_violation(job.namespace, manifest)
        else:
            violation = _names_taken(job.namespace, manifest)
        raise Rejected([violation], by_state=True) from error
    return job, pods


def _names_taken(namespace: str, job: JobManifest) -> Violation:
    message = (
        f"A podgroup or a pod in {namespace} has a name already that the podgroup or the pods of "
        f"{job.metadata.name} would get."
    )
    return Violation("already_exists", job.queue, "metadata.name", message, "choose another name")


def new_job(manifest: JobManifest, queue: Queue, by: Actor) -> Job:
    return Job(
        namespace=manifest.metadata.namespace or DEFAULT,
        name=manifest.metadata.name,
        queue=queue,
        owner=by.name,
        owner_user=by.user,
        labels=manifest.metadata.labels,
        annotations=manifest.metadata.annotations,
        min_available=manifest.min_available,
        min_success=manifest.min_success,
        priority_class=manifest.priority_class,
        max_retry=manifest.max_retry,
        ttl_seconds_after_finished=manifest.ttl_seconds_after_finished,
        tasks=[stored_task(task) for task in manifest.tasks],
        policies=manifest.policies,
        extra=dict(manifest.extra),
        phase_since=timezone.now(),
    )


# Commands


@dataclass(frozen=True, slots=True)
class JobCommandResult:
    command: Command | None
    job: Job
    changed: bool
    message: str


@changed_in_cluster("Job")
def command_job(
    namespace: str,
    name: str,
    action: JobAction | str,
    *,
    by: Actor = SYSTEM,
    reason: str = "",
    dry_run: bool = False,
    expected_version: Expected = None,
    waits: bool = True,
    because: str = "",
) -> JobCommandResult:
    """Suspend (AbortJob), resume, restart or cancel (TerminateJob) a job.

    `because` is told as the job's message in place of “on request”. In a real cluster it `waits` a
    moment until the command is carried out there.
    Raises `Job.DoesNotExist`, `NotPossible`, `Stale`, `Rejected`.
    """
    wanted = ACTION_NAMES.get(action)
    if isinstance(action, JobAction):
        wanted = action
    if wanted not in COMMANDS:
        raise NotPossible(
            f"“{action}” is not a command for a job; give one of {', '.join(sorted(COMMANDS))}"
        )
    if dry_run:
        return _rehearse_command(namespace, name, wanted, by, expected_version)
    if job_writes.are_jobs_in_cluster():
        job = stored_jobs().get(namespace=namespace, name=name)
        step = _with_message(_checked_step(job, wanted, by, expected_version), because)
        return _command_in_cluster(job, wanted, step, by, reason, waits=waits)
    with transaction.atomic():
        share_tree()
        alone_with_pods()
        job = stored_jobs(locked=True).get(namespace=namespace, name=name)
        step = _with_message(_checked_step(job, wanted, by, expected_version), because)
        row = _command_row(job, wanted, by, reason, step)
        row.save(force_insert=True)
        if step:
            phase = job.phase
            now = timezone.now()
            take_steps([(job, step)], now)
            settle_jobs([job], now)
            job.refresh_from_db()
            _record_command(job, wanted, by, phase, reason, step.message)
        announce([job])
    return JobCommandResult(row, job, step is not None, row.message)


def _with_message(step: JobStep | None, because: str) -> JobStep | None:
    if step is None or not because:
        return step
    return replace(step, message=because)


def _command_in_cluster(
    job: Job, action: JobAction, step: JobStep | None, by: Actor, reason: str, *, waits: bool
) -> JobCommandResult:
    """A Command on Volcano's bus: whoever controls the jobs of the cluster carries it out."""
    row = _command_row(job, action, by, reason, step)
    if step is None:
        row.save(force_insert=True)
        return JobCommandResult(row, job, False, row.message)
    phase = job.phase
    row.request_id = job_writes.send_command(job, action)
    row.save(force_insert=True)
    _record_command(job, action, by, phase, reason, step.message)
    message = row.message
    moved = Job.objects.filter(pk=job.pk).exclude(phase=phase)
    if not waits or not job_writes.shows(moved.exists):
        message = f"{message} {SENT_TO_CLUSTER}"
    job.refresh_from_db()
    return JobCommandResult(row, job, True, message)


def _record_command(
    job: Job, action: JobAction, by: Actor, phase_before: str, reason: str, message: str
) -> None:
    audit.record(
        by,
        action.value,
        "Job",
        job.name,
        namespace=job.namespace,
        queue=job.queue.name,
        before={"phase": phase_before},
        after={"phase": job.phase},
        reason=reason,
        message=message,
    )


def _rehearse_command(
    namespace: str,
    name: str,
    action: JobAction,
    by: Actor,
    expected_version: Expected,
) -> JobCommandResult:
    """The same answer. Nothing is written, and nobody has to wait."""
    job = stored_jobs().get(namespace=namespace, name=name)
    step = _checked_step(job, action, by, expected_version)
    message = _command_message(job, step)
    if step and is_stopped_in_steps(job, step):
        job.phase = step.phase.value
    elif step:
        job.phase = phase_after_stopping(facts_of([job])[job.pk], step).value
    return JobCommandResult(None, job, step is not None, message)


def stored_jobs(*, locked: bool = False) -> QuerySet[Job]:
    """Jobs with their queues and podgroups; locked until the transaction ends."""
    jobs = Job.objects.select_related("queue", "podgroup")
    if locked:
        return jobs.select_for_update(of=("self",))
    return jobs


def _checked_step(
    job: Job,
    action: JobAction,
    by: Actor,
    expected_version: Expected,
) -> JobStep | None:
    access.require_job_command(by, job.queue.place, job.owner)
    check_version(f"The job {job}", job, expected_version)
    return _first_step(job, action)


def _command_message(job: Job, step: JobStep | None) -> str:
    if step is None:
        return f"{job} is {job.phase} already; nothing was changed."
    return f"{job}: {step.message}."


def _first_step(job: Job, action: JobAction) -> JobStep | None:
    step = command(facts_of([job])[job.pk], action)
    if step and action in (JobAction.RESUME, JobAction.RESTART):
        scene = submission_scene({job.queue.place}, job.namespace, job.owner)
        if take_turn(scene.facts, pods=_pods_of(job)):
            scene = submission_scene({job.queue.place}, job.namespace, job.owner)
        verdict = judged(lambda facts: _may_go_on(job, scene.tree, facts), scene.facts)
        if verdict.violations:
            raise Rejected(verdict.violations, by_state=True)
    return step


def _may_go_on(job: Job, tree: QueueTree, facts: Facts) -> Verdict:
    """A job that never left its queue may go on in it while it drains.

    One that had ended is admitted again.
    """
    has_ended = job.phase in FINISHED
    rules = list(check_queue_takes_work(job.queue.place, tree, facts, again=not has_ended))
    if has_ended:
        rules += check_namespace(job.queue.name, job.namespace, facts)
        pods = _pods_of(job)
        rules += check_room(str(job), job.queue.name, facts, jobs=1, pods=pods, more=pods)
        rules += check_run_time(str(job), job.queue.name, _declared_seconds(job), facts)
    return Verdict(tuple(rules))


def _declared_seconds(job: Job) -> float | None:
    """How long its longest task says that it runs; None where none says so."""
    known = [template_of(task["template"]).run_seconds for task in job.tasks]
    return max((seconds for seconds in known if seconds is not None), default=None)


def _pods_of(job: Job) -> int:
    return sum(task["replicas"] for task in job.tasks)


def _command_row(
    job: Job,
    action: JobAction,
    by: Actor,
    reason: str,
    step: JobStep | None,
) -> Command:
    if step is None:
        result = Command.NO_OP
    else:
        result = Command.DONE
    return Command(
        action=action.value,
        target_kind="Job",
        target_namespace=job.namespace,
        target_name=job.name,
        target_uid=str(job.uid),
        actor=by.name,
        door=by.door.value,
        reason=reason,
        request_id=by.request_id,
        address=by.address,
        result=result,
        message=_command_message(job, step),
        executed_at=timezone.now(),
    )
