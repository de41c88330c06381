from __future__ import annotations

from collections.abc import Iterator

import pytest

from tidemill.emulator.sql.sql import Tidb
from tidemill.testing.etcd import Etcd

from .cluster import Cluster


@pytest.fixture
def tidb() -> Iterator[Tidb]:
    """With three pumps."""
    with Tidb(stores=1, tick_seconds=0.02, seed=1) as made:
        for _ in range(3):
            made.add_pump()
        yield made


@pytest.fixture
def cluster(tidb: Tidb, private_etcd: Etcd) -> Iterator[Cluster]:
    """The pumps in the registry of a real etcd."""
    made = Cluster(tidb, f"binlog://{private_etcd.address}")
    yield made
    made.registry.close()
