"""Feeds that leave generated columns out: what is refused, at the start and later."""

from __future__ import annotations

from pathlib import Path

from tidemill.puller.mysql.options import MysqlOptions
from tidemill.puller.mysql.requirements import Survey, check_without_catalog, survey
from tidemill.testing.feeds import CopiedTable
from tidemill.testing.mariadb import PASSWORD, MariaDb
from tidemill.testing.mariadb118 import MariaDb118
from tidemill.testing.mariadb_client import Client

from .pulling import Copy, Pulling, binlog_end

GENERATED = "CREATE TABLE t (id INT PRIMARY KEY, v INT AS (n + 1), n INT)"


def options(server: MariaDb, generated_columns: str) -> MysqlOptions:
    return MysqlOptions(port=server.port, password=PASSWORD, generated_columns=generated_columns)


def errors(found: Survey) -> list[str]:
    return [finding.text for finding in found.findings if finding.level == "error"]


def test_a_server_that_does_not_log_them_is_refused_unless_they_are_left_out(
    mariadb118: MariaDb118, mariadb118_database: str, sql: Client
) -> None:
    name = mariadb118_database
    mariadb118.execute(GENERATED, database=name)
    (error,) = errors(survey(options(mariadb118, "copy"), lambda schema, _: schema == name))
    assert (
        f"without the generated columns of {name}.t (v): set source.generated_columns = 'leave_out'" in error
    )
    found = survey(options(mariadb118, "leave_out"), lambda schema, _: schema == name)
    assert not errors(found)
    assert [column.name for column in found.tables[0].table.columns] == ["id", "n"]
    sql(GENERATED)
    assert not errors(survey(options(sql.server, "copy"), lambda schema, _: schema == sql.database))


def test_the_first_row_without_them_is_refused(mariadb118: MariaDb118, mariadb118_database: str) -> None:
    name = mariadb118_database
    copy = Copy()
    mariadb118.execute("CREATE TABLE other (id INT PRIMARY KEY)", database=name)
    with (
        Pulling(mariadb118, f"{name}.*", copies=[copy]) as pulling,
        mariadb118.connect(database=name) as connection,
        connection.cursor() as cursor,
    ):
        pulling.catch_up(binlog_end(mariadb118))
        cursor.execute(GENERATED)
        cursor.execute("INSERT INTO t (id, n) VALUES (1, 1)")
        cursor.execute("UPDATE t SET n = 2")
        connection.commit()
        error = pulling.wait_for_error()
    assert "updates without column v, which the server computes itself: set source.generated_columns" in str(
        error
    )


def test_they_are_not_left_out_without_definitions(sql: Client) -> None:
    sql(GENERATED)
    given = options(sql.server, "leave_out")

    def follows(schema: str, _table: str) -> bool:
        return schema == sql.database

    (error,) = errors(survey(given, follows, has_catalog=False))
    assert error == "source.generated_columns = 'leave_out' needs the local engine"
    assert [finding.text for finding in check_without_catalog(given)] == [error]
    (error,) = errors(survey(given, follows, knows=lambda _schema, _table: False))
    assert error.startswith(f"the definitions of {sql.database}.t as of the start aren't known")


def test_the_option_changes_for_tables_that_are_loaded_again_only(
    mariadb: MariaDb, database: str, tmp_path: Path
) -> None:
    place = CopiedTable(tmp_path, mariadb, database)
    place.execute(f"ALTER TABLE {database}.item ADD COLUMN v INT AS (id + 1) FIRST")
    place.continues()
    for value, were in (("leave_out", "copied"), ("copy", "left out")):
        place.configure(source=f'generated_columns = "{value}"')
        assert place.run().sentence.endswith(
            f"source.generated_columns is '{value}', but the generated columns of {database}.item were "
            f"{were} so far: change it back, or load the tables again "
            f"(tidemill resume FEED --resnapshot {database}.item)"
        )
        place.call("snapshot", str(place.config), f"{database}.item")
        place.execute(f"UPDATE {database}.item SET name = '{value}' WHERE id = 2")
        assert place.run().status == 0
        copied = place.present() if value == "copy" else [row[1:] for row in place.present()]
        assert place.copied() == copied
