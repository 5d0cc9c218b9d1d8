"""A reader of the sample tree, signed in."""

from __future__ import annotations

import pytest

from tests.dashboard.live.sockets import cookie_of
from tests.dashboard.sample import add_user, load_tree


@pytest.fixture
def cookie() -> str:
    load_tree()
    return cookie_of(add_user("reader"))
