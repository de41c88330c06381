"""Filters of events: which sections are accepted, and what they drop."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from tidemill.chain import Keep, StageContext
from tidemill.chain.selection.stage import SelectionStage
from tidemill.engine.options import feed_options
from tidemill.errors import ConfigError, SinkError
from tidemill.events import (
    WHOLE,
    AddColumn,
    ChangeColumn,
    Checkpoint,
    Chunk,
    Column,
    DropColumn,
    RenameTables,
)
from tidemill.testing.changes import ORDERS, PAIRS, alter, delete, insert, transaction, update

from ..chain.selection.built import filter_rules


@pytest.mark.parametrize(
    ("section", "error"),
    [
        ({"events": ["delete"]}, r"^filter 1\.tables: missing"),
        ({"tables": ["a"], "events": ["delete"]}, r"^filter 1\.tables: 'a' is not a pattern"),
        (
            {"tables": ["*.*"], "events": ["removal"]},
            r"^filter 1\.events: 'removal' is none of 'insert', 'update', 'delete', 'create table', ",
        ),
        ({"tables": ["*.*"]}, r"^filter 1: without events, sql and where it drops everything"),
        ({"tables": ["*.*"], "sql": "("}, r"^filter 1\.sql = '\(': not a regular expression"),
        (
            {"tables": ["*.*"], "sql": "x", "events": ["delete"]},
            r"^filter 1\.sql: changes of rows \(delete\) have",
        ),
        ({"tables": ["*.*"], "where": "id >"}, r"^filter 1\.where = 'id >': lacks a column or constant"),
        (
            {"tables": ["*.*"], "where": "id > 7", "events": ["insert", "truncate"]},
            r"^filter 1\.where: schema changes have no rows",
        ),
        (
            {"tables": ["*.*"], "where": "id > 7", "sql": "x"},
            r"^filter 1\.where: schema changes have no rows",
        ),
    ],
)
def test_a_wrong_section_is_refused(section: dict[str, Any], error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        filter_rules([section])


def test_a_section_with_rows_and_schema_changes_filters_both():
    found = filter_rules([{"tables": ["shop.*"], "events": ["delete", "truncate"]}])
    assert [(one.kinds, one.is_about_statements) for one in found] == [
        ({"delete"}, False),
        ({"truncate"}, True),
    ]


def test_schema_changes_of_a_tikv_source_can_t_be_filtered():
    source = {"url": "tikv://127.0.0.1:1", "tables": ["shop.*"]}
    with pytest.raises(ConfigError, match=re.escape("filter: of a tikv source only changes of rows can be")):
        feed_options({"source": source, "filter": [{"tables": ["shop.*"], "events": ["drop table"]}]})


def test_an_engine_without_filters_refuses_them():
    source = {"url": "mysql://root@127.0.0.1:1", "tables": ["shop.*"]}
    options = feed_options({"source": source, "filter": [{"tables": ["shop.*"], "events": ["delete"]}]})
    with pytest.raises(ConfigError, match=r"^filter: Spark has no filters: only tidemill run"):
        options.reject_local_only("Spark")


def test_changes_of_rows_are_dropped_by_table_and_operation():
    found = filter_rules([{"tables": ["shop.orders"], "events": ["delete", "update"]}])
    stage = SelectionStage(found)
    rows = [insert(ORDERS, 1, "a"), delete(ORDERS, 2, "b"), delete(PAIRS, 3, "c", 4)]
    (left,) = stage.apply([transaction(7, *rows)])
    assert list(left.rows) == [rows[0], rows[2]]
    (none,) = stage.apply([transaction(8, delete(ORDERS, 2, "b"))])
    assert (none.commit_ts, none.last, list(none.rows)) == (8, True, [])


def test_rows_of_a_snapshot_are_no_inserts():
    stage = SelectionStage(filter_rules([{"tables": ["*.*"], "events": ["insert"]}]))
    loaded = transaction(7, insert(ORDERS, 1, "a"), chunk=Chunk("shop.orders", WHOLE))
    assert stage.apply([loaded]) == [loaded]


SMALL = {"tables": ["shop.orders"], "where": "id < 10"}
FRESH = Checkpoint(0, "")


def opened(at: Checkpoint, *sections: dict[str, Any]) -> SelectionStage:
    stage = SelectionStage(filter_rules(sections))
    stage.open(StageContext(feed="f", sink="s", checkpoint=at, now=float, seek=print))
    return stage


def test_rows_for_which_a_condition_is_true_are_not_in_the_target():
    stage = SelectionStage(filter_rules([SMALL]))
    changes = [
        insert(ORDERS, 1, "a"),
        insert(ORDERS, 11, "a"),
        delete(ORDERS, 1, "a"),
        delete(ORDERS, 11, "a"),
        update(ORDERS, (1, "a"), (2, "b")),
        update(ORDERS, (1, "a"), (12, "b")),
        update(ORDERS, (13, "a"), (2, "b")),
        update(ORDERS, (13, "a"), (14, "b")),
        insert(PAIRS, 1, "c", 4),
    ]
    (left,) = stage.apply([transaction(7, *changes)])
    kept = [
        insert(ORDERS, 11, "a"),
        delete(ORDERS, 11, "a"),
        insert(ORDERS, 12, "b"),
        delete(ORDERS, 13, "a"),
    ]
    assert list(left.rows) == [*kept, changes[7], changes[8]]
    (loaded,) = stage.apply([transaction(7, *changes[:2], chunk=Chunk("shop.orders", WHOLE))])
    assert list(loaded.rows) == [changes[1]]


def test_rows_for_which_a_condition_is_unknown_are_kept():
    stage = SelectionStage(filter_rules([{"tables": ["shop.orders"], "where": "note <> 'a'"}]))
    item = transaction(7, insert(ORDERS, 1, None))
    assert stage.apply([item]) == [item]


def test_with_events_a_change_is_dropped_if_the_condition_is_true_before_and_after_it():
    stage = SelectionStage(filter_rules([SMALL | {"events": ["update", "delete"]}]))
    changes = [
        insert(ORDERS, 1, "a"),
        delete(ORDERS, 1, "a"),
        update(ORDERS, (1, "a"), (2, "b")),
        update(ORDERS, (1, "a"), (12, "b")),
    ]
    (left,) = stage.apply([transaction(7, *changes)])
    assert list(left.rows) == [changes[0], changes[3]]
    loaded = transaction(7, delete(ORDERS, 1, "a"), chunk=Chunk("shop.orders", WHOLE))
    assert stage.apply([loaded]) == [loaded]


def test_a_schema_change_of_a_condition_s_column_loads_the_table_again():
    stage = SelectionStage(filter_rules([{"tables": ["shop.orders"], "where": "id = 1 OR kind = 2"}]))
    kind, other = Column("kind", "int"), Column("kind", "bigint", unsigned=True)
    name, wide = Column("kind", "varchar", length=9), Column("kind", "varchar", length=90)
    for actions in [
        (AddColumn(kind),),
        (ChangeColumn("kind", other, kind),),
        (ChangeColumn("kind", name, wide),),
        (ChangeColumn("kind", replace(wide, charset="latin1"), name),),
        (ChangeColumn("kind", Column("kind", "smallint"), kind),),
        (ChangeColumn("id", Column("id", "int", nullable=False), Column("id", "int")),),
        (DropColumn("kind"), AddColumn(kind)),
    ]:
        (found,) = stage.apply([alter(7, ORDERS, "ALTER …", *actions)])
        assert found.actions == ()
        assert found.reload.startswith("table shop.orders: column ")
    for plain in [
        AddColumn(Column("note", "int")),
        ChangeColumn("kind", Column("kind", "int", default="1"), kind),
        ChangeColumn("kind", Column("kind", "bigint"), kind),
        ChangeColumn("kind", wide, name),
    ]:
        kept = alter(7, ORDERS, "ALTER …", plain)
        assert stage.apply([kept]) == [kept]
    for lost in (DropColumn("Kind"), ChangeColumn("kind", Column("sort", "int"), kind)):
        with pytest.raises(
            SinkError, match=r"needs column kind, which is gone after ALTER …: correct where of"
        ):
            stage.apply([alter(7, ORDERS, "ALTER …", lost)])


def test_tables_are_loaded_again_if_other_conditions_concern_them_by_their_new_names():
    stage = SelectionStage(filter_rules([SMALL]))
    for old, new, is_loaded in [("orders", "old", True), ("new", "orders", True), ("new", "old", False)]:
        ddl = alter(7, ORDERS, "RENAME …", RenameTables(((("shop", old), ("shop", new)),)))
        (found,) = stage.apply([ddl])
        assert bool(found.reload) == is_loaded


def test_a_target_keeps_the_conditions_that_it_was_loaded_by():
    keep, *_ = opened(FRESH, SMALL).apply([transaction(7)])
    assert keep == Keep("where", '[["shop.orders", "id < 10"]]')
    at = Checkpoint(7, "log:7", stages={keep.key: keep.state})
    assert opened(at, SMALL, {"tables": ["*.*"], "events": ["insert"]}).apply([]) == []
    for sections in ([], [SMALL | {"where": "id < 9"}], [SMALL | {"events": ["insert"]}]):
        with pytest.raises(
            SinkError, match=r"^sink s: its rows were loaded by where of \[\[filter\]\] = \[\["
        ):
            opened(at, *sections)
    with pytest.raises(SinkError, match="= nothing, and now these are "):
        opened(Checkpoint(7, "log:7"), SMALL)
