"""Targets of a feed behind a bad network: how each is made, and what it has in the end."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

from tidemill.testing.kafka import Kafka, messages
from tidemill.testing.postgres import PostgreSql
from tidemill.testing.private_server import PrivateServer
from tidemill.testing.s3 import S3Client

from .histories_of_rows import COLUMNS, TABLES, Change, Row, create_tables, read_audit, read_rows


class Target(Protocol):
    host: str
    port: int
    """Address to which the feed's connections go, at last."""
    own_port: int
    """Port at which the feed has to connect; 0: any."""
    aim: bytes
    """Bytes of the requests that make rows durable, as far as they aren't encrypted."""
    repeats: bool
    """True if rows of a snapshot may come again, as others: then there is none in the bad network."""

    def prepare(self) -> None:
        """Make what the feed finds in the target."""

    def remove(self) -> None:
        """Remove everything from the server."""

    def section(self, port: int) -> dict[str, Any]:
        """Return the sink's options, for connections to `port` of this machine."""

    def history(self) -> list[Change]: ...

    def rows(self, table: str) -> Counter[Row]: ...


class InMysql:
    """A schema of a MariaDB or MySQL."""

    own_port = 0
    aim = b"COMMIT"
    repeats = False

    def __init__(self, server: PrivateServer, schema: str, workers: int) -> None:
        self.host, self.port = server.host, server.port
        self._server = server
        self._schema = f"{schema}_copy"
        self._workers = workers

    def prepare(self) -> None:
        with closing(self._server.connect()) as session, session.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {self._schema}")
            create_tables(cursor, self._schema)

    def remove(self) -> None:
        self._server.execute(
            *(f"DROP DATABASE {schema}" for schema in (self._schema, f"{self._schema}_audit"))
        )

    def section(self, port: int) -> dict[str, Any]:
        url = self._server.url().replace(str(self.port), str(port))
        timeouts = "connect_timeout=1&read_timeout=2&write_timeout=2"
        return {
            "url": quoted(f"{url}?{timeouts}"),
            "schema": quoted(self._schema),
            "workers": self._workers,
        }

    def history(self) -> list[Change]:
        with closing(self._server.connect()) as session, session.cursor() as cursor:
            return read_audit(cursor, self._schema)

    def rows(self, table: str) -> Counter[Row]:
        with closing(self._server.connect()) as session, session.cursor() as cursor:
            return read_rows(cursor, self._schema, table)


class InPostgres:
    """A schema of a PostgreSQL."""

    own_port = 0
    aim = b"COMMIT"
    repeats = False

    def __init__(self, server: PostgreSql, schema: str, workers: int) -> None:
        self.host, self.port = server.host, server.port
        self._server = server
        self._schema = f"{schema}_copy"
        self._workers = workers

    def prepare(self) -> None:
        with self._server.connect() as session:
            session.execute(f"CREATE SCHEMA {self._schema}")
            session.execute(f"CREATE SCHEMA {self._schema}_audit")
            session.execute(
                f"CREATE TABLE {self._schema}_audit.made (seq bigserial, tbl text, op text, id int, n bigint)"
            )
            session.execute(
                f"CREATE FUNCTION {self._schema}_audit.note() RETURNS trigger LANGUAGE plpgsql AS $$ "
                "DECLARE changed record; BEGIN changed := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;"
                f"INSERT INTO {self._schema}_audit.made (tbl, op, id, n) VALUES "
                "(TG_TABLE_NAME, lower(TG_OP), changed.id, changed.n); RETURN NULL; END $$"
            )
            for table, definition in TABLES.items():
                name = f"{self._schema}.{table}"
                session.execute(f"CREATE TABLE {name} {definition}")
                session.execute(
                    f"CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON {name} "
                    f"FOR EACH ROW EXECUTE FUNCTION {self._schema}_audit.note()"
                )

    def remove(self) -> None:
        with self._server.connect() as session:
            session.execute(f"DROP SCHEMA {self._schema}, {self._schema}_audit CASCADE")

    def section(self, port: int) -> dict[str, Any]:
        url = self._server.url().replace(str(self.port), str(port))
        return {
            "url": quoted(f"{url}?connect_timeout=2"),
            "schema": quoted(self._schema),
            "workers": self._workers,
        }

    def history(self) -> list[Change]:
        with self._server.connect() as session:
            rows = session.execute(f"SELECT tbl, op, id, n FROM {self._schema}_audit.made ORDER BY seq")
            return [Change(*row) for row in rows]

    def rows(self, table: str) -> Counter[Row]:
        with self._server.connect() as session:
            return Counter(session.execute(f"SELECT {COLUMNS} FROM {self._schema}.{table}").fetchall())


class Log:
    """A target that keeps changes, not rows."""

    repeats = False

    def prepare(self) -> None:
        """Leave everything to the feed."""

    def remove(self) -> None:
        """Leave what the server's own end removes."""

    def changes(self) -> Iterator[tuple[Change, Row | None, Row | None]]:
        """Return each change with its row before and after, in the order of the log."""
        raise NotImplementedError

    def history(self) -> list[Change]:
        return [change for change, _, _ in self.changes()]

    def rows(self, table: str) -> Counter[Row]:
        rows: Counter[Row] = Counter()
        for change, before, after in self.changes():
            if change.table == table:
                rows.subtract([] if before is None else [before])
                rows.update([] if after is None else [after])
        assert min(rows.values(), default=0) >= 0
        return +rows


def changed(
    table: str, op: str, before: dict[str, Any] | None, after: dict[str, Any] | None
) -> tuple[Change, Row | None, Row | None]:
    def row(values: dict[str, Any] | None) -> Row | None:
        return None if values is None else (int(values["id"]), int(values["n"]), values["body"])

    number, version, _ = row(after) or row(before) or (0, 0, "")
    return Change(table, op, number, version), row(before), row(after)


class InKafka(Log):
    """Topics of canal-json, a row's changes in one partition."""

    def __init__(self, server: Kafka, schema: str, delivery: str) -> None:
        self.host, self.port = server.host, server.proxied_port
        self.own_port = server.advertised_port
        self._server = server
        self._schema = schema
        self._delivery = delivery
        self.repeats = delivery == "at least once"
        self.aim = schema.encode() if self.repeats else b"tidemill."  # of the topic, of the transaction's id

    def section(self, port: int) -> dict[str, Any]:
        return {
            "url": quoted(f"kafka://{self.host}:{port}/{self._schema}_{{table}}"),
            "delivery": quoted(self._delivery),
            "partition": quoted("key"),
            "partitions": 2,
            "timeout_seconds": 2,
            "commit_seconds": 0.05,
            "headers": '{ at = "{commit_ts}/{row}" }',
            "client": '{ "socket.timeout.ms" = "1500", "reconnect.backoff.max.ms" = "500" }',
        }

    def changes(self) -> Iterator[tuple[Change, Row | None, Row | None]]:
        for table in TABLES:
            seen: set[object] = set()
            for message in messages(self._server.brokers, f"{self._schema}_{table}"):
                document = json.loads(message.value() or b"")
                if document["type"] not in ("INSERT", "UPDATE", "DELETE"):
                    continue
                at = dict(message.headers() or ())["at"]
                if at in seen and self.repeats:
                    continue
                seen.add(at)
                (data,), op = document["data"], document["type"].lower()
                before = document["old"][0] if op == "update" else data if op == "delete" else None
                yield changed(table, op, before, None if op == "delete" else data)


class InS3(Log):
    """Files of lines in a bucket."""

    own_port = 0
    aim = b"PUT /"

    def __init__(self, server: S3Client, bucket: str) -> None:
        self.host, _, port = server.endpoint.removeprefix("http://").rpartition(":")
        self.port = int(port)
        self._server = server
        self._bucket = bucket

    def section(self, port: int) -> dict[str, Any]:
        endpoint = f"http://{self.host}:{port}"
        return {
            "url": quoted(f"s3://{self._bucket}/rows?endpoint={endpoint}"),
            "format": quoted("ndjson"),
            "flush_seconds": 0.2,
            "timeout_seconds": 1,
        }

    def changes(self) -> Iterator[tuple[Change, Row | None, Row | None]]:
        files = self._server.objects(f"{self._bucket}/rows")
        for path in sorted(files, key=number_of):
            for line in files[path].splitlines():
                document = json.loads(line)
                if document["op"] in ("insert", "update", "delete"):
                    yield changed(
                        document["table"], document["op"], document.get("before"), document.get("after")
                    )


def number_of(path: str) -> tuple[int, ...]:
    """Return the numbers of a file's commit and of the file in it: its name ends in them."""
    *_, commit, number = Path(path).stem.split("-")
    return int(commit), int(number)


def quoted(value: str) -> str:
    return json.dumps(value)
