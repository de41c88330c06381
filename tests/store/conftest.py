from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from . import disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with disk.small_disk(tmp_path / "disk") as directory:
        yield directory
