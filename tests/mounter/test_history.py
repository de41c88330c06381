"""The file of a catalog's changes: restarts, damage and compaction."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tidemill.chain.selection.tables import TablePatterns
from tidemill.codec.mysql.collation import Charset
from tidemill.codec.mysql.entry import Query
from tidemill.codec.mysql.known_table import KnownTable
from tidemill.errors import StoreError
from tidemill.events import Column, Table
from tidemill.mounter.mysql import history as history_module
from tidemill.mounter.mysql.catalog import Catalog, CatalogChange, TableChange
from tidemill.mounter.mysql.ddl import Statements
from tidemill.mounter.mysql.history import History, _Head, _record

STATEMENTS = """
CREATE TABLE a (id INT KEY, v VARCHAR(9))
CREATE TABLE b LIKE a
ALTER TABLE a ADD c INT, DROP v
RENAME TABLE a TO x, b TO a, x TO b
CREATE TABLE t (id INT AUTO_INCREMENT KEY)
ALTER TABLE t TRUNCATE PARTITION p
ALTER DATABASE shop CHARACTER SET latin1
CREATE TABLE d (v TEXT)
DROP TABLE a
CREATE DATABASE other
DROP DATABASE shop
CREATE TABLE IF NOT EXISTS other.e (id INT)
""".strip().splitlines()


def play(
    history: History, catalog: Catalog, first: int = 0, last: int = len(STATEMENTS)
) -> list[CatalogChange]:
    """Run statements with their number as ts, from 1; return the whole catalog after each."""
    statements = Statements(TablePatterns.parse(["*.*"]), catalog)
    states = []
    for number in range(first, len(STATEMENTS) + 1):
        if number:
            statements.changes(Query("shop", STATEMENTS[number - 1], 0.0))
        else:
            catalog.learn([("shop", Charset("utf8mb4", "utf8mb4_bin"))], {"latin1": "latin1_swedish_ci"})
        if (change := catalog.take_change()) is not None:
            history.append([(number + 1, change)])
        states.append(catalog.whole())
    return states


def played(path: Path) -> list[CatalogChange]:
    history = History(path, "source-1")
    states = play(history, history.restore(0))
    history.close()
    return states


def restored(path: Path, ts: int) -> CatalogChange:
    history = History(path, "source-1")
    catalog = history.restore(ts)
    history.close()
    return catalog.whole()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "feed.catalog"


@pytest.mark.parametrize("ts", range(1, len(STATEMENTS) + 2))
def test_a_restart_at_every_ts_gives_the_same_catalog_then_and_later(path: Path, ts: int) -> None:
    states = played(path)
    history = History(path, "source-1")
    catalog = history.restore(ts)
    assert catalog.whole() == states[ts - 1]
    assert play(history, catalog, ts) == states[ts:]
    history.close()
    assert restored(path, len(states)) == states[-1]


def test_a_record_that_was_cut_is_written_again(path: Path) -> None:
    states = played(path)
    content = path.read_bytes()
    for cut in range(1, 60):
        path.write_bytes(content[:-cut])
        assert restored(path, len(states) - 1) == states[-2]
        path.write_bytes(content[:-cut] + bytes(cut))
        assert restored(path, len(states) - 2) == states[-3]


def test_damage_is_an_error_that_names_the_place(path: Path) -> None:
    states = played(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"feed\.catalog is damaged at byte \d+: remove it; a table is then"):
        restored(path, len(states))
    assert path.read_bytes() == content


def test_the_history_of_another_source_is_not_used(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    played(path)
    with closing(History(path, "source-2")) as history:
        assert history.restore(5).state == "unknown"
    assert "is of source-1, not of source-2, and its definitions are not used" in caplog.text


def test_the_history_of_another_version_is_an_error(path: Path) -> None:
    played(path)
    head = _Head(version=2, source="source-1")
    path.write_bytes(_record(head))
    with pytest.raises(StoreError, match="is of version 2, not 1: remove it"):
        History(path, "source-1").restore(5)


def test_without_a_file_nothing_is_known(path: Path) -> None:
    assert restored(path, 5) == CatalogChange((), (), {}, False, "unknown")
    assert path.exists()


def test_a_file_without_a_change_that_a_target_has_passed_is_not_used(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    states = played(path)
    last = len(states)
    current = History(path, "source-1", passed=last)
    assert current.as_of(last + 5).whole() == states[-1]
    assert caplog.text == ""
    outdated = History(path, "source-1", passed=last + 3)
    assert outdated.as_of(last + 5).state == outdated.restore(last + 5).state == "unknown"
    outdated.append([(last + 6, CatalogChange())])
    outdated.close()
    assert f"ends at ts {last}, and a target has passed the schema change of ts {last + 3}" in caplog.text
    caplog.clear()
    # The new file is complete from there on.
    assert History(path, "source-1", passed=last + 6).as_of(last + 7).state == "unknown"
    assert History(path, "source-1", passed=last + 3).as_of(last + 5).state == "unknown"
    assert caplog.text == ""


def test_a_new_feed_begins_a_new_file(path: Path) -> None:
    played(path)
    assert restored(path, 0) == restored(path, 99) == CatalogChange((), (), {}, False, "unknown")


def test_what_is_acknowledged_is_joined(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    states = played(path)
    monkeypatch.setattr(history_module, "COMPACT_BYTES", 1)
    history = History(path, "source-1")
    catalog = history.restore(len(states))
    size = path.stat().st_size
    history.acknowledged(len(states) - 2)
    history.append([(len(states) + 1, CatalogChange(databases=(("z", Charset("latin1")),)))])
    history.close()
    assert path.stat().st_size < size
    assert catalog.whole() == states[-1]
    for ts in range(len(states) - 2, len(states) + 1):
        copy = path.with_name(f"{ts}.catalog")
        copy.write_bytes(path.read_bytes())
        assert restored(copy, ts) == states[ts - 1]
    # Nothing is known as of a ts before those that were joined.
    assert restored(path, len(states) - 3).state == "unknown"


def test_the_file_stays_small_over_many_statements(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "COMPACT_BYTES", 2000)
    history = History(path, "source-1")
    catalog = history.restore(0)
    statements = Statements(TablePatterns.parse(["*.*"]), catalog)
    sizes = []
    for ts in range(1, 500):
        statements.changes(Query("shop", f"CREATE OR REPLACE TABLE t (c{ts} INT)", 0.0))
        change = catalog.take_change()
        assert change is not None
        history.append([(ts, change)])
        history.acknowledged(ts)
        sizes.append(path.stat().st_size)
    history.close()
    assert max(sizes) < 3000
    assert restored(path, 499) == catalog.whole()


def test_a_directory_that_can_t_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"can't write .*x\.catalog"):
        History(tmp_path / "file" / "x.catalog", "source-1").restore(1)


def test_definitions_after_the_restored_ts_are_kept_until_a_statement_changes_their_table(path: Path) -> None:
    known = KnownTable(Table("shop", "t", (Column("id", "int"),)))
    history = History(path, "source-1")
    history.restore(0)
    forgotten, learned = (CatalogChange((TableChange("shop", "t", one),)) for one in (None, known))
    history.append([(1, forgotten), (5, learned), (8, forgotten)])
    history.close()
    for ts, later in ((1, [5]), (3, [5]), (2, [5])):
        history.restore(ts)
        assert [one.ts for one in history.later] == later
        history.close()
    history.restore(2)
    history.append([(8, forgotten)])
    history.close()
    history.restore(9)
    assert history.later == []
    history.close()
