"""`-o jsonpath=…` and `-o custom-columns=…`, held against what kubectl itself answers."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dashboard.cli.forms import own_form
from dashboard.cli.jsonpath import Template
from dashboard.cli.jsonpath_nodes import BadTemplate
from dashboard.cli.problems import Problem
from tests.control_plane import programs
from tests.dashboard.cli.conftest import Type

OBJECT: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {
        "name": "a",
        "labels": {"team.io/x": "1", "b": "<2>"},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "p1", "uid": "u1", "controller": True},
            {"apiVersion": "v1", "kind": "Job", "name": "p2", "uid": "u2"},
            {"apiVersion": "v2", "kind": "Job", "name": "p)3", "uid": "u3"},
        ],
    },
    "data": {"k": "v"},
}
OWNERS = ".metadata.ownerReferences"
ANSWERS = {
    "{.metadata.name}": "a",
    "plain {.kind} text": "plain ConfigMap text",
    "{.metadata.labels}": r'{"b":"\u003c2\u003e","team.io/x":"1"}',
    r"{.metadata.labels.team\.io/x}": "1",
    r"{.metadata.labels['team\.io/x']}": "1",
    "{.metadata['name','labels.b']}": "a <2>",
    f"{{{OWNERS}[*].name}}": "p1 p2 p)3",
    f"{{{OWNERS}[0].name}}{{{OWNERS}[-1].uid}}": "p1u3",
    f"{{{OWNERS}[0:2].name}}": "p1 p2",
    f"{{{OWNERS}[-2:].uid}}": "u2 u3",
    f"{{{OWNERS}[0:3:2].uid}}": "u1 u3",
    f"{{{OWNERS}[1:1].uid}}": "",
    f"{{{OWNERS}[0,2].uid}}": "u1 u3",
    f"{{{OWNERS}[*]['name','kind']}}": "p1 p2 p)3 Pod Job Job",
    f'{{{OWNERS}[?(@.kind=="Job")].uid}}': "u2 u3",
    f"{{{OWNERS}[?(@.name!='p1')].uid}}": "u2 u3",
    f'{{{OWNERS}[?(@.name=="p)3")].uid}}': "u3",
    f'{{{OWNERS}[?(@.uid>="u2")].uid}}': "u2 u3",
    f"{{{OWNERS}[?(@.controller)].uid}}": "u1",
    f"{{{OWNERS}[?(@.controller==true)].uid}}": "u1",
    "{..uid}": "u1 u2 u3",
    "{.data.*}": "v",
    "x{.metadata.nothing.more}y": "xy",
    f'{{range {OWNERS}[*]}}{{.uid}}{{"\\t"}}{{.kind}}{{"\\n"}}{{end}}.': (
        "u1\tPod\nu2\tJob\nu3\tJob\n."
    ),
    f"{{range {OWNERS}[*]}}{{range .kind}}{{@}}{{end}};{{end}}": "Pod;Job;Job;",
    "{range .metadata.nothing[*]}x{end}z": "z",
    "{$.kind}{@.kind}{3}": "ConfigMapConfigMap3",
}
MISTAKES = {
    "{.metadata.name": "“{” is not closed, at character 1",
    "ab{foo}": "“foo” is not known: a field begins with a dot, at character 4",
    f"{{{OWNERS}[x]}}": "“[x]” is no index, at character 27",
    f"{{{OWNERS}[5].uid}}": "there is no item 5 in a list of 3",
    "{end}": "{end} has no {range}",
    '{"\\x"}': "“\\x” is not understood, at character 3",
    "{.metadata.name[0]}": '"a" is no list',
    f'{{{OWNERS}[?(@.uid=~"u")].uid}}': "“=” compares nothing, at character 35",
}


@pytest.mark.parametrize(("template", "answer"), ANSWERS.items())
def test_a_template_gives_what_kubectl_gives(template: str, answer: str):
    assert Template(template).text_for(OBJECT) == answer


@pytest.mark.parametrize(("template", "words"), MISTAKES.items())
def test_a_mistake_is_named_with_its_place(template: str, words: str):
    with pytest.raises(BadTemplate) as refused:
        Template(template).text_for(OBJECT)

    assert words in str(refused.value)


COLUMNS = f"custom-columns=NAME:.metadata.name,OWNERS:{OWNERS}[*].name,L:metadata.labels,NO:.spec.x"


def test_columns_are_laid_out_as_kubectl_does():
    form = own_form(COLUMNS)

    assert form is not None
    assert form.text_for({"items": [OBJECT]}).splitlines() == [
        "NAME   OWNERS      L                        NO",
        "a      p1,p2,p)3   map[b:<2> team.io/x:1]   <none>",
    ]


@pytest.mark.kubernetes
def test_kubectl_itself_answers_so(tmp_path: Path):
    """All of the above in one table of answers, by the kubectl of the control plane."""
    kubectl = programs.find().path_of("kubectl")
    file = tmp_path / "object.json"
    file.write_text(json.dumps(OBJECT))
    patch = [kubectl, "patch", "--local", "-f", file, "--type=merge", "-p", "{}", "-o"]

    def asked(form: str) -> str:
        done = subprocess.run([*patch, form], capture_output=True, text=True, check=True)
        return done.stdout

    for template, answer in ANSWERS.items():
        assert asked(f"jsonpath={template}") == answer, template


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("jsonpath", "-o jsonpath needs a template"),
        ("custom-columns=NAME", "“NAME” is no column. Write TITLE:PATH."),
        ("custom-columns=NAME:.a[", "NAME: “[” is not closed"),
        ("jsonpath-file=/nowhere/at-all", "/nowhere/at-all cannot be read"),
    ],
)
def test_what_cannot_be_a_form_is_a_sentence(asked: str, words: str):
    with pytest.raises(Problem) as refused:
        own_form(asked)

    assert words in str(refused.value)


@pytest.mark.django_db
def test_lists_and_single_objects_take_them(vcctl: Type, tmp_path: Path):
    columns = tmp_path / "columns"
    columns.write_text("NAME WEIGHT\n.metadata.name .spec.weight\n")

    names = vcctl("vcctl queue list -o jsonpath='{.items[*].metadata.name}'")
    table = vcctl(f"vcctl queue list -o custom-columns-file={columns}")
    one = vcctl("vcctl queue get root -o jsonpath='{.metadata.name}'")
    bad = vcctl("vcctl queue list -o jsonpath='{.items'")
    unknown = vcctl("vcctl queue list -o go-template=x")

    assert "root" in names.out.split()
    assert table.out.splitlines()[0].split() == ["NAME", "WEIGHT"]
    assert one.out == "root"
    assert (bad.code, bad.err) == (2, "jsonpath: “{” is not closed, at character 1.\n")
    assert (unknown.code, unknown.out) == (2, "")
    assert "write table, wide, json" in unknown.err
