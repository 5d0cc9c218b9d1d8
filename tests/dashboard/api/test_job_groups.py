"""Counts and groups of jobs over the API."""

from __future__ import annotations

import pytest

from tests.dashboard.work import signed_in, small_cluster

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()


def test_facets_count_what_a_query_finds():
    answer = signed_in("admin").get("/api/v1/jobs/facets/", {"query": "user:sam"}).json()

    facets = {facet["field"]: facet["values"] for facet in answer["status"]["facets"]}
    assert facets["queue"] == [{"value": "vision", "query": "queue:vision", "jobs": 2}]


def test_groups_have_counts_and_what_they_need():
    answer = signed_in("vera").get("/api/v1/jobs/groups/", {"groupBy": "user"}).json()

    (sam,) = answer["status"]["groups"]
    assert (sam["value"], sam["jobs"], sam["waiting"], sam["pods"]) == ("sam", 2, 1, 22)
    assert sam["request"]["cpu"] == "42"
    assert sam["oldestWaitSince"]


@pytest.mark.parametrize(
    ("given", "field"), [({"groupBy": "colour"}, "groupBy"), ({"query": "stat:x"}, "query")]
)
def test_what_is_not_known_is_named(given: dict[str, str], field: str):
    answer = signed_in("admin").get("/api/v1/jobs/groups/", given)

    assert answer.status_code == 400
    assert answer.json()["violations"][0]["field"] == field
