"""Many jobs that are submitted at once. Those that nothing stands in the way of are made together.

Each is answered as if it had come alone. Whatever is not plain is submitted alone, after those
before it are there: what breaks a rule, comes near a limit, needs a namespace that is not there, or
has very many pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from django.db import transaction

from scheduler import notify
from scheduler.admission.reading.queue import place_of
from scheduler.admission.reading.workload import JobManifest
from scheduler.admission.violations import Notice, Rejected
from scheduler.conf import is_kubernetes
from scheduler.domain.access import Forbidden
from scheduler.models import Job
from scheduler.selectors.queues.submission import Scene
from scheduler.services.accounts.access import access_for
from scheduler.services.accounts.actors import Actor, submitter
from scheduler.services.jobs import pod_creation
from scheduler.services.jobs.limit_turns import needs_a_turn
from scheduler.services.jobs.new_jobs import insert_jobs
from scheduler.services.jobs.pods import Priorities
from scheduler.services.jobs.submit import (
    Submitted,
    admit_job,
    entry_of_submit,
    new_job,
    read_scene,
    run_limit_in,
    submit_job,
)
from scheduler.services.locks import share_tree
from scheduler.services.sessions.requests import want_session

MOST_TOGETHER: Final = 200
"""Jobs in one transaction. They have as many pods as may be made at once, or fewer."""
_LISTS_AT_ONCE: Final = 10
"""So many transactions that do not see each other still do not come near a limit together."""


def submit_jobs(manifests: Sequence[Any], *, by: Actor) -> Iterator[Submitted | Exception]:
    """What became of each, in their order; others see them in the same order."""
    by = replace(by, access=access_for(by))
    done = 0
    while done < len(manifests):
        some = manifests[done : done + MOST_TOGETHER]
        for result in _submit_some(some, by):
            done += 1
            yield result


def _submit_some(manifests: Sequence[Any], by: Actor) -> Iterator[Submitted | Exception]:
    """The first of these, at least one."""
    if is_kubernetes():
        yield _submit_alone(manifests[0], by)
        return
    try:
        made = _submit_together(manifests, by)
    except Exception:  # a name is taken, as a rule: each is told alone whether it is its own
        for manifest in manifests:
            yield _submit_alone(manifest, by)
        return
    yield from made
    if len(made) < len(manifests):
        yield _submit_alone(manifests[len(made)], by)


def _submit_alone(manifest: Any, by: Actor) -> Submitted | Exception:
    try:
        return submit_job(manifest, by=by)
    except Exception as error:  # the others do not suffer from it
        return error


def _submit_together(manifests: Sequence[Any], by: Actor) -> list[Submitted]:
    """Those before the first that is not plain."""
    with transaction.atomic():
        share_tree()
        batch = _Batch(by)
        for manifest in manifests:
            if not batch.takes(manifest):
                break
        return batch.make()


@dataclass(frozen=True, slots=True)
class _Admitted:
    reading: JobManifest
    notices: tuple[Notice, ...]
    scene: Scene


@dataclass(slots=True)
class _Batch:
    by: Actor
    admitted: list[_Admitted] = field(default_factory=list)
    pods: int = 0
    _names: set[tuple[str, str]] = field(default_factory=set)
    _scenes: dict[tuple[str, str], Scene] = field(default_factory=dict)

    def takes(self, manifest: Any) -> bool:
        namespace, queue = place_of(manifest)
        scene = self._scene_of(manifest, namespace, queue)
        try:
            reading, notices = admit_job(manifest, scene, self.by)
        except (Rejected, Forbidden):
            return False
        pods = self.pods + reading.replicas
        name = (namespace, reading.metadata.name)
        if name in self._names or namespace not in scene.facts.namespaces:
            return False
        if pods > pod_creation.AT_ONCE:
            return False
        if self._comes_near_a_limit(scene, pods):
            return False
        self.admitted.append(_Admitted(reading, notices, scene))
        self.pods = pods
        self._names.add(name)
        return True

    def _comes_near_a_limit(self, scene: Scene, pods: int) -> bool:
        jobs = len(self.admitted) + 1
        return needs_a_turn(scene.facts, jobs=jobs * _LISTS_AT_ONCE, pods=pods * _LISTS_AT_ONCE)

    def _scene_of(self, manifest: Any, namespace: str, queue: str) -> Scene:
        """As it was when the batch began: nothing in it comes near a limit."""
        found = self._scenes.get((namespace, queue))
        if found is None:
            found = self._scenes[namespace, queue] = read_scene(manifest, submitter(self.by))
        return found

    def make(self) -> list[Submitted]:
        if not self.admitted:
            return []
        jobs = []
        for each in self.admitted:
            jobs.append(new_job(each.reading, each.scene.queues[each.reading.queue], self.by))
        entries = [entry_of_submit(job, self.by) for job in jobs]
        priorities = Priorities.of_rows(self.admitted[0].scene.priorities)
        counts = insert_jobs(jobs, entries, priorities)
        self._tell(jobs)
        made = []
        for job, each, pods in zip(jobs, self.admitted, counts, strict=True):
            limit = run_limit_in(each.scene, each.reading)
            made.append(Submitted(job, each.notices, pods, limit))
        return made

    def _tell(self, jobs: Sequence[Job]) -> None:
        want_session()
        queues = {each.reading.queue for each in self.admitted}
        notify.jobs_changed([str(job) for job in jobs], queues=queues)
