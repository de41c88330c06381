"""Fixtures for tests of programs that follow databases; nothing is imported before a test asks for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ..embedded.arguments import SourceArgument
    from ..emulator import Mysql, Tidb
    from .live_feed import Emulated, LiveFeed

pytest.register_assert_rewrite("tidemill.testing.sink_conformance", "tidemill.testing.stage_conformance")


@pytest.fixture
def tidemill_mysql() -> Iterator[Mysql]:
    """An emulated MariaDB, empty."""
    from ..emulator import Mysql

    with Mysql() as mysql:
        yield mysql


@pytest.fixture
def tidemill_tidb() -> Iterator[Tidb]:
    """An emulated TiDB cluster with three stores, empty."""
    from ..emulator import Tidb

    with Tidb(stores=3) as tidb:
        yield tidb


@pytest.fixture
def tidemill_feed(tmp_path: Path) -> Iterator[Callable[..., LiveFeed]]:
    """Return a function that starts a feed of a source; it is stopped at the end, and its error raised.

    It takes an emulated database or what `tidemill.follow` takes as a source, the patterns of tables, and the
    arguments of LiveFeed. Each feed has a data directory of its own unless `data_dir` is given.
    """
    from .live_feed import LiveFeed

    numbers = count(1)
    with ExitStack() as feeds:

        def start(source: Emulated | SourceArgument, tables: Sequence[str], **arguments: Any) -> LiveFeed:
            settings = {"data_dir": tmp_path / f"tidemill-{next(numbers)}", **arguments}
            return feeds.enter_context(LiveFeed(source, tables, **settings))

        yield start
