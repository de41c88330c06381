"""Histories merged into copies: incremental, each change once, whatever is killed or joined in between."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from tidemill import failpoint
from tidemill.actors import SystemClock
from tidemill.errors import ConfigError, SinkError
from tidemill.events import AddColumn, ChangeColumn, Chunk, Column, Ddl, TruncateTable
from tidemill.sink.files.lakes.upkeep import (
    Merge,
    MergeReport,
    analyze_lake,
    carry_out,
    copy_target,
    lake_of,
    plan_of,
)
from tidemill.sink.registry import given_sink
from tidemill.testing.changes import ORDERS, PAIRS, alter, create, insert, transaction
from tidemill.testing.sink_conformance import HISTORY, ORDERS_3, expected, feed, keyed

from .copies import PLACES, CopyPlace
from .lakes import LAKES, IcebergBucket, Lake
from .test_copy_histories import NAMES, Killed, Model

STEPS = [
    one for one in failpoint.POINTS if one.startswith(("merge.", "copy.", "storage.pub", "lake.telling"))
]
STEPS += ["sink.before_commit", "sink.committed"]
KINDS = [("delta", "delta"), ("iceberg", "delta"), ("delta", "iceberg")]


BEGUN = [create(1, ORDERS), transaction(1, chunk=Chunk("")), transaction(2, insert(ORDERS, 1, "one"))]


def opened(place: Lake | CopyPlace) -> Any:
    options = {name: value for name, value in place.options.items() if name != "mode"}
    return lake_of(place.url(), given_sink("lake", place.url(), options).options)


def merged(history: Lake, copy: CopyPlace, rows: int = 1_000_000) -> MergeReport:
    lake = opened(history)
    try:
        options = {name: value for name, value in copy.options.items() if name != "flush_seconds"}
        target = copy_target(copy.url(), given_sink("copy", copy.url(), options).options, copy.index)
        return Merge(lake, target, SystemClock(), rows).run()
    finally:
        lake.close()


def joined(place: Lake | CopyPlace) -> None:
    lake = opened(place)
    assert not [
        one.left
        for one in carry_out(lake, plan_of(analyze_lake(lake, SystemClock())), SystemClock())
        if one.left
    ]
    lake.close()


@pytest.fixture(params=KINDS, ids="-".join)
def places(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Lake, CopyPlace]:
    one, other = request.param
    return LAKES[one](tmp_path / "history"), PLACES[other](tmp_path / "copy")


def check(copy: CopyPlace) -> None:
    wanted = expected([keyed(item) for item in HISTORY])
    for table in (ORDERS_3, PAIRS):
        assert sorted(copy.rows(table), key=str) == sorted(wanted[table.full_name].elements(), key=str)


def test_a_copy_has_the_rows_of_the_source(places: tuple[Lake, CopyPlace]) -> None:
    history, copy = places
    feed(history.sink(), HISTORY)
    report = merged(history, copy)
    check(copy)
    assert report.from_ts == 0
    assert report.to_ts == 18
    assert len(report.left) == 1
    assert report.left[0].startswith("shop.loose has no primary key, by which its copy's rows are found")
    assert copy.definition("shop.orders") == ORDERS_3
    again = merged(history, copy)
    assert (again.changes, again.statements, again.commits) == (0, 0, 0)
    assert again.from_ts == again.to_ts == 18


@pytest.mark.parametrize("rows", [1, 4])
def test_a_copy_follows_its_history_step_by_step(places: tuple[Lake, CopyPlace], rows: int) -> None:
    history, copy = places
    for end in range(9, len(HISTORY) + 1, 3):
        feed(history.sink(), HISTORY[:end], max_rows=1)
        merged(history, copy, rows)
        joined(history)
        joined(copy)
    feed(history.sink(), HISTORY, max_rows=1)
    merged(history, copy, rows)
    check(copy)


@pytest.mark.parametrize("seed", range(3))
def test_random_histories(places: tuple[Lake, CopyPlace], seed: int) -> None:
    _random(*places, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3, 60))
def test_many_random_histories(places: tuple[Lake, CopyPlace], seed: int) -> None:
    _random(*places, seed)


def _random(history: Lake, copy: CopyPlace, seed: int) -> None:
    """Merge at random, with kills at any point, beside joined files; the present rows are there at last."""
    model, random = Model(seed), Random(seed)
    items = model.items
    end = 0
    while end < len(items):
        end = min(len(items), end + random.randint(1, 25))
        feed(history.sink(), items[:end], max_rows=random.choice([1, 30]))
        if random.random() < 0.3:
            joined(history)
        left = random.randint(1, 12)

        def see(name: str) -> None:
            nonlocal left
            if name in STEPS:
                left -= 1
                if not left:
                    raise Killed

        if random.random() < 0.5:
            failpoint.observe(see)
            try:
                merged(history, copy, random.choice([1, 5, 1000]))
            except Killed:
                pass
            finally:
                failpoint.observe(None)
    merged(history, copy)
    for name in NAMES:
        if name in model.tables:
            table, rows = model.tables[name]
            assert sorted(copy.rows(table)) == sorted(rows.values())
            assert copy.definition(f"shop.{name}") == table
        elif copy.exists(f"shop.{name}"):
            assert copy.definition(f"shop.{name}") is None


def test_several_statements_of_one_time_are_each_made_once(places: tuple[Lake, CopyPlace]) -> None:
    """DROP TABLE a, b comes as two schema changes with one ts; the process dies between them."""
    history, copy = places
    both = [create(4, ORDERS), create(4, PAIRS), transaction(4, chunk=Chunk(""))]
    both.append(transaction(5, insert(ORDERS, 1, "x"), insert(PAIRS, 1, "a", 1)))
    emptied = [alter(9, ORDERS, "TRUNCATE", TruncateTable()), alter(9, PAIRS, "TRUNCATE", TruncateTable())]
    feed(history.sink(), [*both, *emptied, transaction(12, insert(PAIRS, 2, "b", 2))], max_rows=1)
    for number in range(1, 6):
        left = number

        def see(name: str) -> None:
            nonlocal left
            left -= name == "merge.committed"
            if not left:
                raise Killed

        failpoint.observe(see)
        try:
            merged(history, copy)
        except Killed:
            pass
        finally:
            failpoint.observe(None)
    merged(history, copy)
    assert (copy.rows(ORDERS), copy.rows(PAIRS)) == ([], [(2, "b", 2)])


def test_the_feed_of_the_history_goes_on_meanwhile(places: tuple[Lake, CopyPlace]) -> None:
    history, copy = places
    feed(history.sink(), HISTORY[:12], max_rows=1)

    def see(name: str) -> None:
        if name == "merge.staged":
            failpoint.observe(None)
            feed(history.sink(), HISTORY, max_rows=1)

    failpoint.observe(see)
    assert merged(history, copy).to_ts < 18
    merged(history, copy)
    check(copy)


def test_a_copy_in_a_bucket(s3_server: Any, bucket: str, tmp_path: Path) -> None:
    history = LAKES["delta"](tmp_path / "history")
    feed(history.sink(), HISTORY)
    copy = IcebergBucket(s3_server, f"{bucket}/copy", tmp_path, format="parquet", mode="copy")
    merged(history, _Indexed(copy, tmp_path / "index"))  # type: ignore[arg-type]
    rows = [tuple(row.values()) for row in copy.arrow("shop.orders").to_pylist()]
    assert sorted(rows) == sorted(expected(HISTORY)["shop.orders"].elements())


class _Indexed:
    """A place with a directory for its index."""

    def __init__(self, place: Any, index: Path) -> None:
        self.url = place.url
        self.options = place.options
        self.index = index


def test_two_merges_at_once_are_told_apart(places: tuple[Lake, CopyPlace]) -> None:
    history, copy = places
    feed(history.sink(), HISTORY)

    def see(name: str) -> None:
        if name == "merge.staged":
            failpoint.observe(None)
            merged(history, copy)

    failpoint.observe(see)
    with pytest.raises(SinkError, match="another copy of feed 'merge' has taken over"):
        merged(history, copy)
    check(copy)


# --- what is refused


def begun(history: Lake, *items: Any) -> None:
    feed(history.sink(), [*BEGUN, *items], max_rows=1)


@pytest.mark.parametrize(
    ("action", "sentence"),
    [
        (AddColumn(Column("twice", "int", generated=True)), "can't compute"),
        (AddColumn(Column("at", "datetime", nullable=False, default="uuid()")), "at"),
        (
            ChangeColumn("note", replace(ORDERS.columns[1], length=2), ORDERS.columns[1]),
            "may not stay the same",
        ),
    ],
)
def test_a_change_that_only_the_source_knows_is_said(tmp_path: Path, action: Any, sentence: str) -> None:
    history, copy = LAKES["delta"](tmp_path / "history"), PLACES["delta"](tmp_path / "copy")
    begun(history, alter(3, ORDERS, "ALTER TABLE orders …", action))
    with pytest.raises(SinkError) as error:
        merged(history, copy)
    assert "a history doesn't have the rows after it: load the copy by a feed" in str(error.value)
    assert sentence in str(error.value)
    assert copy.rows(ORDERS) == [(1, "one")]  # what was before it


def test_defaults_by_the_clock_are_those_of_the_statement(places: tuple[Lake, CopyPlace]) -> None:
    history, copy = places
    column = Column("made", "datetime", nullable=False, default="current_timestamp()")
    ddl = Ddl(
        3, 0, "src", "shop", "orders", "ALTER …", (AddColumn(column),), "", "", 1_700_000_000.0, True, 3600
    )
    begun(history, ddl)
    merged(history, copy)
    (row,) = copy.list("shop.orders")
    assert row["made"] == "2023-11-14 23:13:20"


def test_what_is_no_history_is_said(tmp_path: Path) -> None:
    history, copy = LAKES["delta"](tmp_path / "history"), PLACES["delta"](tmp_path / "copy")
    begun(history)
    merged(history, copy)
    with pytest.raises(SinkError, match=r'has no changes: give a lake of mode = "history"'):
        merged(copy, PLACES["delta"](tmp_path / "other"))  # type: ignore[arg-type]
    another = LAKES["delta"](tmp_path / "another")
    begun(another)
    with pytest.raises(
        SinkError, match=r"has the rows of the history directory:.*/history: give another target"
    ):
        merged(another, copy)
    taken = PLACES["delta"](tmp_path / "taken")
    feed(taken.sink(), BEGUN)
    with pytest.raises(SinkError, match="belongs to sink 'copy' of feed 'test'"):
        merged(history, taken)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/some").write_text("file")
    with pytest.raises(SinkError, match="holds some already: empty it, or give another prefix"):
        merged(history, PLACES["delta"](tmp_path / "full"))
    with pytest.raises(ConfigError, match="no lake that can be analyzed"):
        copy_target("s3://bucket/x", given_sink("copy", "s3://bucket/x").options)
    with pytest.raises(ConfigError, match='expected mode = "copy", of a lake with the present rows'):
        copy_target("delta:///x", given_sink("copy", "delta:///x").options)


def test_files_that_another_program_joined_are_refused(tmp_path: Path) -> None:
    history, copy = LAKES["delta"](tmp_path / "history"), PLACES["delta"](tmp_path / "copy")
    begun(history, transaction(3, insert(ORDERS, 2, "two")), transaction(4, insert(ORDERS, 3, "three")))
    history.opened("shop.orders").optimize.compact()
    with pytest.raises(
        SinkError, match="lacks the source's definition of the table, as another program joined"
    ):
        merged(history, copy)
