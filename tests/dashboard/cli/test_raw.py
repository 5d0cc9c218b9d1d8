"""vcctl api: any address of the API, with the manners of every other command."""

from __future__ import annotations

import yaml

from tests.dashboard.cli.conftest import Type


def test_whatever_has_no_command_of_its_own_can_be_done(vcctl: Type):
    vcctl("vcctl queue create team-a")
    made = vcctl('vcctl api post users/ -d "{username: ann}"')
    granted = vcctl(
        "vcctl api post /api/v1/grants/ -f -", stdin="user: ann\nrole: submitter\nqueue: team-a\n"
    )

    assert (made.code, made.json["spec"]["username"]) == (0, "ann")
    assert (granted.code, granted.json["spec"]["role"]) == (0, "submitter")
    number = granted.json["metadata"]["name"]
    listed = vcctl("vcctl api get grants/ -q queue=team-a -q page_size=5 -o yaml")
    assert [grant["metadata"]["name"] for grant in yaml.safe_load(listed.out)["results"]] == [
        number
    ]
    assert vcctl(f"vcctl api delete grants/{number}/", stdin="n\n").code == 1
    assert vcctl(f"vcctl api delete grants/{number}/ --dry-run").json["dryRun"] is True
    assert vcctl(f"vcctl api delete grants/{number}/ --yes").code == 0
    assert vcctl(f"vcctl api get grants/{number}/").code == 3


def test_a_setting_is_changed_after_a_look(vcctl: Type):
    assert (
        vcctl('vcctl api patch cluster/ -d "spec: {periodSeconds: 2.5}" --dry-run').json["spec"][
            "periodSeconds"
        ]
        == 2.5
    )
    assert vcctl("vcctl api get cluster/").json["spec"]["periodSeconds"] != 2.5
    assert vcctl('vcctl api patch cluster/ -d "spec: {periodSeconds: 2.5}"').json["changed"] is True


def test_mistakes_are_told_in_a_sentence(vcctl: Type):
    for line, code, words in (
        ("vcctl api fetch users/", 2, "fetch is not a method"),
        ("vcctl api get users/ -q nonsense", 2, "write it as name=value"),
        ("vcctl api get nowhere/", 3, "There is nothing at this address"),
        ('vcctl api post users/ -d "{" ', 2, "is not YAML"),
        ('vcctl api post users/ -d "{}" -f x', 2, "not with both"),
        ('vcctl api post users/ -d "{username: a b}"', 1, "letters, digits"),
        ("vcctl api get users/ -q pag_size=1", 1, "page_size"),
    ):
        done = vcctl(line)
        assert (done.code, words in done.err) == (code, True), (line, done)
