from __future__ import annotations

from collections.abc import Iterator

import pytest

from tidemill.emulator.cluster import Cluster

from .world import Recorded


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(stores=3, tick_seconds=0.02) as made:
        yield made


@pytest.fixture
def recorded(cluster: Cluster) -> Recorded:
    """Its tables are in the cluster."""
    found = Recorded()
    found.create_tables(cluster)
    return found
