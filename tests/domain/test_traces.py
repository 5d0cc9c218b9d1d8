from __future__ import annotations

import pytest

from scheduler.domain.mixes import Target
from scheduler.domain.traces import TraceError, TraceJob, manifest_of, read_trace


def read(text: str) -> list[TraceJob]:
    return read_trace(text.splitlines(), "load.csv")


def test_jobs_come_in_order_and_from_the_first_one_on():
    jobs = read(
        "submit,tasks,cpu,memory,gpu,duration,user,queue\n"
        "1060,2,4,8Gi,1,30,alice,vision\n"
        "1000,1,500m,,0,5.5,bob,\n"
    )

    assert jobs == [
        TraceJob(0, 1, "500m", 5.5, user="bob"),
        TraceJob(60, 2, "4", 30, "8Gi", "1", "alice", "vision"),
    ]


def test_other_names_of_columns_and_times_with_a_date_are_read():
    jobs = read(
        "Submit_Time,replicas,cpus,runtime,partition\n"
        "2026-05-04T12:00:00,3,1,60,a\n"
        "2026-05-04T12:01:00+00:00,1,1,60,b\n"
    )

    assert [(job.at, job.tasks, job.queue) for job in jobs] == [(0, 3, "a"), (60, 1, "b")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "",
            (
                "the first line must name the columns; missing: submit (or submit_time, "
                "submitted, time, timestamp); cpu"
            ),
        ),
        ("submit,cpu\n1,1\n", "missing: duration (or runtime, run_time)"),
        ("submit,cpu,duration\n", "there is no job in it"),
        (
            "submit,cpu,duration\n1,1,5\nnoon,1,5\n",
            "load.csv, line 3: submit is “noon”; it must be seconds or a time like",
        ),
        (
            "submit,cpu,duration\n1,two,5\n",
            "line 2: cpu is “two”; it must be an amount like 2, 500m or 4Gi",
        ),
        ("submit,cpu,duration\n1,-2,5\n", "cpu is -2; it must be 0 or more"),
        ("submit,cpu,duration\n1,1,-5\n", "duration is -5; it must be 0 or more"),
        (
            "submit,cpu,duration,tasks\n1,1,5,2.5\n",
            "tasks is “2.5”; it must be a whole number from 1 to 10000",
        ),
        (
            "submit,cpu,duration,tasks\n1,1,5,many\n",
            "tasks is “many”; it must be a whole number from 1 to 10000",
        ),
        ("submit,cpu,duration\nnan,1,5\n", "line 2: submit is “nan”; it must be seconds or"),
        ("submit,cpu,duration\n1e400,1,5\n", "line 2: submit is “1e400”"),
        ("submit,cpu,duration\n1,1\n", "line 2: has 2 fields; the first line names 3 columns"),
        ("submit,cpu,duration\n1,1,5,6\n", "line 2: has 4 fields; the first line names 3"),
        ('submit,cpu,duration,queue\n1,1,5,"a\n2,1,5,b\n', "this is not CSV: unexpected end of"),
        (
            "submit,num_gpus,duration\n1,,5\n",
            "num_gpus is “”; it must be a whole number from 1 to 10000",
        ),
    ],
)
def test_what_can_not_be_used_is_named_with_its_line_and_column(text: str, message: str):
    with pytest.raises(TraceError) as error:
        read(text)

    assert message in str(error.value)


def test_no_more_problems_are_told_than_anybody_reads():
    with pytest.raises(TraceError) as error:
        read("submit,cpu,duration\n" + "x,1,1\n" * 500)

    assert len(str(error.value).splitlines()) == 10


def test_a_queue_that_is_there_is_used_and_another_name_always_falls_on_the_same_one():
    targets = [Target("a"), Target("b"), Target("c")]

    def queue_of(name: str) -> str:
        return manifest_of(TraceJob(0, 1, "1", 1, queue=name), 0, targets)[1]["spec"]["queue"]

    assert queue_of("b") == "b"
    assert queue_of("elsewhere") == queue_of("elsewhere")
    assert {queue_of(f"queue-{number}") for number in range(50)} == {"a", "b", "c"}
