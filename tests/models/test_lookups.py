"""Names with stars in them: the same answer on both databases."""

from __future__ import annotations

import pytest

from scheduler.models import PriorityClass

NAMES = ["train-1", "train-2", "Train-1", "t%ain-1", "t_ain-1", "t?ain-1", "t[r]ain-1", "t\\ain-1"]
CASES = {
    "train-*": ["train-1", "train-2"],
    "t*n-1": ["t%ain-1", "t?ain-1", "t[r]ain-1", "t\\ain-1", "t_ain-1", "train-1"],
    "t%ain-*": ["t%ain-1"],
    "t_ain-*": ["t_ain-1"],
    "t?ain-*": ["t?ain-1"],
    "t[r]*": ["t[r]ain-1"],
    "t\\*": ["t\\ain-1"],
    "*x": [],
}


def found_by_glob() -> dict[str, list[str]]:
    for value, name in enumerate(NAMES):
        PriorityClass.objects.create(name=name, value=value)
    return {
        pattern: sorted(
            PriorityClass.objects.filter(name__glob=pattern).values_list("name", flat=True)
        )
        for pattern in CASES
    }


@pytest.mark.django_db
def test_a_star_is_the_only_wildcard():
    assert found_by_glob() == CASES


@pytest.mark.postgres
@pytest.mark.django_db
def test_a_star_is_the_only_wildcard_on_postgresql():
    assert found_by_glob() == CASES
