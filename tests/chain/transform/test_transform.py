"""Columns that are left out, masked or hashed, in rows and schema changes."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace

from tidemill.chain.transform.stage import TransformStage
from tidemill.chain.transform.transform import Transform
from tidemill.engine.options import feed_options
from tidemill.errors import ConfigError, SinkError
from tidemill.events import (
    AddColumn,
    ChangeColumn,
    ChangeDetails,
    ChangeKey,
    Column,
    CreateTable,
    Details,
    DropColumn,
    RenameTables,
    Table,
)
from tidemill.testing.changes import alter, delete, insert, transaction, update

USERS = Table(
    "shop",
    "users",
    (
        Column("id", "int", nullable=False),
        Column("Email", "varchar", length=40),
        Column("age", "int"),
        Column("ratio", "double"),
    ),
    key=(0,),
)
KEY = "0123456789abcdef"
SOURCE = {"url": "mysql://root@127.0.0.1:1", "tables": ["shop.*"]}


def transforms_of(sections: Sequence[Mapping[str, object]]) -> tuple[Transform, ...]:
    return feed_options({"source": SOURCE, "transform": sections}).transforms


def stage(needs_key: bool = True, **section: object) -> TransformStage:
    return TransformStage(transforms_of([{"tables": ["shop.users"], **section}]), needs_key=needs_key)


def rows(found: TransformStage, *changes) -> list[tuple[object, object]]:
    (item,) = found.apply([transaction(7, *changes)])
    return [(row.before, row.after) for row in item.rows]


def hashed(text: str) -> str:
    return hmac.new(KEY.encode(), text.encode(), hashlib.sha256).hexdigest()


OLD, NEW = (1, "a@b", 30, 0.5), (1, None, 31, 0.5)


@pytest.mark.parametrize(
    ("section", "names", "old", "new"),
    [
        ({"keep": ["ID", "email"]}, ["id", "Email"], (1, "a@b"), (1, None)),
        ({"drop": ["email", "ratio"]}, ["id", "age"], (1, 30), (1, 31)),
        ({"mask": {"email": "***"}}, ["id", "Email", "age", "ratio"], (1, "***", 30, 0.5), NEW),
        (
            {"hash": ["email", "age"], "hash_key": KEY, "drop": ["ratio"]},
            ["id", "Email", "age"],
            (1, hashed("a@b"), hashed("30")),
            (1, None, hashed("31")),
        ),
    ],
)
def test_rows_have_the_columns_and_values_of_their_transform(section, names, old, new):
    found = stage(**section)
    assert rows(found, update(USERS, OLD, NEW)) == [(old, new)]
    assert rows(found, delete(USERS, *OLD), insert(USERS, *NEW)) == [(old, None), (None, new)]
    (item,) = found.apply([transaction(7, insert(USERS, *NEW))])
    assert [column.name for column in item.rows[0].table.columns] == names
    (created,) = found.apply([alter(7, USERS, "create", CreateTable(USERS))])
    assert created.actions == (CreateTable(item.rows[0].table),)


def test_other_tables_and_marks_pass_as_they_are():
    other = transaction(7, insert(replace(USERS, name="other"), *OLD))
    (passed,) = stage(drop=["age"]).apply([other])
    assert passed is other


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"drop": ["id"]}, "column id can't be changed: it is in the primary key"),
        ({"keep": ["age"]}, "column id can't be changed: it is in the primary key"),
        ({"hash": ["id"], "hash_key": KEY}, "column id can't be changed: it is in the primary key"),
        ({"mask": {"age": "x"}}, "column age can't be masked"),
        ({"mask": {"email": "x" * 41}}, "column Email can't be masked"),
        ({"hash": ["ratio"], "hash_key": KEY}, "column ratio can't be hashed"),
    ],
)
def test_what_a_sink_could_not_hold_is_refused_by_name(section, message):
    with pytest.raises(SinkError, match=f"table shop.users: {message}"):
        rows(stage(**section), insert(USERS, *OLD))


def test_a_sink_that_needs_no_key_gets_a_table_without_one():
    (item,) = stage(needs_key=False, drop=["id"]).apply([transaction(7, insert(USERS, *OLD))])
    assert item.rows[0].table.key == ()
    assert item.rows[0].after == ("a@b", 30, 0.5)


PHONE = Column("phone", "varchar", length=20)
EMAIL = USERS.columns[1]


@pytest.mark.parametrize(
    ("section", "action", "left"),
    [
        ({"drop": ["phone"]}, AddColumn(PHONE), None),
        ({"drop": ["age"]}, AddColumn(PHONE, after="age"), AddColumn(PHONE)),
        ({"keep": ["id"]}, DropColumn("age"), None),
        ({"drop": ["age"]}, DropColumn("ratio"), DropColumn("ratio")),
        (
            {"mask": {"email": "*"}},
            ChangeColumn("Email", replace(EMAIL, length=50), EMAIL),
            ChangeColumn("Email", replace(EMAIL, length=50), EMAIL),
        ),
    ],
)
def test_a_schema_change_concerns_the_columns_that_are_kept(section, action, left):
    (found,) = stage(**section).apply([alter(7, USERS, "alter", action)])
    assert getattr(found, "actions", ()) == (() if left is None else (left,))


def test_changes_of_definitions_are_left_out_unless_the_sink_executes_them():
    changed = alter(7, USERS, "ALTER this", ChangeDetails(Details(), Details(comment="more"), USERS))
    (found,) = stage(drop=["age"]).apply([changed])
    assert (found.commit_ts, getattr(found, "actions", ())) == (7, ())
    rules = transforms_of([{"tables": ["shop.users"], "drop": ["age"]}])
    with pytest.raises(SinkError, match='copied by definition: use copy = "columns"'):
        TransformStage(rules, needs_key=True, copies_definitions=True).apply([changed])


@pytest.mark.parametrize(
    ("section", "action"),
    [
        ({"drop": ["email"]}, ChangeColumn("Email", replace(EMAIL, name="mail"), EMAIL)),
        ({"mask": {"email": "*"}}, ChangeColumn("Email", replace(EMAIL, length=10), EMAIL)),
        ({"hash": ["age"], "hash_key": KEY}, ChangeColumn("age", Column("age", "decimal"), USERS.columns[2])),
        ({"hash": ["phone"], "hash_key": KEY}, AddColumn(replace(PHONE, default="'x'"))),
        ({"mask": {"phone": "*"}}, AddColumn(replace(PHONE, nullable=False))),
        ({"drop": ["age"]}, ChangeKey(("id", "age"))),
        ({"drop": ["age"]}, RenameTables(((("shop", "users"), ("shop", "people")),))),
    ],
)
def test_a_statement_that_would_undo_a_transform_is_refused(section, action):
    with pytest.raises(SinkError, match=r"^transform: .*: ALTER this"):
        stage(**section).apply([alter(7, USERS, "ALTER this", action)])


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({}, "transform 1: it changes nothing"),
        ({"keep": ["a"], "drop": ["b"]}, "give one of them"),
        ({"hash": ["a"]}, "hash_key: a key of 16 characters"),
        ({"mask": ["a"]}, "mask: expected a table"),
        ({"keep": ["b"], "mask": {"a": "x"}}, "column a is named twice, or isn't kept"),
        ({"tables": ["users"], "drop": ["a"]}, "is not a pattern"),
        ({"bogus": 1}, "bogus"),
    ],
)
def test_wrong_sections_are_refused(section, message):
    with pytest.raises(ConfigError, match=message):
        stage(**section)
