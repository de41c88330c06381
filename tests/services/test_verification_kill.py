"""kill -9 of a feed while it verifies its target: the pass goes on, and each repaired row is named."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from tidemill.testing.feeds import CopiedTable

ROWS = 6_000


@pytest.fixture
def place(mariadb, database, tmp_path):
    place = CopiedTable(tmp_path, mariadb, database)
    place.insert(*range(4, ROWS + 1))
    place.continues()
    return place


def verify(place, **options):
    section = [f"{name} = {json.dumps(value)}" for name, value in options.items()]
    place.config.write_text("\n".join([place.config.read_text(), "[verify]", *section, ""]))


def change(place, *statements):
    with closing(sqlite3.connect(place.copy, timeout=60)) as connection, connection:
        for statement in statements:
            connection.execute(statement.replace("item", f'"{place.schema}.item"'))


def killed(place, failpoint):
    with place.start(failpoint=failpoint) as feed:
        assert feed.exit_status() == -9


def test_a_pass_goes_on_where_the_killed_process_was(place):
    verify(place, every="10s", share=1)
    change(place, "DELETE FROM item WHERE id=5", f"UPDATE item SET name='y' WHERE id={ROWS}")
    killed(place, "verify.saved:3")
    state = json.loads((place.directory / "state" / "copy.a.verify.json").read_text())
    assert state["table"] == f"{place.schema}.item"
    assert 0 < state["source_key"][0][1] < ROWS
    assert state["divergence"]["missing"] == 1
    with place.start() as feed:
        status = feed.until(lambda status: status.verify and status.verify[0].passes)
    (one,) = status.verify
    assert one.whole_began == state["began"]
    assert one.rows <= ROWS + 1_000
    (table,) = one.divergences
    assert (table.missing, table.extra, table.changed) == (1, 0, 1)
    assert (table.first, table.last) == ("id=5", f"id={ROWS}")


@pytest.mark.parametrize("failpoint", ["verify.found:1", "verify.repaired:1", "verify.repaired:2"])
def test_each_repaired_row_is_named_though_the_process_dies(place, failpoint):
    verify(place, every="1s", share=1, repair=True)
    change(place, "DELETE FROM item WHERE id IN (5, 6)", "UPDATE item SET name='y' WHERE id=7")
    killed(place, failpoint)
    with place.start() as feed:
        feed.until(lambda status: status.verify[0].passes and not status.verify[0].diverged)
    assert place.copied() == place.present()
    lines = (place.directory / "state" / "copy.a.differences.jsonl").read_text().splitlines()
    assert {json.loads(line)["key"]["id"] for line in lines} == {5, 6, 7}
