"""vcctl loans."""

from __future__ import annotations

from django.utils import timezone

from scheduler.services.queues.exposure import last_answer
from scheduler.services.records.loan_samples import note_loans
from tests.dashboard.cli.conftest import Type
from tests.worlds import job, node, queue, run_session


def test_loans_say_who_borrows_from_whom_and_what_could_be_taken_back(vcctl: Type):
    node("n1", cpu="8")
    queue("team-a", deserved={"cpu": "8"})
    queue("batch", deserved={"cpu": "0"})
    job("big", "batch", replicas=6, least=1)
    run_session()
    last_answer.forget()

    seen = vcctl("vcctl loans --resource cpu")

    assert "cpu: 6 borrowed" in seen.out
    line = next(line for line in seen.out.splitlines() if line.startswith("batch"))
    assert line.split() == ["batch", "6", "team-a", "root", "-"]
    loans = vcctl("vcctl loans --queue batch --resource cpu -o json").json["status"]["loans"]
    assert [loan["amount"] for loan in loans] == ["6"]


def test_loans_over_time_name_the_other_side(vcctl: Type):
    node("n1", cpu="8")
    queue("team-a", deserved={"cpu": "8"})
    queue("batch", deserved={"cpu": "0"})
    job("big", "batch", replicas=6, least=1)
    run_session()
    note_loans(timezone.now())

    seen = vcctl("vcctl loans --queue batch --resource cpu --over 1h")

    assert seen.out.splitlines()[-1].split()[2:] == ["UTC", "6", "team-a", "6", "0", "-"]


def test_an_unknown_resource_is_named(vcctl: Type):
    assert "gold" in vcctl("vcctl loans --resource gold").err
