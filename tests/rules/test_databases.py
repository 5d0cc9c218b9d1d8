"""The suite's own rules: a marked test really runs on the database it names."""

from __future__ import annotations

import threading

import pytest
from django.contrib.auth.models import Group
from django.db import connection


@pytest.mark.postgres
def test_a_test_marked_postgres_runs_on_postgresql(db):
    Group.objects.create(name="operators")

    assert connection.vendor == "postgresql"
    assert Group.objects.count() == 1


def test_an_unmarked_test_runs_on_a_real_file(db):
    assert connection.vendor == "postgresql" or not connection.is_in_memory_db()


@pytest.mark.both_databases
def test_a_test_marked_for_both_runs_on_the_one_it_is_named_after(db, database_kind):
    assert connection.vendor == database_kind


@pytest.mark.both_databases
def test_another_thread_sees_what_was_committed(transactional_db):
    Group.objects.create(name="operators")
    seen: list[int] = []

    thread = threading.Thread(
        target=lambda: (seen.append(Group.objects.count()), connection.close())
    )
    thread.start()
    thread.join()

    assert seen == [1]
