"""manage.py simulate: reports for people and for programs, without any database."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "three-teams.yaml"
SMALL = """
name: small
nodes: [{name: n1, allocatable: {cpu: 4, memory: 8Gi, pods: 10}}]
queues: [{name: q1}]
podgroups: [{name: fits, namespace: ns, queue: q1}, {name: waits, namespace: ns, queue: q1}]
pods:
- {name: fits-0, namespace: ns, podgroup: fits, requests: {cpu: 500m}}
- {name: waits-0, namespace: ns, podgroup: waits, requests: {cpu: 5}}
"""


def simulate(*arguments: str) -> str:
    out = io.StringIO()
    call_command("simulate", *arguments, stdout=out)
    return out.getvalue()


def as_json(*arguments: str):
    return json.loads(simulate("--output", "json", *arguments))


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return str(path)


def test_the_json_answer_has_the_promised_shape(small):
    answer = as_json(small)

    assert set(answer) == {"name", "binds", "evictions", "pipelined", "phases", "reasons", "queues"}
    assert answer["name"] == "small"
    assert answer["binds"] == {"ns/fits-0": "n1"}
    assert answer["evictions"] == []
    assert answer["reasons"].keys() == {"ns/waits"}
    assert answer["reasons"]["ns/waits"].keys() == {"code", "message"}
    assert answer["queues"]["q1"].keys() == {
        "deserved",
        "allocated",
        "request",
        "realCapability",
        "nominalShare",
        "share",
        "overused",
    }
    assert answer["queues"]["q1"]["allocated"]["cpu"] == "500m"
    assert answer["queues"]["q1"]["nominalShare"]["cpu"] == "4"


def test_several_scenarios_give_a_list(small):
    assert [answer["name"] for answer in as_json(small, small)] == ["small", "small"]


def test_several_sessions_let_pods_start_and_go(small):
    answer = as_json("--sessions", "3", small)

    assert answer.keys() == {"name", "sessions"}
    assert [session["binds"] for session in answer["sessions"]] == [{"ns/fits-0": "n1"}, {}, {}]
    assert [session["phases"]["ns/fits"] for session in answer["sessions"]] == [
        "Inqueue",
        "Running",
        "Running",
    ]
    assert all("ns/waits" in session["reasons"] for session in answer["sessions"])


def test_steps_give_one_answer_each(tmp_path):
    path = tmp_path / "steps.yaml"
    path.write_text(
        SMALL
        + (
            "steps:\n- {}\n- add: {podgroups: [{name: late, queue: q1}], pods: [{name: late-0, "
            "podgroup: late, requests: {cpu: 1}}]}\n"
        )
    )

    answer = as_json(str(path))

    assert [step["binds"] for step in answer["steps"]] == [
        {"ns/fits-0": "n1"},
        {"default/late-0": "n1"},
    ]


def test_the_report_for_people_tells_what_happened(small):
    report = simulate(small)

    for words in (
        "small",
        "QUEUE",
        "DESERVED",
        "ALLOCATED",
        "REQUEST",
        "SHARE",
        "q1",
        "Bound",
        "ns/fits",
        "n1",
        "Waits",
        "ns/waits",
    ):
        assert words in report


def test_the_example_is_worth_trying():
    answer = as_json(str(EXAMPLE))

    assert {eviction["for"] for eviction in answer["evictions"]} == {
        "nlp/morning-llm",
        "ads/ranking",
    }
    assert {
        eviction["pod"].split("/")[0]
        for eviction in answer["evictions"]
        if eviction["for"] == "nlp/morning-llm"
    } == {"vision"}
    assert {
        eviction["pod"].split("/")[0]
        for eviction in answer["evictions"]
        if eviction["for"] == "ads/ranking"
    } == {"search"}
    assert answer["reasons"]["ads/too-much"]["code"] == "ExceedsCapability"


def test_the_example_settles_in_its_second_session():
    first, second, third = as_json("--sessions", "3", str(EXAMPLE))["sessions"]

    assert {"nlp/morning-llm-0", "nlp/morning-llm-1", "ads/ranking-0", "ads/ranking-1"} <= {
        *first["binds"],
        *second["binds"],
    }
    assert (third["binds"], third["evictions"]) == ({}, [])


def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "manage.py", "simulate", *arguments]
    return subprocess.run(
        command,
        cwd=ROOT,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_standard_input_is_read():
    finished = run("--output", "json", "-", stdin=SMALL)

    assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout)["binds"] == {"ns/fits-0": "n1"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("probe: [x]", "standard input: probe: asks the scheduler's insides"),
        ("queues: [{name: q, weigth: 2}]", "standard input: queues[0].weigth: is not a known key"),
    ],
)
def test_what_can_not_be_used_ends_with_code_2_and_one_sentence(text, sentence):
    finished = run("-", stdin=text)

    assert finished.returncode == 2
    assert finished.stderr.startswith(sentence)
    assert len(finished.stderr.strip().splitlines()) == 1
    assert finished.stdout == ""
