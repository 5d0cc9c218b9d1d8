"""The sample tree of queues, and who looks at it."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from tests.dashboard.clients import reader_of, signed_in
from tests.dashboard.sample import load_tree


@pytest.fixture
def tree(db: None) -> None:
    load_tree()


@pytest.fixture
def admin(tree: None) -> Client:
    return signed_in(get_user_model().objects.create(username="admin", is_superuser=True))


@pytest.fixture
def root_admin(db: None) -> Client:
    """A superuser where the tree of the test is its own."""
    return signed_in(get_user_model().objects.create_superuser("root-admin", password="x" * 12))


@pytest.fixture
def batch_reader(db: None) -> Client:
    """Sees the queue batch, which the test has made, and nothing else."""
    return reader_of("batch")
