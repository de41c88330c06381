"""kill -9 at every named point, several times each, under load: nothing lost, nothing twice.

Triggers on the target count every row change it gets, triggers on the source every one it makes.
"""

from collections import Counter
from pathlib import Path

import pytest

from tidemill.failpoint import POINTS as ALL_POINTS
from tidemill.sink import open_sink
from tidemill.snapshot.mysql.definitions import read_table
from tidemill.snapshot.mysql.tables import FoundTable
from tidemill.testing import shop
from tidemill.testing.changes import MemoryStore, batch, create
from tidemill.testing.child import CLI, Child
from tidemill.testing.following import following
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.postgres import PostgreSql
from tidemill.testing.progress import Stalled
from tidemill.testing.shop_copies import COPY, compare_copies, until_caught_up

FEED = """\
name = "kill"
data_dir = "{directory}/state"

[source]
url = "{url}"
tables = ["shop.*"]
chunk_rows = 500

[sorter]
memory_bytes = 0

[[sink]]
name = "sqlite"
url = "sqlite:///{directory}/shop.db"

[[sink]]
name = "copy"
url = "{url}"
schema = "{copy}"

[[sink]]
name = "postgres"
url = "{postgres}"
tables = ["shop.*", "!shop.every_type"]
"""

IN_POSTGRES = [table for table in shop.TABLES if table != "every_type"]  # it has texts with NUL

POINTS = [
    point
    for point in ALL_POINTS
    if point.startswith(("snapshot.", "binlog.", "sink.", "store.")) and point != "sink.altered"
]  # no schema changes here; test_schema_changes.py has crashes at that point
SNAPSHOT_POINTS = ["snapshot.chunk_read"]
STREAM_POINTS = [point for point in POINTS if point not in SNAPSHOT_POINTS]


@pytest.fixture
def server(private_mariadb: MariaDb) -> MariaDb:
    return private_mariadb.start()


@pytest.fixture
def postgres(private_postgresql: PostgreSql) -> PostgreSql:
    return private_postgresql.start()


def write_config(directory: Path, server: MariaDb, postgres: PostgreSql) -> Path:
    config = directory / "feed.toml"
    urls = {"url": server.url(), "postgres": postgres.url()}
    config.write_text(FEED.format(directory=directory, copy=COPY, **urls))
    return config


def run_until_killed(config: Path, point: str, nth: int, log: Path) -> bool:
    """True if the feed died at its nth pass of the point (and not of something else)."""
    with Child([*CLI, "run", config], log, failpoint=f"{point}:{nth}") as child:
        try:
            child.dies()
        except Stalled:
            return False
    return True


def run_until_caught_up(config: Path, server: MariaDb) -> None:
    with following(config) as process:
        until_caught_up(config.parent / "state", server, process)


def count_changes(server: MariaDb, schema: str, counts: str) -> None:
    """Triggers that count the row changes of every table into `audit.<counts>`, per connection."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE IF NOT EXISTS audit")
        cursor.execute(
            f"CREATE TABLE audit.{counts} (tbl VARCHAR(64), op VARCHAR(6), client BIGINT, n BIGINT,"
            " PRIMARY KEY (tbl, op, client))"
        )
        for table in shop.TABLES:
            for op in ("insert", "update", "delete"):
                cursor.execute(
                    f"CREATE TRIGGER {schema}.{table}_{op} AFTER {op} ON {schema}.{table} FOR EACH ROW"
                    f" INSERT INTO audit.{counts} VALUES ('{table}', '{op}', CONNECTION_ID(), 1)"
                    " ON DUPLICATE KEY UPDATE n = n + 1"
                )


def counted(server: MariaDb, counts: str) -> Counter:
    rows = server.execute(f"SELECT tbl, op, SUM(n) FROM audit.{counts} GROUP BY tbl, op")
    return Counter({(table, op): int(n) for table, op, n in rows})


def count_changes_in_postgres(postgres: PostgreSql, server: MariaDb) -> None:
    """Create the empty tables as the feed will, with triggers that count their row changes."""
    sink = open_sink("postgres", postgres.url(), feed="made", store=MemoryStore())
    with server.connect() as connection:
        tables = [read_table(connection, FoundTable("shop", name)) for name in IN_POSTGRES]
    for number, found in enumerate(tables, 1):
        assert found is not None
        sink.write(batch(create(number, found.table)))
        sink.flush()
    sink.close()
    with postgres.connect() as connection:
        connection.execute("CREATE TABLE public.changes (tbl text, op text)")
        connection.execute(
            "CREATE FUNCTION public.counts() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "INSERT INTO public.changes VALUES (TG_TABLE_NAME, lower(TG_OP)); RETURN NULL; END $$"
        )
        for table in IN_POSTGRES:
            connection.execute(
                f"CREATE TRIGGER counts AFTER INSERT OR UPDATE OR DELETE ON shop.{table} "
                "FOR EACH ROW EXECUTE FUNCTION public.counts()"
            )


def counted_in_postgres(postgres: PostgreSql) -> Counter:
    with postgres.connect() as connection:
        query = "SELECT tbl, op, COUNT(*) FROM public.changes GROUP BY tbl, op"
        return Counter({(table, op): n for table, op, n in connection.execute(query)})


def of_postgres(counts: Counter) -> Counter:
    return Counter({(table, op): n for (table, op), n in counts.items() if table in IN_POSTGRES})


def forget(server: MariaDb, postgres: PostgreSql) -> None:
    server.execute("TRUNCATE audit.in_copy")
    with postgres.connect() as connection:
        connection.execute("TRUNCATE public.changes")


def kill_everywhere(
    tmp_path: Path, server: MariaDb, postgres: PostgreSql, times: int, orders: int
) -> Counter:
    """The whole test; how often each point was hit."""
    hits: Counter = Counter()
    config = write_config(tmp_path, server, postgres)
    log = tmp_path / "feed.log"
    with server.connect(autocommit=False) as connection:
        shop.create(connection)
        shop.fill(connection, orders)
    server.execute(
        f"CREATE DATABASE {COPY}",
        *(f"CREATE TABLE {COPY}.{table} LIKE shop.{table}" for table in shop.TABLES),
    )
    count_changes(server, COPY, "in_copy")
    count_changes_in_postgres(postgres, server)

    # Killed in the snapshot of a quiet source: every row arrives by exactly one insert.
    for point in SNAPSHOT_POINTS:
        for nth in range(times):
            hits[point] += run_until_killed(config, point, 2 + nth, log)
    run_until_caught_up(config, server)
    with server.connect() as connection, connection.cursor() as cursor:
        rows = {}
        for table in shop.TABLES:
            cursor.execute(f"SELECT COUNT(*) FROM shop.{table}")
            rows[table, "insert"] = cursor.fetchone()[0]
    assert counted(server, "in_copy") == Counter(rows)
    assert counted_in_postgres(postgres) == of_postgres(Counter(rows))

    # Killed while it follows a busy source, which is killed in between as well.
    forget(server, postgres)
    count_changes(server, "shop", "in_source")
    writers = shop.Writers(lambda: server.connect(autocommit=False), clients=2, pause_seconds=0.01).start()
    try:
        for number, point in enumerate(STREAM_POINTS):
            for nth in range(times):
                passes = 1 + nth
                if point == "store.compacting":
                    # One of more than a batch (1 MiB) waits for its end on disk, and is dropped there.
                    passes = 1
                    with server.connect(autocommit=False) as connection:
                        shop.insert_many(connection, 60_000, first=10**15 + nth * 10**6)
                hits[point] += run_until_killed(config, point, passes, log)
            if number % 2:
                server.kill()
                server.start()
            else:
                postgres.kill()
                postgres.start()
    finally:
        committed = writers.stop()
    run_until_caught_up(config, server)
    assert committed > 100
    assert counted(server, "in_copy") == counted(server, "in_source")
    assert counted_in_postgres(postgres) == of_postgres(counted(server, "in_source"))
    result = compare_copies(tmp_path / "shop.db", server, postgres=postgres)
    assert result.identical, str(result)
    return hits


def test_killed_at_every_point_nothing_is_lost_and_nothing_comes_twice(tmp_path, server, postgres):
    hits = kill_everywhere(tmp_path, server, postgres, times=2, orders=1_000)
    print("killed at:", ", ".join(f"{point} {hits[point]} times" for point in POINTS))
    assert hits == dict.fromkeys(POINTS, 2)


@pytest.mark.soak
def test_killed_very_often(tmp_path, server, postgres):
    hits = kill_everywhere(tmp_path, server, postgres, times=20, orders=20_000)
    print("killed at:", ", ".join(f"{point} {hits[point]} times" for point in POINTS))
    assert hits == dict.fromkeys(POINTS, 20)


def test_a_snapshot_killed_while_the_source_changes_ends_identical(tmp_path, server, postgres):
    config = write_config(tmp_path, server, postgres)
    with server.connect(autocommit=False) as connection:
        shop.create(connection)
        shop.fill(connection, 2_000)
    writers = shop.Writers(lambda: server.connect(autocommit=False), clients=2, pause_seconds=0.01).start()
    try:
        hits = [
            run_until_killed(config, "snapshot.chunk_read", nth, tmp_path / "feed.log")
            for nth in (2, 5, 3, 6)
        ]
    finally:
        writers.stop()
    run_until_caught_up(config, server)
    assert hits == [True] * 4
    result = compare_copies(tmp_path / "shop.db", server, postgres=postgres)
    assert result.identical, str(result)
