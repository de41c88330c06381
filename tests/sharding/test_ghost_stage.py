"""Online schema changes of shards: their tables are dropped, and the rename becomes the change."""

from __future__ import annotations

import pytest

from tidemill.chain import Keep, StageContext
from tidemill.errors import SinkError
from tidemill.events import (
    AddColumn,
    Checkpoint,
    Column,
    CreateTable,
    Ddl,
    DropTable,
    RenameTables,
    RowChange,
    Table,
    TablePosition,
    Transaction,
)
from tidemill.sharding import GhostStage, Routes
from tidemill.sharding.route import Ghost, ghost_of

from .rules import sharding_options

COLUMN = Column("c", "int")
SWAP = (("s", "t_1"), ("s", "_t_1_del")), (("s", "_t_1_gho"), ("s", "t_1"))
_, RULES = sharding_options({}, [{"tables": ["s.*"], "target": "all.t"}])


def opened(kept: dict[str, str] | None = None, ts: int = 0) -> GhostStage:
    stage = GhostStage(Routes(RULES), ())
    at = Checkpoint(ts, str(ts), None, "src", stages=kept or {})
    stage.open(StageContext(feed="feed", sink="copy", checkpoint=at, now=lambda: 0.0, seek=lambda _: None))
    return stage


def ddl(ts: int, table: str, *actions, query: str = "ALTER", **reasons: str) -> Ddl:
    return Ddl(ts, ts, "src", "s", table, query, actions, str(ts), **reasons)


def create(ts: int, query: str = "CREATE") -> Ddl:
    return ddl(ts, "_t_1_gho", CreateTable(Table("s", "_t_1_gho", ())), query=query)


def changes(*items: Ddl, stage: GhostStage | None = None) -> tuple[list[Ddl], dict[str, str]]:
    """Return the schema changes that pass, and the stage's state."""
    passed = (stage or opened()).apply(items)
    kept = {one.key: one.state for one in passed if isinstance(one, Keep)}
    return [one for one in passed if isinstance(one, Ddl)], kept


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("_t_1_gho", Ghost("t_1", True)),
        ("__t_1_new", Ghost("t_1", True)),
        ("_t_1_old", Ghost("t_1", False)),
        ("t_1_old", None),
        ("_t_1", None),
    ],
)
def test_the_names_of_the_tools_tables(name, found):
    assert ghost_of(name) == found


def test_all_changes_of_the_shadow_are_made_by_the_rename():
    adds = [
        ddl(ts, "_t_1_gho", AddColumn(Column(name, "int")), query=name) for ts, name in ((2, "a"), (3, "b"))
    ]
    (made,), _ = changes(create(1), *adds, ddl(4, "t_1", RenameTables(SWAP), logged_at="log:4"))
    assert (made.full_name, made.query, made.commit_ts, made.logged_at) == ("s.t_1", "a; b", 4, "log:4")
    assert [action.column.name for action in made.actions] == ["a", "b"]


def test_a_shadow_that_is_dropped_has_no_effect():
    first = create(1), ddl(2, "_t_1_gho", AddColumn(COLUMN)), ddl(3, "_t_1_gho", DropTable())
    made, _ = changes(*first, create(4), ddl(5, "t_1", RenameTables(SWAP)))
    assert made == []


def test_a_change_whose_effect_isn_t_known_is_refused_at_the_rename():
    unknown = ddl(2, "_t_1_gho", reload="nobody knows")
    (made,), _ = changes(create(1), unknown, ddl(3, "t_1", RenameTables(SWAP)))
    assert (made.full_name, made.actions, made.refusal) == ("s.t_1", (), "nobody knows")


def test_a_rename_comes_again_after_a_restart_until_the_target_has_it():
    rename = ddl(3, "t_1", RenameTables(SWAP))
    stage = opened()
    (made,), kept = changes(create(1), ddl(2, "_t_1_gho", AddColumn(COLUMN)), rename, create(4), stage=stage)
    again = opened(kept, 4)
    assert changes(rename, stage=again)[0] == [made]
    lagging = Checkpoint(9, "9", tables={"s.t_1": TablePosition(2, "2")})
    assert list(again.durable(lagging)) == []
    (left,) = again.durable(Checkpoint(9, "9"))
    with pytest.raises(SinkError, match="began before the snapshot"):
        changes(create(10, query=""), rename, stage=opened({left.key: left.state}))


def test_another_rename_of_a_shard_passes_unchanged():
    other = ddl(3, "t_1", RenameTables(((("s", "t_1"), ("s", "t_2")),)))
    away = ddl(4, "t_1", RenameTables(((("s", "t_1"), ("s", "_t_1_old")),)))
    assert changes(other, away)[0] == [other, away]


def test_rows_of_the_tools_tables_are_dropped():
    rows = [
        RowChange(5, 5, Table("s", name, ()), "insert", None, ()) for name in ("t_1", "_t_1_gho", "_t_1_ghc")
    ]
    (left,) = opened().apply([Transaction(5, 5, "src", rows, "5")])
    assert list(left.rows) == rows[:1]
