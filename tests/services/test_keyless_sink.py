"""Many changes of tables without a key: exactly the logged ones, and few reads of the table."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.dialects.groups import cut_groups
from tidemill.dialects.net import net_of
from tidemill.errors import SinkError
from tidemill.events import Column, Table, runs_of
from tidemill.testing.changes import LOOSE, batch, delete, insert, transaction, update
from tidemill.testing.sink_conformance import feed

from ..dialects.places import MariaDbPlace
from ..sink.sql_conformance import loaded

BATCH = 10_000


@pytest.fixture
def place(mariadb, database):
    return MariaDbPlace(mariadb, database)


def row(number, copies=1):
    return number // copies, f"row {number // copies}"


def rows_read(place, *changes):
    """Apply the changes; return the number of rows that the server read by scans."""
    sink = place.sink()
    sink.open()
    session = sink._database.session
    session.execute("FLUSH STATUS")
    feed_into(sink, changes)
    ((_, count),) = session.rows("SHOW SESSION STATUS LIKE 'Handler_read_rnd_next'")
    sink.close()
    return int(count)


def feed_into(sink, changes):
    for start in range(0, len(changes), BATCH):
        part = changes[start : start + BATCH]
        sink.write(batch(transaction(30, *part, last=start + BATCH >= len(changes))))
    sink.flush()


@pytest.mark.parametrize("copies", [1, 2, 40])
def test_many_deletes_take_few_scans(place, copies):
    rows = [row(number, copies) for number in range(20_000)]
    loaded(place, LOOSE, rows=rows)
    Random(1).shuffle(rows)
    gone, left = rows[:17_400], rows[17_400:]
    assert rows_read(place, *[delete(LOOSE, *one) for one in gone]) < 6 * len(rows)
    assert Counter(place.rows(LOOSE)) == Counter(left)


def test_many_updates_take_few_scans(place):
    rows = [row(number, 2) for number in range(10_000)]
    loaded(place, LOOSE, rows=rows)
    changes = [update(LOOSE, one, (one[0], f"new {number % 3}")) for number, one in enumerate(rows)]
    assert rows_read(place, *changes) < 6 * len(rows)
    assert Counter(place.rows(LOOSE)) == Counter(change.after for change in changes)


def test_triggers_of_the_target_count_each_event_once(place):
    loaded(place, LOOSE, rows=[(1, "a")] * 9)
    place.query("CREATE TABLE counted (what VARCHAR(20))")
    for what in ("INSERT", "UPDATE", "DELETE"):
        place.query(
            f"CREATE TRIGGER loose_{what} AFTER {what} ON loose FOR EACH ROW "
            f"INSERT INTO counted VALUES ('{what}')"
        )
    changes = [update(LOOSE, (1, "a"), (1, "b"))] * 3 + [delete(LOOSE, 1, "a")] * 4
    feed(place.sink(), [transaction(30, *changes)], max_rows=BATCH)
    assert Counter(place.query("SELECT * FROM counted")) == {("UPDATE",): 3, ("DELETE",): 4}
    assert Counter(place.rows(LOOSE)) == {(1, "a"): 2, (1, "b"): 3}


def test_without_the_right_to_create_temporary_tables_rows_are_changed_one_by_one(place):
    loaded(place, LOOSE, rows=[(1, "a")] * 9)
    user = f"writer_{place.database}"
    place.query(f"CREATE USER {user}@127.0.0.1 IDENTIFIED BY 'secret'")
    place.query(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {place.database}.* TO {user}@127.0.0.1")
    try:
        place.url = place.server.url(place.database, user=user, password="secret")
        feed(place.sink(), [transaction(30, *[delete(LOOSE, 1, "a")] * 7)], max_rows=BATCH)
    finally:
        place.query(f"DROP USER {user}@127.0.0.1")
    assert place.rows(LOOSE) == [(1, "a")] * 2


def test_a_row_larger_than_a_packet_says_what_to_raise(private_mariadb):
    private_mariadb.options = ("--max-allowed-packet=1M",)
    place = MariaDbPlace(private_mariadb.start(), "shop")
    loaded(place, LUMPS, rows=[(number, None) for number in range(8)])
    changes = [update(LUMPS, (number, None), (number, b"x" * 600_000)) for number in range(8)]
    with pytest.raises(SinkError, match=r"raise its max_allowed_packet \(now 1048576\) to at least 1200"):
        feed(place.sink(), [transaction(30, *changes)], max_rows=BATCH)
    assert place.rows(LUMPS) == [(number, None) for number in range(8)]


LUMPS = Table("shop", "lumps", (Column("n", "int"), Column("lump", "blob", length=4)))
ANY = Table("shop", "any", (Column("n", "int"),))


@given(st.lists(st.integers(0, 2), max_size=4), st.data())
def test_the_sum_of_changes_is_the_changes_one_by_one(start, data):
    have = Counter((n,) for n in start)
    changes = []
    for _ in range(data.draw(st.integers(0, 12))):
        known = sorted(have.elements())
        after = (data.draw(st.integers(0, 3)),)
        if not known or data.draw(st.booleans()):
            changes.append(insert(ANY, *after))
        else:
            before = data.draw(st.sampled_from(known))
            have[before] -= 1
            if data.draw(st.booleans()):
                changes.append(delete(ANY, *before))
                continue
            changes.append(update(ANY, before, after))
        have[after] += 1
    gone, come = net_of(cut_groups(runs_of(changes), 3))
    first = Counter((n,) for n in start)
    assert gone <= first
    assert first - gone + come == +have


KINDS = Table(
    "shop",
    "kinds",
    (
        Column("n", "int"),
        Column("kind", "enum", members=("it's", "a\\b", ""), charset="utf8mb4", collation="utf8mb4_bin"),
        Column("path", "varchar", length=20, charset="latin1", collation="latin1_swedish_ci"),
    ),
)


@pytest.mark.parametrize("server", ["mariadb", "mysql97"])
def test_a_temporary_table_has_the_columns_of_the_target(request, server):
    """Whatever their members are, and if the target computes or checks what the source doesn't."""
    name = "database" if server == "mariadb" else "mysql_database"
    place = MariaDbPlace(request.getfixturevalue(server), request.getfixturevalue(name))
    rows = [(n, kind, "c:\\new") for n in range(8) for kind in ("it's", "a\\b", None)]
    loaded(place, KINDS, rows=rows)
    place.query("ALTER TABLE kinds MODIFY path VARCHAR(30) CHARACTER SET utf8mb4 NOT NULL DEFAULT 'x'")
    feed(place.sink(), [transaction(30, *[delete(KINDS, *one) for one in rows[:20]])], max_rows=BATCH)
    assert Counter(place.rows(KINDS)) == Counter(rows[20:])
