"""From one version of a table to the next: which columns come and go, and what can't be followed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tidemill.codec.tidb.action import Action
from tidemill.codec.tidb.job import Job, SubJob, SubJobs, make_args
from tidemill.codec.tidb.table import to_table
from tidemill.codec.tidb.table_info import ColumnInfo, IndexColumn, IndexInfo, TableInfo
from tidemill.events import AddColumn, ChangeColumn, ChangeKey, DropColumn, altered, compose_ts
from tidemill.mounter.tidb.clock import session_clock
from tidemill.mounter.tidb.columns import NotFollowed, check_not_rewritten, column_actions
from tidemill.testing.tidb_model import column

VARCHAR, TIMESTAMP, DATETIME, DATE, ENUM = 15, 7, 12, 10, 247
NOT_NULL, UNSIGNED = 1, 32


def table(*columns: ColumnInfo, **more) -> TableInfo:
    columns = tuple(replace(c, offset=offset) for offset, c in enumerate(columns))
    return TableInfo(id=5, name="t", columns=columns, **more)


def job(*types: int) -> Job:
    """Return a job of one type, or with several clauses."""
    if len(types) == 1:
        return Job(id=9, type=types[0])
    parts = SubJobs(sub_jobs=[SubJob(type=type_) for type_ in types])
    return Job(id=9, type=Action.MULTI_SCHEMA_CHANGE, multi_schema_info=parts)


def told(old: TableInfo, new: TableInfo, *types: int, of_pumps: bool = False) -> list[str]:
    """A line for each action, or why there are none."""
    made = job(*(types or (Action.ADD_COLUMN,)))
    try:
        actions = column_actions(made, old, to_table("s", old), new, to_table("s", new), of_pumps=of_pumps)
    except NotFollowed as why:
        return [f"no: {why}"]
    lines = []
    for action in actions:
        match action:
            case AddColumn(added, after):
                lines.append(f"add {added.name} {after!r}")
            case DropColumn(name):
                lines.append(f"drop {name}")
            case ChangeColumn(name, changed, before, after):
                assert before is not None
                assert before.name == name
                lines.append(f"change {name} {changed.name} {after!r}")
            case ChangeKey(names):
                lines.append(f"key {' '.join(names)}")
    return lines


ID, A, B = column(1, "id", 0, flags=3), column(2, "a", 1), column(3, "b", 2)


def test_columns_that_come_name_the_one_they_follow():
    x, y, z = column(4, "x", 0), column(5, "y", 0), column(6, "z", 0)
    old = table(ID, A)
    assert told(old, table(ID, A, x, y)) == ["add x None", "add y None"]
    assert told(old, table(x, ID, y, z, A)) == ["add x ''", "add y 'id'", "add z 'y'"]
    assert told(old, table(x, y, ID, A, z)) == ["add x ''", "add y 'x'", "add z None"]


def test_columns_go_before_others_come():
    assert told(table(ID, A, B), table(ID, column(4, "x", 0), B)) == ["drop a", "add x 'id'"]


@pytest.mark.parametrize(
    "args", [[{"O": "a", "L": "a"}, False], {"column_info": {"name": {"O": "a", "L": "a"}}}], ids=["1", "2"]
)
def test_a_column_that_was_on_its_way_out_at_the_start_is_dropped_in_the_end(args):
    """By the job's arguments, of either version: the info doesn't tell it from one that was to come."""
    going = replace(A, state=2)
    old, new = table(ID, B, going), table(ID, B)
    made = Job(id=9, type=Action.DROP_COLUMN, raw_args=make_args(args))
    before, after = to_table("s", old), to_table("s", new)
    assert column_actions(made, old, before, new, after) == (DropColumn("a"),)
    part = SubJobs(sub_jobs=[SubJob(type=Action.DROP_COLUMN, raw_args=make_args(args))])
    made = Job(id=9, type=Action.MULTI_SCHEMA_CHANGE, multi_schema_info=part)
    assert column_actions(made, old, before, new, after) == (DropColumn("a"),)


def test_what_changes_no_row_is_nothing():
    index = IndexInfo(id=1, name="i", columns=(IndexColumn("a", 1),))
    old = table(ID, A)
    for new in (
        table(ID, replace(A, comment="seven")),
        table(ID, A, indexes=(index,)),
        table(ID, A, column(4, "hidden", 2, hidden=True)),
        table(ID, A, column(4, "later", 2, state=3)),
        table(ID, A, column(4, "virtual", 2, generated="`a` + 1")),
        table(ID, A, collation="utf8mb4_general_ci"),
    ):
        assert told(old, new) == []
        assert told(new, new) == []
    hidden, virtual = column(4, "hidden", 0, hidden=True), column(5, "virtual", 0, generated="`a` + 1")
    assert told(table(ID, A, hidden, virtual), old, Action.DROP_COLUMN) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, {"type": 3}),
        ({}, {"flags": UNSIGNED}),
        ({"flags": NOT_NULL}, {"flags": 0}),
        ({}, {"default": "7"}),
        ({"type": VARCHAR}, {"type": VARCHAR, "length": 21}),
        (
            {"type": VARCHAR, "charset": "latin1", "collation": "latin1_bin"},
            {"type": VARCHAR, "charset": "utf8mb4", "collation": "utf8mb4_bin"},
        ),
        ({"type": ENUM, "elements": ("x",)}, {"type": ENUM, "elements": ("x", "y")}),
        ({"type": DATETIME, "decimal": 0}, {"type": DATETIME, "decimal": 3}),
    ],
)
def test_a_column_is_defined_differently(old, new):
    """With the same id, or with rows rewritten under another one."""
    before, after = table(ID, replace(A, **old)), replace(A, **new)
    assert told(before, table(ID, after), Action.MODIFY_COLUMN) == ["change a a None"]
    assert told(before, table(ID, replace(after, id=9)), Action.MODIFY_COLUMN) == ["change a a None"]


def test_columns_change_places():
    c, d = column(4, "c", 0), column(5, "d", 0)
    old = table(ID, A, B, c)
    assert told(old, table(B, ID, A, c), Action.MODIFY_COLUMN) == ["change b b ''"]
    assert told(old, table(ID, c, A, B), Action.MODIFY_COLUMN) == ["change c c 'id'"]
    assert told(old, table(ID, B, c, A), Action.MODIFY_COLUMN) == ["change a a 'c'"]
    moved = table(ID, replace(c, name="e"), d, replace(A, name="f"))
    assert told(old, moved, Action.DROP_COLUMN, Action.ADD_COLUMN) == [
        "drop b",
        "change a f None",
        "change c e 'id'",
        "add d 'e'",
    ]


@given(st.permutations(range(7)), st.sets(st.integers(0, 6)), st.sets(st.integers(0, 6)))
def test_any_order_is_reached(order, renamed, dropped):
    """The actions are verified to lead from one definition to the other."""
    columns = [column(10 + number, f"c{number}", 0) for number in range(7)]
    new = [columns[number] for number in order if number not in dropped]
    new = [replace(one, name=f"{one.name}x") if one.id - 10 in renamed else one for one in new]
    old, new = table(*columns), table(*new)
    before, after = to_table("s", old), to_table("s", new)
    actions = column_actions(job(Action.MODIFY_COLUMN, Action.DROP_COLUMN), old, before, new, after)
    assert altered(before, actions).columns == after.columns


def test_a_renamed_column():
    written_anew = table(ID, column(7, "c", 1))
    assert told(table(ID, A), table(ID, replace(A, name="c"))) == ["change a c None"]
    assert told(table(ID, A), written_anew, Action.MODIFY_COLUMN) == ["change a c None"]
    assert told(table(ID, A), written_anew, Action.ADD_COLUMN, Action.DROP_COLUMN) == ["drop a", "add c None"]
    assert told(table(ID, A), table(ID, A, B), Action.ADD_COLUMN, Action.MODIFY_COLUMN) == ["add b None"]
    assert told(table(ID, A), table(ID, B), Action.DROP_COLUMN, Action.ADD_COLUMN) == ["drop a", "add b None"]


@pytest.mark.parametrize("version", [1, 2])
def test_a_renamed_and_rewritten_column_beside_those_that_come_and_go(version):
    """The job's arguments name these."""
    d = column(8, "d", 0)
    old, new = table(ID, A, B), table(ID, column(7, "c", 0), d)
    named = [{"name": {"O": name, "L": name}} for name in ("b", "d")]
    drop, add = (
        [[{"O": "b", "L": "b"}, False], named[1:]] if version == 1 else [{"column_info": n} for n in named]
    )
    parts = [
        SubJob(type=Action.DROP_COLUMN, raw_args=make_args(drop)),
        SubJob(type=Action.ADD_COLUMN, raw_args=make_args(add)),
        SubJob(type=Action.MODIFY_COLUMN),
    ]
    made = Job(id=9, type=Action.MULTI_SCHEMA_CHANGE, multi_schema_info=SubJobs(sub_jobs=parts))
    before, after = to_table("s", old), to_table("s", new)
    actions = column_actions(made, old, before, new, after)
    assert [type(one) for one in actions] == [DropColumn, ChangeColumn, AddColumn]
    assert altered(before, actions).columns == after.columns


def test_a_rewritten_column_is_known_by_its_id():
    b = replace(B, type=VARCHAR)
    old, new = table(ID, A, B), table(ID, replace(A, name="c", type=VARCHAR), b)
    before, after = to_table("s", old), to_table("s", new)
    actions = column_actions(job(Action.MODIFY_COLUMN), old, before, new, after)
    check_not_rewritten(actions, old, new)
    new = table(ID, new.columns[1], replace(b, id=7))
    with pytest.raises(NotFollowed, match="column b is converted beside other changes"):
        check_not_rewritten(actions, old, new)


def test_two_columns_that_are_renamed_and_rewritten_are_not_followed():
    new = table(ID, column(7, "c", 0), column(8, "d", 0))
    assert told(table(ID, A, B), new, Action.MODIFY_COLUMN, Action.MODIFY_COLUMN) == [
        "no: column a is renamed and converted, and other columns are too"
    ]


def test_columns_that_exchange_their_names_are_not_followed():
    swapped = table(ID, replace(A, name="b"), replace(B, name="a"))
    assert told(table(ID, A, B), swapped, Action.MODIFY_COLUMN) == ["no: columns exchange their names"]


def test_a_column_that_is_on_its_way_out_isn_t_missing_yet():
    going = replace(A, state=2)
    assert told(table(ID, A, B), table(ID, B, going), Action.DROP_COLUMN) == []


def test_another_primary_key():
    def with_key(*columns: ColumnInfo) -> TableInfo:
        parts = tuple(IndexColumn(c.name, offset) for offset, c in enumerate((ID, A)) if c in columns)
        return table(ID, A, indexes=(IndexInfo(id=1, name="PRIMARY", columns=parts, primary=True),))

    assert told(table(ID, A), with_key(A), Action.ADD_PRIMARY_KEY) == ["key a"]
    assert told(with_key(ID), with_key(ID, A), Action.MULTI_SCHEMA_CHANGE) == ["key id a"]
    assert told(with_key(ID), table(ID, A), Action.DROP_PRIMARY_KEY) == ["key "]
    refusal = ["no: DROP PRIMARY KEY: rows are no longer unique before it is done"]
    assert told(with_key(ID), table(ID, A), Action.DROP_PRIMARY_KEY, of_pumps=True) == refusal
    assert told(with_key(ID), with_key(A), Action.DROP_PRIMARY_KEY, Action.ADD_PRIMARY_KEY) == refusal


# --- the clock of the session --------------------------------------------------------------------

MOMENT = 1_800_000_000
"""2027-01-15 08:00:00 UTC"""


def clock(*columns: ColumnInfo, added: Sequence[str] = ("x", "y"), start: float = MOMENT):
    made = Job(id=9, type=Action.ADD_COLUMN, start_ts=compose_ts(int(start * 1000)))
    return session_clock(made, table(ID, *columns), added)


def now(name: str, type_: int, origin: str) -> ColumnInfo:
    return column(4, name, 0, type_, default="CURRENT_TIMESTAMP", origin_default=origin)


def test_without_a_moment_the_clock_is_that_of_the_job():
    assert clock(A, start=MOMENT + 0.25) == (MOMENT + 0.25, 0)
    assert clock(column(4, "x", 0, VARCHAR, default="now", origin_default="now")) == (MOMENT, 0)


def test_a_timestamps_moment_is_in_utc():
    assert clock(now("x", TIMESTAMP, "2027-01-15 07:59:58")) == (MOMENT - 2, 0)


def test_a_datetimes_moment_tells_how_far_the_session_was_ahead():
    assert clock(now("x", DATETIME, "2027-01-15 03:00:01")) == (MOMENT + 1, -5 * 3600)
    assert clock(now("x", DATETIME, "2027-01-15 13:30:00.125")) == (MOMENT + 0.125, 5.5 * 3600)
    columns = now("x", TIMESTAMP, "2027-01-15 08:00:05"), now("y", DATETIME, "2027-01-15 17:00:05.5")
    assert clock(*columns) == (MOMENT + 5.5, 9 * 3600)


def test_only_added_columns_tell_the_time():
    assert clock(now("x", TIMESTAMP, "2020-01-01 00:00:00"), added=["y"]) == (MOMENT, 0)


def test_a_default_that_only_tidb_can_compute_is_not_followed():
    computed = column(4, "x", 0, VARCHAR, default="uuid()", default_is_expression=True)
    with pytest.raises(NotFollowed, match=r"column x has DEFAULT uuid\(\)"):
        clock(computed)
    with pytest.raises(NotFollowed, match="column x has 'noon' as a moment"):
        clock(now("x", DATETIME, "noon"))
