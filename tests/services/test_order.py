"""A bank: money moves between accounts while somebody looks at the copies. No look sees half a transfer."""

import sqlite3
from contextlib import closing
from pathlib import Path

from tidemill.testing import shop
from tidemill.testing.following import following
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.shop_copies import COPY, compare_copies, until_caught_up

FEED = """\
name = "bank"
data_dir = "{directory}/state"

[source]
url = "{url}"
tables = ["shop.*"]
chunk_rows = 1000

[sorter]
memory_bytes = "64KiB"

[[sink]]
name = "sqlite"
url = "sqlite:///{directory}/shop.db"

[[sink]]
name = "copy"
url = "{url}"
schema = "{copy}"
"""

LOOK = "SELECT COUNT(*), SUM(balance), SUM(balance * id) FROM {}"
TOTAL = shop.ACCOUNTS * shop.OPENING_BALANCE
LOOKS = 150


def look_at_sqlite(path: Path) -> tuple[int, int, int]:
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return connection.execute(LOOK.format('"shop.accounts"')).fetchone()
    except sqlite3.OperationalError:  # not made yet
        return 0, 0, 0


def look_at_mariadb(server: MariaDb) -> tuple[int, int, int]:
    with server.connect() as connection, connection.cursor() as cursor:
        known = "SELECT 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = 'accounts'"
        if not cursor.execute(known, (COPY,)):
            return 0, 0, 0
        cursor.execute(LOOK.format(f"{COPY}.accounts"))
        count, total, weighted = cursor.fetchone()
        return count, int(total or 0), int(weighted or 0)


def test_the_total_is_right_at_every_look(tmp_path, private_mariadb):
    server = private_mariadb.start()
    with server.connect(autocommit=False) as connection:
        shop.create(connection)
        shop.fill(connection, 10)
    config = tmp_path / "feed.toml"
    config.write_text(FEED.format(directory=tmp_path, url=server.url(), copy=COPY))
    writers = shop.Writers(
        lambda: server.connect(autocommit=False), pause_seconds=0.002, transfers_only=True
    ).start()
    seen: dict[str, list[tuple[int, int]]] = {"sqlite": [], "mariadb": []}
    try:
        with following(config) as feed:
            while feed.poll() is None and min(map(len, seen.values())) < LOOKS:
                for name, look in (
                    ("sqlite", look_at_sqlite(tmp_path / "shop.db")),
                    ("mariadb", look_at_mariadb(server)),
                ):
                    if look[0] == shop.ACCOUNTS:  # its snapshot is whole
                        seen[name].append(look[1:])
            writers.stop()
            until_caught_up(tmp_path / "state", server, feed)
    finally:
        writers.stop()
    for looks in seen.values():
        assert {total for total, _ in looks} == {TOTAL}
        assert len({weighted for _, weighted in looks}) > 10  # they did see money move
    result = compare_copies(tmp_path / "shop.db", server)
    assert result.identical, str(result)
