"""The sample tree of queues, and who looks at it."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from tests.dashboard.clients import signed_in
from tests.dashboard.sample import load_tree


@pytest.fixture
def tree(db: None) -> None:
    load_tree()


@pytest.fixture
def admin(tree: None) -> Client:
    return signed_in(get_user_model().objects.create(username="admin", is_superuser=True))
