"""The Standard Workload Format: what is read, left out and refused."""

from __future__ import annotations

import pytest

from scheduler.domain.swf import read_swf
from scheduler.domain.traces import TraceError, read_trace

HEAD = "; Version: 2.2\n;\n"


def line(number=1, submit=0, run=100, processors=4, asked=-1, user=3, queue=-1, partition=-1):
    return (
        f"{number} {submit} 5 {run} {processors} -1 -1 {asked} -1 -1 1 {user} 1 -1 {queue} "
        f"{partition} -1 -1\n"
    )


def read(*lines):
    return read_swf([*HEAD.splitlines(keepends=True), *lines], "log.swf")


def test_a_processor_is_a_pod_with_one_core():
    (job,) = read(line(submit=50, run=100, processors=4, queue=2))

    assert (job.at, job.tasks, job.cpu, job.duration, job.user, job.queue) == (
        0.0,
        4,
        "1",
        100.0,
        "user-3",
        "queue-2",
    )


def test_what_was_asked_for_stands_in_for_what_is_missing_and_jobs_that_never_ran_are_left_out():
    jobs = read(line(1, processors=-1, asked=8), line(2, run=-1), line(3, submit=7, partition=1))

    assert [(job.tasks, job.at, job.queue) for job in jobs] == [
        (8, 0.0, ""),
        (4, 7.0, "partition-1"),
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("1 2 3\n", "has 3 fields"),
        (line().replace("100", "x"), "log.swf, line 3: field 4 is “x”; it must be a number"),
        (line(run="nan"), "line 3: field 4 is “nan”; it must be a number"),
        (line(processors="inf"), "line 3: field 5 is “inf”"),
        (line(processors=10_001), "at most 10000 are taken"),
        ("", "no job"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text, complaint):
    with pytest.raises(TraceError, match=complaint):
        read(text)


def test_the_columns_of_philly_are_read_as_published():
    text = (
        "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 "
        "07:01:55,66.0,1,66.0,11cb48\n2017-10-09 07:02:05,100,20,2000,6214e9\n"
    )

    jobs = read_trace(text.splitlines(keepends=True), "philly.csv")

    assert [(job.at, job.tasks, job.gpu, job.cpu, job.queue) for job in jobs] == [
        (0.0, 1, "1", "4", "11cb48"),
        (10.0, 3, "7", "28", "6214e9"),
    ]
