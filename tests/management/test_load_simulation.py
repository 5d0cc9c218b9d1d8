"""`manage.py simulate --load` and `--rest`: what is printed, and the exit codes."""

from __future__ import annotations

import gzip
import io
import json

import pytest

from scheduler.management import simulation

SAMPLE = "examples/sample-cluster.yaml"
FIGURES = {
    "jobs",
    "finished",
    "binds",
    "evictions",
    "evictionsPerBind",
    "evictionsByAction",
    "mostEvicted",
    "held",
    "useful",
    "lost",
    "waits",
    "shortfall",
    "sessions",
}
RESTLESS = """
name: {name}
nodes: [{{name: n1, allocatable: {{cpu: 2, memory: 8Gi, pods: 10}}}}]
queues: [{{name: q1, deserved: {{cpu: 1}}}}, {{name: q2, deserved: {{cpu: 1}}}}]
podgroups:
- {{name: a, queue: q1, minMember: 1, phase: Running}}
- {{name: b, queue: q2, minMember: 1}}
pods:
- {{name: a-0, podgroup: a, node: n1, phase: Running, requests: {{cpu: 1}}}}
- {{name: a-1, podgroup: a, node: n1, phase: Running, requests: {{cpu: 1}}}}
- {{name: b-0, podgroup: b, requests: {{cpu: 1}}}}
"""


def run(*arguments):
    """Exit code, standard output, complaints."""
    parser = simulation.ArgumentParser()
    simulation.add_arguments(parser)
    out = io.StringIO()
    complaints = io.StringIO()
    code = simulation.simulate(parser.parse_args(arguments), out, complaints)
    return code, out.getvalue(), complaints.getvalue()


@pytest.fixture
def frozen(tmp_path):
    path = tmp_path / "frozen.yaml"
    path.write_text(RESTLESS.format(name="frozen"))
    return str(path)


def test_a_load_gives_the_promised_figures():
    code, out, _ = run(
        SAMPLE,
        "--load",
        "steady",
        "--seconds",
        "30",
        "--policy",
        "fumarole",
        "--output",
        "json",
    )

    answer = json.loads(out)
    assert code == 0
    assert answer["policy"] == "fumarole"
    assert answer["load"].keys() >= FIGURES
    assert answer["load"]["waits"]["all"].keys() == {"count", "p50", "p95", "max"}


def test_several_policies_give_a_list_and_stand_side_by_side():
    arguments = (
        SAMPLE,
        "--load",
        "burst",
        "--seconds",
        "20",
        "--policy",
        "bound",
        "--policy",
        "fumarole",
    )

    documents = json.loads(run(*arguments, "--output", "json")[1])
    table = run(*arguments, "--output", "table")[1]

    assert [document["policy"] for document in documents] == ["bound", "fumarole"]
    assert "bound" in table
    assert "evictions per placement" in table


def test_the_page_needs_nothing_from_elsewhere():
    _, out, _ = run(
        SAMPLE,
        "--load",
        "steady",
        "--seconds",
        "20",
        "--policy",
        "bound",
        "--output",
        "html",
    )

    assert out.startswith("<!doctype html>")
    assert "<polyline" in out
    assert "http" not in out
    assert "<script" not in out


@pytest.mark.parametrize("packed", [False, True])
def test_a_recorded_load_is_run_to_its_last_arrival(tmp_path, packed):
    text = "timestamp,duration,num_gpus,cluster\n0,5,1,etl\n40,5,8,vision\n"
    path = tmp_path / ("load.csv.gz" if packed else "load.csv")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())

    _, out, _ = run(SAMPLE, "--load", str(path), "--output", "json")

    assert json.loads(out)["load"]["jobs"] == 2


def test_rest_is_told_with_its_sessions(frozen):
    code, out, _ = run(frozen, "--rest", "6", "--policy", "fumarole", "--output", "json")

    assert code == 0
    assert json.loads(out)["rest"] == {"after": 2, "evictions": [1, 0, 0, 0, 0, 0]}


def test_several_files_are_brought_to_rest_one_after_the_other(frozen):
    code, out, _ = run(frozen, SAMPLE, "--rest", "6", "--policy", "fumarole", "--output", "json")

    assert code == 0
    assert [(answer["name"], answer["rest"]["after"]) for answer in json.loads(out)] == [
        ("frozen", 2),
        ("the sample cluster", 0),
    ]


def test_a_cluster_that_is_still_busy_in_the_last_session_is_not_at_rest(frozen):
    code, out, _ = run(frozen, "--rest", "2", "--policy", "fumarole")

    assert code == 1
    assert "no rest in 2 sessions" in out


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("queues: [{name: q}]", "no node that a load could run on"),
        ("nodes: [{name: n1, allocatable: {cpu: 2}}]", "no queue that a load could come to"),
    ],
)
@pytest.mark.parametrize("load", ["steady", "examples/recorded-load.csv"])
def test_a_load_needs_queues_and_nodes(tmp_path, file, sentence, load):
    path = tmp_path / "half.yaml"
    path.write_text(f"name: half\n{file}\n")

    code, out, complaints = run(str(path), "--load", load)

    assert (code, out) == (2, "")
    assert complaints == f"half: has {sentence}\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--load", "nothing-like-it"), "neither a mix (steady"),
        (("--load", "steady", "--policy", "nobody"), "neither a preset (fumarole"),
        (("--load", "steady", "--rest", "3"), "cannot be used together"),
        (("--policy", "bound"), "--policy goes with --load or --rest"),
        (("--rest", "3", "--output", "html"), "goes with --load"),
        (("--seconds", "3"), "--seconds and --rate go with --load"),
        (("--rest", "3", "--rate", "3"), "--seconds and --rate go with --load"),
        (("--rest", "3", "--sessions", "3"), "--sessions cannot be used with"),
        (("--load", ""), "neither a mix (steady"),
        (("--load", "steady", "--seconds", "1e9"), "more than 1,000,000 jobs"),
        (("--load", "examples/recorded-load.csv", "--rate", "3"), "--rate goes with a mix"),
        (("--load", "examples"), "--load examples cannot be read: Is a directory"),
        (("--load", "steady", "--policy", "examples"), "--policy examples cannot be read: Is a"),
    ],
)
def test_what_cannot_be_done_ends_with_code_2_and_one_sentence(arguments, sentence):
    code, out, complaints = run(SAMPLE, *arguments)

    assert (code, out) == (2, "")
    assert sentence in complaints
