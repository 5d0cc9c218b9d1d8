"""Gang scheduling: a job starts with at least minMember pods, or not at all."""

from __future__ import annotations

from scheduler.domain.plans import counted
from scheduler.engine.decisions import ReasonCode
from scheduler.engine.plugin import Key, Plugin, Vote
from scheduler.engine.refusals import Refusal
from scheduler.engine.state.gang import Job, Role


class Gang(Plugin):
    name = "gang"

    def job_key(self, job: Job) -> Key:
        """Jobs still short of their gang go before jobs that only want to grow."""
        return (float(self.job_ready(job)),)

    def refuse_job(self, job: Job) -> Refusal | None:
        """A job is tried only if it has the pods that its gang needs."""
        if roles_count(job):
            for number, role in sorted(job.roles.items()):
                there = role.ready + role.waiting + role.pending
                if there < role.minimum:
                    name = self.session.snapshot.classes.roles[number] if number >= 0 else ""
                    return Refusal(
                        ReasonCode.NOT_ENOUGH_TASKS,
                        f"NotEnoughPodsOfTask: {there} of {counted(role.minimum, 'pod')} of task {name or '-'}",
                    )
        there = job.ready + job.waiting + job.pending
        if there < job.min_member:
            return Refusal(
                ReasonCode.NOT_ENOUGH_TASKS,
                f"NotEnoughTasks: {there} of {counted(job.min_member, 'pod')}",
            )
        return None

    def job_ready(self, job: Job) -> bool:
        return job.ready >= job.min_member and all(
            role.ready >= role.minimum for role in _roles(job)
        )

    def job_pipelined(self, job: Job) -> Vote:
        enough = job.ready + job.waiting >= job.min_member
        roles = all(role.ready + role.waiting >= role.minimum for role in _roles(job))
        return Vote.PERMIT if enough and roles else Vote.REJECT

    def job_starving(self, job: Job) -> bool:
        return job.ready + job.waiting < job.min_member

    def may_preempt(self, taker: Job, kind: int, victim: Job, victim_kind: int) -> bool:
        """Only the surplus above minMember may go."""
        return victim.ready > victim.min_member

    may_reclaim = may_preempt


def roles_count(job: Job) -> bool:
    """Minimums per role are looked at only if the gang is large enough to hold them all."""
    return bool(job.roles) and job.min_member >= sum(role.minimum for role in job.roles.values())


def _roles(job: Job) -> list[Role]:
    return list(job.roles.values()) if roles_count(job) else []
