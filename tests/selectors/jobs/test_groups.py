"""Counts and groups of jobs agree with the lists that their words find."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dashboard.forms.job_choice import read_query
from dashboard.present.job_groups import filter_word
from scheduler.domain.access import Access
from scheduler.domain.job_groups import FACETS, JobField
from scheduler.models import PodGroup
from scheduler.selectors.accounts.access import access_of
from scheduler.selectors.jobs.groups import facets_of, facets_of_all, job_groups
from scheduler.selectors.jobs.listing import jobs_matching
from scheduler.services.jobs.submit import command_job
from tests.dashboard.sample import add_gang
from tests.dashboard.work import small_cluster, submitted

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture(autouse=True)
def cluster() -> None:
    small_cluster()
    command_job("default", "train-1", "Cancel")
    add_gang("batch", "stray", phase="Completed", owner="")


def found_by(word: str) -> int:
    query = read_query(word, "admin")
    assert query.problems == ()
    return jobs_matching(query.conditions, None).count()


def test_counts_of_all_jobs_agree_with_those_of_one_walk_over_them():
    assert facets_of_all(None) == facets_of(jobs_matching((), None))


@pytest.mark.parametrize("by", FACETS)
def test_a_count_is_what_its_word_finds(by: JobField):
    counts = facets_of_all(None)[by]
    assert counts
    if by is not JobField.REASON:
        assert sum(counts.values()) == PodGroup.objects.count()

    for value, count in counts.items():
        if word := filter_word(by, value):
            assert found_by(word) == count, word


@pytest.mark.parametrize("by", JobField)
def test_a_group_is_what_its_word_finds(by: JobField):
    for group in job_groups(jobs_matching((), None), by):
        if word := filter_word(by, group.value):
            assert found_by(word) == group.jobs, word


def test_a_group_adds_up_what_its_gangs_need_and_knows_the_longest_wait():
    groups = {group.value: group for group in job_groups(jobs_matching((), None), JobField.USER)}

    sam = groups["sam"]
    assert (sam.jobs, sam.waiting, sam.pods) == (2, 1, 22)
    assert sam.request.to_quantities()["cpu"] == "42"
    assert sam.oldest == PodGroup.objects.get(name="train-2").created_at


def test_only_queues_in_sight_are_counted():
    mine: Access = access_of(get_user_model().objects.get(username="vera"))

    counts = facets_of_all(mine.readable)

    assert counts[JobField.USER] == {"sam": 2}
    assert counts == facets_of(jobs_matching((), mine.readable))


def test_the_number_of_queries_does_not_grow_with_the_jobs():
    def asked() -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            facets_of_all(None)
            facets_of(jobs_matching((), None))
            for by in JobField:
                job_groups(jobs_matching((), None), by)
        return len(queries)

    before = asked()
    for number in range(10):
        submitted(f"more-{number}", "batch", f"user-{number}", replicas=number + 1)

    assert asked() == before
