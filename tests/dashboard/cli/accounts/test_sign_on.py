"""vcctl sign-on, and a login with a second factor."""

from __future__ import annotations

from tests.dashboard.cli.conftest import Type


def test_groups_are_mapped_listed_and_unmapped(vcctl: Type):
    said = vcctl("vcctl sign-on map authors --role submitter --queue default")
    again = vcctl("vcctl sign-on map authors --role submitter --queue default")
    listed = vcctl("vcctl sign-on list")
    wrong = vcctl("vcctl sign-on map authors --role emperor")
    gone = vcctl("vcctl sign-on unmap authors --role submitter --queue default")

    assert "The group authors is submitter on default and below." in said.out
    assert again.code == 0
    assert "authors" in listed.out
    assert "“emperor” is not a role (--role)." in wrong.err
    assert "The mapping was deleted." in gone.out
    assert vcctl("vcctl sign-on unmap authors").code == 3
