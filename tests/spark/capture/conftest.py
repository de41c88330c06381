from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tidemill.emulator.sql.sql import Tidb

from .beds import Bed, MariaBed, TikvBed


@pytest.fixture(params=["mariadb", "tikv"])
def bed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bed]:
    """Empty tables `item` and `other` in a source of each kind, and a directory for a capture of them."""
    if request.param == "tikv":
        with Tidb(stores=2, tick_seconds=0.02) as tidb, TikvBed(tmp_path, tidb) as found:
            yield found
        return
    server: Any = request.getfixturevalue("mariadb")
    with MariaBed(tmp_path, server, request.getfixturevalue("database")) as found:
        yield found
