"""One of several sources after its snapshot: it waits for the snapshots of the others."""

from __future__ import annotations

from tidemill.codec.mysql.entry import COMMIT, ROWS
from tidemill.codec.mysql.layout import Layouts
from tidemill.events import Changes, Checkpoint, compose_ts
from tidemill.puller.lane import Lane, LoadBarrier
from tidemill.puller.mysql.options import MysqlOptions
from tidemill.puller.mysql.probe import probe
from tidemill.puller.mysql.pull import Pull
from tidemill.puller.puller import SnapshotReport
from tidemill.testing.mariadb import PASSWORD


def test_a_table_created_while_another_source_loads_comes_after_both_snapshots(mariadb, database, sql):
    sql("CREATE TABLE t (id INT PRIMARY KEY)")
    options = MysqlOptions(host=mariadb.host, port=mariadb.port, password=PASSWORD)
    start = Checkpoint(0, str(probe(options).end), {})
    barrier = LoadBarrier(2)
    now = iter(range(0, 10_000, 3))  # a second look is three seconds after the first
    pull = Pull(
        options,
        lambda schema, table: schema == database,
        Layouts(),
        start,
        [],
        lambda: float(next(now)),
        Lane(0, 2),
        barrier,
    )
    steps = pull.steps()
    loaded = next(step for step in steps if isinstance(step, SnapshotReport) and not step.table)
    assert loaded.tables_done == 1

    sql("CREATE TABLE later (id INT PRIMARY KEY)")
    sql("INSERT INTO later VALUES (1)")
    waiting = [step for step in (next(steps) for _ in range(3)) if isinstance(step, Changes)]
    assert {change.key[-1] for step in waiting for change in step.changes} == {COMMIT}
    assert len({step.resolved for step in waiting}) == len(waiting) > 1  # its time goes on

    end = compose_ts(4_000_000_000_000)
    barrier.loaded(Lane(1, 2), end)
    rows = next(
        change
        for step in steps
        if isinstance(step, Changes)
        for change in step.changes
        if change.key[-1] == ROWS
    )
    assert rows.commit_ts > end
    steps.close()
