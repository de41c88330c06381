from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from tidemill.puller.pump.registry.location import open_registry
from tidemill.puller.pump.registry.registry import NodeRegistry
from tidemill.testing.etcd import Etcd

Opener: TypeAlias = Callable[[], NodeRegistry]


@pytest.fixture(params=["etcd", "sqlite"])
def open_one(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """Opens connections to one fresh registry; they are closed after the test."""
    if request.param == "etcd":
        etcd: Etcd = request.getfixturevalue("private_etcd")
        url = f"binlog://{etcd.address}"
    else:
        url = f"sqlite:///{tmp_path / 'registry.db'}"
    opened: list[NodeRegistry] = []

    def open_() -> NodeRegistry:
        opened.append(open_registry(url))
        return opened[-1]

    yield open_
    for each in opened:
        each.close()
