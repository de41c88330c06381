"""A task's scratch directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.errors import StoreError
from tidemill.spark.read.scratch import scratch


def test_a_place_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(StoreError, match="option scratchDir: no directory for a task:"),
        scratch(str(tmp_path / "file" / "below")),
    ):
        pass
