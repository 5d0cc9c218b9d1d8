"""A fake API server whose pods are placed by sessions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.scheduled import ScheduledCluster, phase, scheduled_cluster


@pytest.fixture
def cluster(tmp_path) -> Iterator[ScheduledCluster]:
    with scheduled_cluster(tmp_path) as running:
        yield running


@pytest.fixture
def decided(cluster: ScheduledCluster) -> ScheduledCluster:
    """One pod, p, which a session has placed on n1."""
    cluster.has_pod("p")
    cluster.sits()
    assert phase("p") == "Binding"
    return cluster
