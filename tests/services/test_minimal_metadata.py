"""Feeds of tables whose rows are decoded with the catalog: binlog_row_metadata=MINIMAL, and types that look
like others in a binlog."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tidemill.engine.options import feed_options
from tidemill.errors import SourceError
from tidemill.puller.mysql.options import MysqlOptions
from tidemill.puller.mysql.requirements import survey
from tidemill.spark.run.preflight import check_on_spark
from tidemill.testing.mariadb import PASSWORD, MariaDb
from tidemill.testing.schema_copies import SchemaCopies

STATEMENTS = (
    """CREATE TABLE v (a TINYINT UNSIGNED, b DECIMAL(20,4), c CHAR(3) CHARACTER SET latin1,
       d ENUM('x','ä') DEFAULT 'x', e SET('p','q'), f TIMESTAMP(3) NULL, g TIME(6), h YEAR, i BIT(5), j BLOB,
       k JSON, l DOUBLE, m FLOAT, n BINARY(4), o BIGINT UNSIGNED, PRIMARY KEY (a))""",
    """INSERT INTO v VALUES (255, 1.5, 'äö', 'ä', 'p,q', '2024-01-01 00:00:00.123', '-10:00:00.000001',
       1999, 5, x'00ff', '{"a": 1}', 0.1, 0.1, 'ab', 18446744073709551615)""",
    "ALTER TABLE t ADD COLUMN a INT UNSIGNED NOT NULL DEFAULT 4294967295 AFTER id, ADD u UUID, ADD i INET6",
    "UPDATE t SET u = UUID(), i = '::1' WHERE id = 1",
    "RENAME TABLE t TO x, u TO t, x TO u",
    "INSERT INTO u VALUES (7, 7, 'seven', UUID(), '10::')",
    "INSERT INTO t VALUES (4, UUID(), '10.0.0.1')",
)
LATER = (
    "ALTER TABLE v DROP COLUMN b, RENAME COLUMN c TO cc, MODIFY d ENUM('x','ä','z')",
    "UPDATE v SET d = 'z', cc = 'é'",
    "ALTER TABLE u MODIFY name VARCHAR(30) CHARACTER SET utf8mb4 NOT NULL DEFAULT 'é'",
    "UPDATE u SET name = 'é', u = NULL WHERE id = 7",
    "DELETE FROM t WHERE id = 1",
)


def started(server: MariaDb, directory: Path, *options: str) -> SchemaCopies:
    server.options = options
    server.start()
    server.execute("CREATE DATABASE shop", "CREATE DATABASE shop_copy")
    copies = SchemaCopies(server, "shop", directory)
    copies.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20) CHARACTER SET utf8mb4)",
        "INSERT INTO t VALUES (1, 'one'), (2, 'zwö')",
        "CREATE TABLE u (id INT UNSIGNED PRIMARY KEY, w UUID, i INET4)",
        "INSERT INTO u VALUES (1, UUID(), '127.0.0.1')",
    )
    return copies


LIKE_A_SEQUENCE = (
    "CREATE TABLE v (next_not_cached_value BIGINT NOT NULL, minimum_value BIGINT NOT NULL, maximum_value "
    "BIGINT NOT NULL, start_value BIGINT NOT NULL, increment BIGINT NOT NULL, cache_size BIGINT UNSIGNED NOT "
    "NULL, cycle_option TINYINT UNSIGNED NOT NULL, cycle_count BIGINT NOT NULL)"
)


@pytest.mark.parametrize("metadata", ["MINIMAL", "FULL"])
def test_sequences_are_told_from_tables_by_the_catalog(
    private_mariadb: MariaDb, tmp_path: Path, metadata: str
) -> None:
    copies = started(private_mariadb, tmp_path, f"--binlog-row-metadata={metadata}")
    copies.execute("CREATE SEQUENCE s", "SELECT NEXTVAL(s)")
    copies.follow()
    copies.execute(
        "CREATE SEQUENCE s2 CACHE 1",
        "SELECT NEXTVAL(s), NEXTVAL(s2)",
        LIKE_A_SEQUENCE,
        "INSERT INTO v VALUES (1, 2, 3, 4, 5, 6, 7, 8)",
        "ALTER TABLE u ADD n INT DEFAULT 5",
        "ALTER TABLE u ALTER n SET DEFAULT NEXTVAL(s)",
        "INSERT INTO u (id) VALUES (77)",
        "RENAME TABLE s2 TO s3",
        "SELECT NEXTVAL(s3)",
        "ALTER TABLE u ALTER n DROP DEFAULT",
        "DROP SEQUENCE s3",
    )
    copies.follow()
    copies.execute("SELECT NEXTVAL(s)", "DROP SEQUENCE s")
    copies.follow()
    assert copies.differences() == []


@pytest.mark.parametrize("metadata", ["MINIMAL", "NO_LOG", "FULL"])
def test_tables_are_followed_with_any_metadata(
    private_mariadb: MariaDb, tmp_path: Path, metadata: str
) -> None:
    copies = started(private_mariadb, tmp_path, f"--binlog-row-metadata={metadata}")
    copies.follow()
    assert copies.differences() == []
    copies.execute(*STATEMENTS)
    copies.follow()
    assert copies.differences() == []
    copies.execute(*LATER)
    copies.follow()
    assert copies.differences() == []
    assert copies.loads == []


@pytest.mark.parametrize("metadata", ["MINIMAL", "FULL"])
def test_without_its_catalog_a_feed_says_which_tables_need_it(
    private_mariadb: MariaDb, tmp_path: Path, metadata: str
) -> None:
    copies = started(private_mariadb, tmp_path, f"--binlog-row-metadata={metadata}")
    copies.follow()
    (tmp_path / "state" / "copies.catalog").unlink()
    copies.execute("UPDATE u SET w = UUID()")
    with pytest.raises(SourceError, match=r"shop\.u as of the start aren't known.*--resnapshot shop\.u"):
        copies.follow()


@pytest.mark.parametrize("metadata", ["MINIMAL", "FULL"])
def test_definitions_that_are_older_than_the_copy_are_not_used(
    private_mariadb: MariaDb, tmp_path: Path, metadata: str
) -> None:
    copies = started(private_mariadb, tmp_path, f"--binlog-row-metadata={metadata}")
    copies.execute("CREATE TABLE s (id INT PRIMARY KEY, a INT, b INT)")
    copies.follow()
    shutil.copytree(tmp_path / "state", tmp_path / "backup")
    copies.execute("ALTER TABLE s RENAME COLUMN a TO b, RENAME COLUMN b TO a")
    copies.follow()
    shutil.rmtree(tmp_path / "state")
    (tmp_path / "backup").rename(tmp_path / "state")
    copies.execute("INSERT INTO s (id, a, b) VALUES (1, 10, 20)")
    needed = "shop.s, shop.t, shop.u" if metadata == "MINIMAL" else "shop.u"
    with pytest.raises(SourceError, match=f"the definitions of {needed} as of the start aren't known"):
        copies.follow()


def test_rows_before_a_table_is_loaded_again_need_no_definition(
    private_mariadb: MariaDb, tmp_path: Path
) -> None:
    copies = started(private_mariadb, tmp_path, "--binlog-row-metadata=MINIMAL")
    copies.follow()
    copies.execute("ALTER TABLE t ADD n INT AUTO_INCREMENT UNIQUE", "INSERT INTO t (id) VALUES (8)")
    copies.follow()
    copies.execute("UPDATE t SET name = 'eight' WHERE id = 8", "DROP TABLE u")
    copies.follow()
    assert copies.differences() == []
    assert len(copies.loads) == 3  # one for each sink


def test_a_feed_that_starts_at_a_position_needs_full_metadata(
    private_mariadb: MariaDb, tmp_path: Path
) -> None:
    server = started(private_mariadb, tmp_path, "--binlog-row-metadata=MINIMAL").server
    copies = SchemaCopies(server, "shop", tmp_path, position="binlog.000001:4")
    with pytest.raises(
        SourceError, match=r"MINIMAL, and the definitions of shop\.t, shop\.u as of the start"
    ):
        copies.follow()


def test_an_engine_without_a_catalog_needs_full_metadata(private_mariadb: MariaDb, tmp_path: Path) -> None:
    copies = started(private_mariadb, tmp_path, "--binlog-row-metadata=MINIMAL")
    options = MysqlOptions(port=copies.server.port, password=PASSWORD)
    found = survey(options, lambda schema, _: schema == "shop", has_catalog=False)
    errors = [finding.text for finding in found.findings if finding.level == "error"]
    assert [error.split(":")[0] for error in errors] == [
        "column w of table shop.u is uuid",
        "binlog_row_metadata is MINIMAL, which is enough for the local engine only",
    ]


def test_a_check_for_spark_asks_for_full_metadata(private_mariadb: MariaDb, tmp_path: Path) -> None:
    server = started(private_mariadb, tmp_path, "--binlog-row-metadata=MINIMAL").server
    options = feed_options(
        {
            "source": {"url": server.url(), "tables": ["shop.*"]},
            "sink": [{"url": server.url("copy", scheme="mysql+pymysql")}],
        }
    )
    (found,) = check_on_spark(options)
    assert (found.level, found.about) == ("warning", "source")
    assert found.text.startswith("binlog_row_metadata is MINIMAL, which is enough for the local engine only")
