"""Tables of InnoDB's most columns: loaded, changed, created and altered."""

from __future__ import annotations

from pathlib import Path

import tidemill
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.schemas_at_once import SchemasAtOnce

WIDE = f"(id INT PRIMARY KEY, {', '.join(f'c{number} INT' for number in range(1016))})"
CHANGES = f"""\
UPDATE t SET c7 = 7, c1000 = 1;
INSERT INTO t (id, c500) VALUES (9, 9);
DELETE FROM t WHERE id = 4;
CREATE TABLE u {WIDE};
INSERT INTO u (id, c999) VALUES (1, 1);
ALTER TABLE t DROP COLUMN c3;
ALTER TABLE t ADD COLUMN d INT DEFAULT 5 FIRST;
UPDATE t SET c1015 = c1015 + 1"""


def test_tables_of_1017_columns_are_copied_and_followed(
    mariadb: MariaDb, private_mariadb: MariaDb, tmp_path: Path
) -> None:
    copies = SchemasAtOnce(mariadb, "wide", tmp_path, {"mariadb": private_mariadb.start()})
    try:
        rows = "INSERT INTO t (id, c0, c1015) VALUES (1, 2, 3), (4, NULL, 5)"
        copies.create(1, (f"CREATE TABLE t {WIDE}", rows))
        assert copies.differences(0) == []
        copies.execute(0, CHANGES)
        copies.follow()
        assert copies.differences(0) == []
        assert copies.loads == []
        loaded = []
        with tidemill.open(mariadb.url(), ["wide_0.t"], data_dir=tmp_path / "read", until="now") as feed:
            for item in feed:
                loaded += [row.after for row in getattr(item, "rows", ())]
                feed.ack(item)
        assert [(len(row), row[:2], row[-1]) for row in loaded] == [(1017, (5, 1), 4), (1017, (5, 9), None)]
    finally:
        copies.drop(1)
