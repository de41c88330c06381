"""Changes of tables without a key in a real MariaDB: exactly the logged ones, and few reads of the table."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.errors import SinkError
from tidemill.events import Column, Table, runs_of
from tidemill.sink.sql.groups import cut_groups
from tidemill.sink.sql.mysql_keyless import net_of
from tidemill.testing.changes import LOOSE, batch, delete, insert, transaction, update

from ..sink.conformance import feed
from ..sink.sql_conformance import loaded
from .test_sink_mariadb import MariaDbPlace

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


@pytest.mark.parametrize("gone", [4, 150, 899, 900, 901, 1_000])
def test_as_many_equal_rows_go_as_the_log_says(place, gone):
    rows = [(1, "same")] * 1_000
    loaded(place, LOOSE, rows=[*rows, (None, None), (2, "Same")])
    feed(place.sink(), [transaction(30, *[delete(LOOSE, *one) for one in rows[:gone]])], max_rows=BATCH)
    assert Counter(place.rows(LOOSE)) == Counter([*rows[gone:], (None, None), (2, "Same")])


def test_one_more_than_there_are_is_named_and_nothing_is_written(place):
    loaded(place, LOOSE, rows=[(1, "same")] * 10)
    with pytest.raises(SinkError, match=r"delete of shop.loose .n=1, word='same'.: there is no such row"):
        feed(place.sink(), [transaction(30, *[delete(LOOSE, 1, "same")] * 11)], max_rows=BATCH)
    assert place.rows(LOOSE) == [(1, "same")] * 10


def test_a_row_that_wanders_within_a_batch_is_followed(place):
    loaded(place, LOOSE, rows=[(1, "a"), (9, "z")])
    values = ["a", "b", "a", "c", "d", "e"]
    moves = [update(LOOSE, (1, one), (1, other)) for one, other in pairwise(values)]
    added = [insert(LOOSE, 5, "x"), delete(LOOSE, 5, "x"), insert(LOOSE, 5, "x"), delete(LOOSE, 9, "z")]
    feed(place.sink(), [transaction(30, *moves, *added)], max_rows=BATCH)
    assert Counter(place.rows(LOOSE)) == Counter([(1, "e"), (5, "x")])


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
