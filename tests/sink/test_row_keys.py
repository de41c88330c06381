"""Keys by which transactions conflict."""

from __future__ import annotations

from tidemill.dialects.keys import Key, KeyPart, TableKeys
from tidemill.events import Column, RowChange, Table, runs_of
from tidemill.sink.sql.parallel.keys import RowKeys
from tidemill.testing.changes import delete, insert, update

USERS = Table(
    "shop", "users", (Column("id", "int", nullable=False), Column("mail", "varchar", length=9)), key=(0,)
)
MAIL = Key("users (mail)", (KeyPart(1, 0, "utf8mb4_general_ci"),))
KEYS = TableKeys("users", (Key("users (id)", (KeyPart(0),)), MAIL))


def written(*changes: RowChange, keys: TableKeys = KEYS) -> set[int | None]:
    found: set[int | None] = set()
    for run in runs_of(changes):
        RowKeys(USERS, keys).add(run, found, set())
    return found - {None}


def test_rows_with_an_equal_value_of_any_unique_key_conflict() -> None:
    first = written(insert(USERS, 1, "a"))
    assert len(first) == 2
    assert len(first & written(insert(USERS, 2, "A"))) == 1
    assert len(first & written(delete(USERS, 1, "b"))) == 1
    assert not first & written(insert(USERS, 2, "b"))


def test_an_update_has_the_keys_before_and_after_it() -> None:
    moved = written(update(USERS, (1, "a"), (2, "b")))
    assert moved == written(insert(USERS, 1, "a"), insert(USERS, 2, "b"))


def test_nulls_of_a_unique_key_never_conflict() -> None:
    assert written(insert(USERS, 1, None)) == written(
        insert(USERS, 1, None), update(USERS, (1, None), (1, None))
    )
    assert not written(insert(USERS, 1, None)) & written(insert(USERS, 2, None))


def test_rows_without_identity_conflict_by_their_table() -> None:
    whole = TableKeys("users")
    assert written(insert(USERS, 1, "a"), keys=whole) == written(delete(USERS, 2, "b"), keys=whole)
