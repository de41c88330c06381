"""Tables that are loaded again on request, and feeds that go on past a schema change that stopped them."""

from __future__ import annotations

import re
import signal
import sqlite3
from contextlib import closing, suppress

import pymysql

from tidemill.testing.feeds import CopiedTable

STOP = """
[[on_ddl]]
tables = ["*.*"]
kinds = ["truncate", "change column"]
action = "stop"
"""


def damage(place: CopiedTable) -> None:
    """Change the copy by hand."""
    if place.copy_server is None:
        with closing(sqlite3.connect(place.copy)) as copy:
            copy.execute(f'DELETE FROM "{place.schema}.item" WHERE id > 1')
            copy.commit()
    else:
        place.execute(f"DELETE FROM {place.copy_schema}.item WHERE id > 1")
    assert len(place.copied()) == 1


def copied_ids(place: CopiedTable) -> list[int] | None:
    """Return the keys in the copy; None while the table is replaced."""
    with suppress(pymysql.err.ProgrammingError, sqlite3.OperationalError):
        return place.copied_ids()
    return None


def test_a_running_feed_loads_a_table_again(place: CopiedTable) -> None:
    with place.start() as running:
        running.until(lambda status: status.state == "normal" and status.position)
        damage(place)
        done = place.call("snapshot", str(place.config), f"{place.schema}.item")
        assert (done.status, done.out) == (0, f"{place.schema}.item: loaded again now\n")
        running.wait_until(lambda: copied_ids(place) == [1, 2, 3])
        place.insert(4)
        running.wait_until(lambda: copied_ids(place) == [1, 2, 3, 4])
        assert running.stop(signal.SIGTERM).status == 0
    damage(place)
    done = place.run()
    assert (done.status, len(place.copied())) == (0, 1), "the request was carried out once"


def test_a_feed_that_isn_t_running_loads_the_table_when_it_runs(place: CopiedTable) -> None:
    damage(place)
    done = place.call("snapshot", str(place.config), f"{place.schema}.item")
    assert done.out == f"{place.schema}.item: loaded again when the feed runs; it is finished\n"
    place.continues()


def test_a_table_that_is_gone_is_dropped_in_the_copy(place: CopiedTable) -> None:
    place.call("snapshot", str(place.config), f"{place.schema}.kept")
    place.execute(f"DROP TABLE {place.schema}.kept")
    place.continues()


def test_a_table_that_the_feed_doesn_t_follow_is_named(place: CopiedTable) -> None:
    done = place.call("snapshot", str(place.config), "other.item")
    assert done.sentence == (
        f"other.item: the feed doesn't follow this table: its patterns are {place.schema}.*"
    )


def stopped(place: CopiedTable, statement: str) -> str:
    """Run a statement that stops the feed; return its position."""
    place.config.write_text(place.config.read_text() + STOP)
    place.execute(statement)
    sentence = place.run().sentence
    match = re.search(r"tidemill resume FEED --skip-ddl (\S+);", sentence)
    assert match, sentence
    assert place.run().sentence == sentence, "it stops there again"
    return match[1]


def test_a_feed_goes_on_past_a_statement_that_stopped_it(place: CopiedTable) -> None:
    position = stopped(place, f"TRUNCATE TABLE {place.schema}.item")
    place.insert(7)
    with place.start_command("resume", str(place.config), "--skip-ddl", position) as running:
        running.wait_until(lambda: copied_ids(place) == [1, 2, 3, 7])
        assert running.stop(signal.SIGTERM).status == 0
    assert place.run().status == 0, "it stays skipped"


def test_a_feed_goes_on_with_the_table_loaded_again(place: CopiedTable) -> None:
    stopped(place, f"ALTER TABLE {place.schema}.item MODIFY name VARCHAR(99)")
    place.insert(7)
    table = f"{place.schema}.item"
    with place.start_command("resume", str(place.config), "--resnapshot", table) as running:
        running.wait_until(lambda: copied_ids(place) == [1, 2, 3, 7])
        assert running.stop(signal.SIGTERM).status == 0


def test_a_feed_that_a_missing_row_stopped_names_the_way_on(place: CopiedTable) -> None:
    damage(place)
    place.execute(f"UPDATE {place.schema}.item SET name = 'new' WHERE id = 3")
    table = f"{place.schema}.item"
    assert place.run().sentence.endswith(
        f". To load the table again: tidemill resume FEED --resnapshot {table}"
    )
    with place.start_command("resume", str(place.config), "--resnapshot", table) as running:
        running.wait_until(lambda: copied_ids(place) == [1, 2, 3])
        assert running.stop(signal.SIGTERM).status == 0
    place.continues()


def test_a_feed_is_resumed_by_naming_what_to_do(place: CopiedTable) -> None:
    done = place.call("resume", str(place.config))
    assert done.sentence.startswith(
        "resume: --table TABLE, --skip-ddl POSITION or --resnapshot TABLE is missing"
    )
