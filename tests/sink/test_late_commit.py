"""A COMMIT of an earlier sink that the target does after another one was opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.dialects.address import parsed
from tidemill.dialects.options import SqliteOptions
from tidemill.dialects.sqlite.sqlite import SqliteDatabase
from tidemill.events import CREATED, Batch, Checkpoint, SnapshotProgress, TableProgress
from tidemill.sink.errors import ReplayRequired
from tidemill.sink.sql.sql import SqlSink


def opened(path: Path) -> SqlSink:
    sink = SqlSink("copy", SqliteDatabase(parsed(f"sqlite:///{path / 'copy.db'}"), SqliteOptions(), "feed"))
    sink.open()
    return sink


def store(sink: SqlSink, ts: int, loading: SnapshotProgress | None) -> None:
    sink.write(Batch([], Checkpoint(ts, str(ts), loading)))
    sink.flush()


@pytest.mark.parametrize("late", [{"shop.item": TableProgress((7,))}, None])
def test_a_load_is_read_again_after_a_late_commit_of_its_chunks(late, tmp_path):
    """The chunks of the later sink have other timestamps than those of the earlier one, also if that has
    loaded everything."""
    earlier = opened(tmp_path)
    store(earlier, 1, {"shop.item": CREATED})
    later = opened(tmp_path)
    store(earlier, 3, late)
    later.close()  # its connection was lost
    with pytest.raises(ReplayRequired, match="came late"):
        store(later, 2, {"shop.item": TableProgress((5,))})
    for sink in (earlier, later):
        sink.close()


@pytest.mark.parametrize("loading", [None, {"shop.item": CREATED}])
def test_what_the_sink_has_written_itself_is_gone_on_from(loading, tmp_path):
    sink = opened(tmp_path)
    for ts in (1, 2):
        store(sink, ts, loading)
        sink.close()
    store(sink, 3, loading)
    assert sink.durable == Checkpoint(3, "3", loading)
    sink.close()
