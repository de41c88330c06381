"""`tidemill diff` as a command: its lines, its files, its exit status."""

from __future__ import annotations

import json
import os
import pty
import re
import sqlite3
from contextlib import closing, suppress

import pytest

from tidemill.testing.child import Child
from tidemill.testing.feeds import CopiedTable


@pytest.fixture
def place(tmp_path, mariadb, database):
    place = CopiedTable(tmp_path, mariadb, database)
    assert place.run().status == 0
    return place


def change(place, *statements):
    with closing(sqlite3.connect(place.copy)) as connection:
        for statement in statements:
            connection.execute(statement.replace("item", f'"{place.schema}.item"', 1))
        connection.commit()


@pytest.fixture
def changed(place):
    change(place, "UPDATE item SET name='it''s\n' WHERE id=1", "DELETE FROM item WHERE id=2",
           "INSERT INTO item VALUES (9, NULL)")  # fmt: skip
    return place


def test_equal_sides_are_status_0(place):
    done = place.call("diff", str(place.config))
    assert (done.status, done.out, done.err) == (0, f"{place.schema}.item: 3 rows, no differences\n", "")


def test_differences_are_lines_and_status_1(changed):
    done = changed.call("diff", str(changed.config))
    name = f"{changed.schema}.item"
    assert done.status == 1
    assert done.out.splitlines() == [
        f"{name} id=9: only in the target",
        f"{name} id=1: name is 'item 1' in the source, \"it's\\n\" in the target",
        f"{name} id=2: missing in the target",
        f"{name}: 3 rows, 3 differences (1 missing, 1 extra, 1 changed)",
    ]


def test_json_has_one_object_a_line(changed):
    done = changed.call("diff", str(changed.config), "--json")
    extra, other, missing, total = map(json.loads, done.out.splitlines())
    assert (extra["kind"], extra["key"], extra["target"]) == ("extra", {"id": 9}, {"id": 9, "name": None})
    assert (other["kind"], other["source"], other["target"]) == (
        "changed",
        {"name": "item 1"},
        {"name": "it's\n"},
    )
    assert (missing["kind"], missing["source"]) == ("missing", {"id": 2, "name": "item 2"})
    assert (total["type"], total["rows"], total["changed"]) == ("table", 3, 1)


def test_the_file_of_fix_makes_the_sides_equal(changed, tmp_path):
    script = tmp_path / "fix.sql"
    assert changed.call("diff", str(changed.config), "--fix", str(script)).status == 1
    text = script.read_text()
    assert text.startswith("BEGIN;\n")
    assert text.endswith("COMMIT;\n")
    with closing(sqlite3.connect(changed.copy)) as connection:
        connection.executescript(text)
    assert changed.call("diff", str(changed.config)).status == 0


def test_apply_repairs_the_target(changed):
    done = changed.call("diff", str(changed.config), "--apply")
    assert done.status == 1
    assert done.out.count(": repaired\n") == 3
    assert changed.call("diff", str(changed.config)).status == 0
    changed.continues()


def test_a_stopped_feed_s_lag_is_told_apart(place):
    place.insert(4)
    done = place.call("diff", str(place.config))
    assert done.status == 1
    assert "feed copy isn't running: the target is at" in done.err
    assert done.out.splitlines()[0] == (
        f"{place.schema}.item id=4: missing in the target (not settled: the target may only be late)"
    )
    assert done.out.splitlines()[1].endswith(" 1 differences (1 missing, 0 extra, 0 changed), 1 not settled")


def test_equal_rows_of_a_lag_are_counted_one_by_one(place):
    place.execute(f"CREATE TABLE {place.schema}.word (word VARCHAR(9))")
    place.continues()
    place.execute(f"INSERT INTO {place.schema}.word VALUES ('a'), ('a')")
    done = place.call("diff", str(place.config), "--table", "*.word")
    assert "missing in the target 2 times (not settled" in done.out
    assert done.out.endswith(" 2 differences (2 missing, 0 extra, 0 changed), 2 not settled\n")


def test_a_lag_is_not_written_into_the_target(place):
    place.insert(4)
    done = place.call("diff", str(place.config), "--apply")
    assert ": not repaired\n" in done.out
    place.continues()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--sink", "other"], "--sink other: no such sink; the feed has a"),
        (["--table", "shop.nothing"], "diff: no table of this feed and sink matches"),
        (["--apply", "--fix", "x.sql"], "--fix, --apply: give one of them"),
    ],
)
def test_a_mistake_is_status_2(place, arguments, sentence):
    done = place.call("diff", str(place.config), *arguments)
    assert (done.status, done.sentence) == (2, sentence)


def test_a_feed_that_never_ran_is_status_2(tmp_path, mariadb, database):
    place = CopiedTable(tmp_path, mariadb, database)
    with closing(sqlite3.connect(place.copy)):
        place.copy.touch()
    done = place.call("diff", str(place.config))
    assert done.status == 2
    assert done.sentence.endswith("there is no checkpoint of feed 'copy': run it")


def test_ctrl_c_on_a_terminal_ends_it_with_what_was_found_so_far(tmp_path, mariadb, database):
    place = CopiedTable(tmp_path, mariadb, database)
    place.execute(
        f"USE {place.schema}",
        "CREATE TABLE later (id INT PRIMARY KEY)",
        "INSERT INTO later SELECT seq FROM seq_1_to_5000",
    )
    assert place.run().status == 0
    change(place, "UPDATE item SET name='other' WHERE id=1")
    ours, theirs = pty.openpty()
    on_terminal = ["setsid", "--ctty", *place.command("diff", str(place.config), "--rate", "50")]
    with Child(on_terminal, tmp_path / "report", stdin=theirs, stderr=theirs) as child:
        os.close(theirs)
        shown = b""
        while not re.search(rb"later \(2 of 2\).* [1-9]\d* of about", shown):
            shown += os.read(ours, 65_536)
        os.write(ours, b"\x03")
        status = child.exit_status()
        with suppress(OSError):  # once nobody has the terminal open
            while True:
                shown += os.read(ours, 65_536)
        os.close(ours)
    difference, item, later = child.output().splitlines()
    assert status == 2
    assert difference == f"{place.schema}.item id=1: name is 'item 1' in the source, 'other' in the target"
    assert item == f"{place.schema}.item: 3 rows, 1 differences (0 missing, 0 extra, 1 changed)"
    assert re.fullmatch(
        rf"{place.schema}\.later: \d+ rows, no differences, stopped; 0 more rows may differ, "
        "and weren't read again",
        later,
    )
    assert b"tidemill: stopped before the end" in shown
