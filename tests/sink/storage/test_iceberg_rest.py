"""Iceberg tables in a REST catalog: Iceberg's own, and one that answers as it shouldn't."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread

import pytest

from tidemill.errors import ConfigError, Retryable, SinkError
from tidemill.sink import Delivery, Sink
from tidemill.sink.kind import SinkContext
from tidemill.sink.registry import given_sink, survey_sink
from tidemill.testing.changes import PAIRS, MemoryStore, insert, transaction
from tidemill.testing.iceberg_rest import IcebergRest
from tidemill.testing.sink_conformance import HISTORY, ORDERS_3, expected, feed, found, keyed

from .lakes import RestLake
from .test_lakes import ONE_PAIR

SECOND = [transaction(3, insert(PAIRS, 2, "b", 2))]


@pytest.fixture
def lake(iceberg_rest, tmp_path):
    return RestLake(tmp_path / "lake", iceberg_rest.port)


def test_tables_end_with_the_rows_of_the_source(lake, iceberg_rest):
    lake.options |= {"credential": "feed:secret", "keep_snapshots": 3}
    feed(lake.sink(), HISTORY[:9])
    iceberg_rest.restart()
    feed(lake.sink(), HISTORY)
    assert found(lake) == expected(HISTORY)
    with lake.catalog() as catalog:
        assert len(catalog.load_table(("shop", "orders")).snapshots()) == 3


def test_copies_end_with_the_rows_of_the_source(iceberg_rest, tmp_path):
    lake = RestLake(tmp_path / "lake", iceberg_rest.port, mode="copy", flush_seconds=0.0, keep_snapshots=3)
    history = [keyed(item) for item in HISTORY]
    feed(lake.sink(), history[:9])
    iceberg_rest.restart()
    feed(lake.sink(), history)
    for table in (ORDERS_3, PAIRS):
        rows = lake.arrow(table.full_name).to_pylist()
        assert Counter(tuple(row.values()) for row in rows) == expected(history)[table.full_name]
    with lake.catalog() as catalog:
        assert len(catalog.load_table(("shop", "orders")).snapshots()) == 3


def begun(lake: RestLake) -> tuple[Sink, Delivery]:
    """Return a sink that has added a row, and its delivery."""
    sink = lake.sink()
    work = Delivery(sink, sink.open(), "src")
    for item in ONE_PAIR:
        work.accept([item])
        work.run(0)
    work.accept(SECOND)
    return sink, work


def test_a_catalog_that_is_down_is_waited_for(lake, iceberg_rest: IcebergRest):
    sink, work = begun(lake)
    iceberg_rest.kill()
    with pytest.raises(Retryable, match=r"the catalog doesn't answer as it should: .*Connection refused"):
        work.run(0)
    iceberg_rest.restart()
    work.run(0)
    sink.close()
    assert len(lake.list("shop.pairs")) == 2


def test_a_catalog_that_is_silent_is_given_up_and_a_commit_that_it_makes_later_is_found(lake, iceberg_rest):
    lake.options["catalog_seconds"] = 3.0
    sink, work = begun(lake)
    own = sink._target.layout._tables["shop.pairs"]
    add = own.add

    def silent(writer, number, made_ms, find_files):
        def files():
            iceberg_rest.pause()  # it has told the table, and gets the commit
            own.add = add
            return find_files()

        return add(writer, number, made_ms, files)

    own.add = silent
    with pytest.raises(Retryable, match=r"the catalog doesn't answer as it should: .*timed out"):
        work.run(0)
    iceberg_rest.resume()
    while True:
        with suppress(Retryable):  # the machine may be busy
            work.run(0)
            break
    sink.close()
    assert len(lake.list("shop.pairs")) == 2
    assert len(lake.names("shop.pairs")) == 2


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """Listen on a port, and give each request this answer."""

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(1 << 16)
                connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def http(status: str, body: str, length: int = 0) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\n"
    return f"{head}Content-Length: {length or len(body)}\r\n\r\n{body}".encode()


ERROR = '{"error": {"message": "no", "type": "NotAuthorized", "code": 401}}'


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (http("200 OK", '{"defaults": {'), Retryable, "the catalog's answer isn't whole"),
        (http("200 OK", '{"defaults": {', 1000), Retryable, "the catalog doesn't answer as it should"),
        (b"", Retryable, "the catalog doesn't answer as it should"),
        (http("503 Busy", ""), Retryable, "the catalog doesn't answer as it should"),
        (http("500 Broken", "<html>"), Retryable, "the catalog doesn't answer as it should"),
        (http("401 Who", ERROR), SinkError, "the catalog denies access: correct token or credential"),
        (http("403 No", ERROR), SinkError, "the catalog denies access: correct token or credential"),
        (http("404 Nothing", "<html>"), SinkError, "the catalog refuses a request: .*404"),
        (http("200 OK", "[1]"), SinkError, "can't be read"),
    ],
)
def test_answers_that_are_wrong_stop_the_sink_or_are_waited_for(tmp_path, answer, error, words):
    with answering(answer) as port:
        lake = RestLake(tmp_path / "lake", port, token="geheim")
        with pytest.raises(error, match=words) as raised:
            feed(lake.sink(), ONE_PAIR)
        assert "geheim" not in str(raised.value)


def test_the_check_reads_the_catalog(lake, iceberg_rest):
    def said() -> list[str]:
        given = given_sink("copy", lake.url(), lake.options)
        context = SinkContext(name="copy", feed="test", store=MemoryStore())
        return [finding.text for finding in survey_sink(given, context)]

    lake.path.mkdir()
    assert said()[1:] == ["the catalog answers", "has no position yet"]
    iceberg_rest.kill()
    with pytest.raises(Retryable, match=r"the catalog doesn't answer as it should: .*Connection refused"):
        said()


def test_a_warehouse_of_the_catalog_is_no_place_for_the_files(lake):
    lake.options["location"] = ""
    with pytest.raises(ConfigError, match="location is missing, the place of the tables"):
        lake.sink()
