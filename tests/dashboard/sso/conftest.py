from __future__ import annotations

from collections.abc import Iterator

import pytest

from scheduler.services.demo.setup import ensure_builtin_objects
from tests.dashboard.sso.provider import Provider, running_provider, sign_on_at


@pytest.fixture
def provider(db: None) -> Iterator[Provider]:
    ensure_builtin_objects()
    with running_provider() as provider, sign_on_at(provider.issuer):
        yield provider
