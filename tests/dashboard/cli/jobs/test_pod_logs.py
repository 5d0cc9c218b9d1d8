"""`vcctl job logs` and `vcctl pod logs`, of pods of the simulated cluster."""

from __future__ import annotations

import pytest

from dashboard.cli import client
from dashboard.cli.problems import ExitCode, Problem
from dashboard.http import log_stream
from scheduler.models import Pod
from tests.worlds import job, node, pass_time, run_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def two_pods(monkeypatch):
    """They run; a look at a followed log does not wait for the next one."""
    monkeypatch.setattr(log_stream, "PAUSE_SECONDS", 0.0)
    node("n1", cpu="8")
    job("train", replicas=2)
    run_session()
    pass_time(10)


def test_a_pod_that_waits_has_no_log(vcctl):
    job("train")

    done = vcctl("vcctl pod logs default/train-worker-0 --lines 5")

    assert done.code == 0
    assert done.out == ""
    assert done.err == "train-worker-0 has not started, so it has written nothing.\n"


def test_a_pod_that_is_not_there_is_told(vcctl):
    done = vcctl("vcctl pod logs nobody")

    assert done.code != 0
    assert "nobody" in done.err


def test_the_last_lines_of_each_pod_with_its_name(vcctl, two_pods):
    all_pods = vcctl("vcctl job logs train --tail 1")
    one = vcctl("vcctl job logs train --task worker --index 1 --tail 1 --timestamps")

    assert [line.split()[0] for line in all_pods.out.splitlines()] == [
        "[train-worker-0]",
        "[train-worker-1]",
    ]
    stamp, first_word = one.out.split()[:2]
    assert stamp.endswith("Z")
    assert not first_word.startswith("[")


def test_a_job_is_followed_to_its_end(vcctl, two_pods):
    pass_time(120)

    done = vcctl("vcctl job logs train -f --since 1h")

    assert done.code == 0
    lines = done.out.splitlines()
    assert "[train-worker-0] bye" in lines
    assert "[train-worker-1] bye" in lines
    assert done.err.splitlines()[-1] == "The job default/train has ended: Completed."


def test_a_connection_that_breaks_costs_no_line_and_repeats_none(vcctl, two_pods, monkeypatch):
    pass_time(120)
    whole = vcctl("vcctl pod logs train-worker-0").out
    listen = client.Api.events
    breaks = iter([True])

    def break_once(self, where, parameters):
        for name, data in listen(self, where, parameters):
            if next(breaks, False):
                half = len(data["lines"]) // 2
                stamp = data["lines"][half - 1][0]
                yield name, {**data, "lines": data["lines"][:half], "position": f"{stamp}/1"}
                raise Problem("The connection was lost.", ExitCode.NO_CONNECTION)
            yield name, data

    monkeypatch.setattr(client.Api, "events", break_once)
    monkeypatch.setattr("dashboard.cli.jobs.logs._RETRY_SECONDS", 0.0)
    followed = vcctl("vcctl pod logs train-worker-0 -f")

    assert followed.out == whole
    assert "Trying again." in followed.err


def test_who_may_not_read_is_told_so(vcctl, new_token, two_pods, monkeypatch):
    monkeypatch.setenv("VCCTL_TOKEN", new_token("vera", role="viewer"))

    done = vcctl("vcctl job logs train -f")

    assert done.code == ExitCode.NOT_ALLOWED
    assert "read the logs of a job that is not your own" in done.err


def test_what_cannot_be_together_is_told(vcctl, two_pods):
    Pod.objects.all().delete()

    assert vcctl("vcctl job logs train -f --previous").code == ExitCode.USAGE
    assert "has no such pods" in vcctl("vcctl job logs train").err
