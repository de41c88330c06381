"""Answers and rejections of a capture."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import pytest
from pyarrow import flight

from tidemill.spark.capture import client
from tidemill.spark.capture.access import Access, Doorkeeper
from tidemill.spark.capture.client import CaptureUnavailable
from tidemill.spark.capture.guard import MAX_REQUEST_BYTES, Guard
from tidemill.spark.capture.options import CaptureOptions
from tidemill.spark.capture.ticket import End
from tidemill.spark.capture.ticket import write as to_json
from tidemill.spark.envelope import ENVELOPE
from tidemill.spark.offsets.offset import Offset
from tidemill.spark.read.parts import Part
from tidemill.testing.certificates import Authority
from tidemill.testing.progress import STALL_SECONDS, eventually, joined

from .history import BASE, SOURCE, Keeping, expected, history, offset, position, rows_of
from .served import served, ticket

COUNT = 40


@pytest.fixture
def items():
    return history(11, COUNT)


@pytest.fixture
def keeping(tmp_path, items) -> Keeping:
    (tmp_path / "held").mkdir()
    found = Keeping(tmp_path / "held", memory=1 << 13, max_rows=5)
    found.take(items)
    return found


def read(address: str, **more):
    return rows_of(client.read([address], json=False, **more))


@pytest.mark.parametrize(("after", "upto"), [(0, COUNT), (3, 17), (17, 18), (20, 20), (39, 40)])
def test_a_range_is_answered_whole(keeping, items, after, upto):
    with served(keeping) as address:
        assert read(address, ticket=ticket(after, upto)) == expected(items, after, upto)


def test_parts_and_operations_are_chosen_at_the_capture(keeping, items):
    with served(keeping) as address:
        for part in [*(Part(number, 3) for number in range(3)), Part(tables=frozenset({"loose"}))]:
            found = read(address, ticket=ticket(0, COUNT, part=part, operations=("insert", "ddl")))
            assert found == expected(items, 0, COUNT, part, ("insert", "ddl"))


def test_large_batches_come_in_several_messages(keeping, items, monkeypatch):
    monkeypatch.setattr("tidemill.spark.capture.answer.MESSAGE_BYTES", 500)
    with served(keeping) as address:
        found = list(client.read([address], ticket(0, COUNT), json=False))
        assert max(batch.num_rows for batch in found) < 5
        assert rows_of(found) == expected(items, 0, COUNT)


def test_a_request_waits_for_what_is_still_to_come(tmp_path, items):
    keeping = Keeping(tmp_path)
    keeping.take(items[:5])
    with served(keeping) as address:
        found = []
        asked = ticket(0, COUNT, wait_seconds=STALL_SECONDS)
        thread = Thread(target=lambda: found.append(read(address, ticket=asked)))
        thread.start()
        eventually(lambda: client.status(address).reading)
        keeping.take(items[5:])
        joined(thread)
        assert found == [expected(items, 0, COUNT)]


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"end": offset(COUNT + 1)}, "the feed has come to log.000001:1400 (ts"),
        (
            {"start": offset(0), "end": Offset(BASE + 9, position(9), "server 2")},
            "follows server 1, and the range",
        ),
        ({"tables": ("blog.*",)}, "this capture follows shop.*, which may not be all that blog.* names"),
        ({"tables": ("shop",)}, "'shop' is not a pattern"),
        ({"tables": ()}, "no pattern given"),
        ({"part": Part(2, 2)}, "part 2 of 2: parts count from 0"),
        ({"operations": ("merge",)}, "operation 'merge': accepted are insert, update, delete, ddl"),
        ({"start": Offset(1, "nowhere", SOURCE)}, "'nowhere' is not a binlog position"),
        ({"start": Offset(BASE, "log.000001:4", SOURCE)}, "the buffer starts after log.000001:1000"),
        ({"end": Offset(BASE, position(COUNT), SOURCE)}, "its clock is ahead of the query's"),
    ],
)
def test_what_it_can_not_answer_is_refused_in_a_sentence(keeping, more, sentence):
    with served(keeping) as address, pytest.raises(CaptureUnavailable) as refused:
        read(address, ticket=ticket(0, COUNT, **more))
    assert sentence in str(refused.value)
    assert "gRPC" not in str(refused.value)


def test_a_ticket_that_is_none_is_refused(keeping):
    with served(keeping) as address, Access().connect(address) as other:
        for raw in (b"", b"{}", b"what", b'{"start":1}'):
            with pytest.raises(flight.FlightServerError, match="not a ticket"):
                other.do_get(flight.Ticket(raw)).read_all()
        with pytest.raises(flight.FlightServerError, match="no action 'drop'; there are: ack"):
            list(other.do_action("drop"))


def test_any_client_finds_what_is_held(keeping, items):
    """Uses nothing of tidemill: only Flight's own calls, and the ticket from the flight info."""
    with served(keeping) as address, flight.connect(f"grpc://{address}") as other:
        (info,) = other.list_flights()
        assert info.schema == ENVELOPE
        assert info.total_records == len(expected(items, 0, COUNT))
        table = other.do_get(info.endpoints[0].ticket).read_all()
        assert table.to_pylist() == expected(items, 0, COUNT)
        one = other.get_flight_info(flight.FlightDescriptor.for_path("shop.pairs"))
        pairs = other.do_get(one.endpoints[0].ticket).read_all()
        assert set(pairs["table"].to_pylist()) == {"pairs"}
        assert pairs.num_rows == sum(row["table"] == "pairs" for row in expected(items, 0, COUNT))
        with pytest.raises(flight.FlightServerError, match="may not be all that"):
            other.get_flight_info(flight.FlightDescriptor.for_path("blog.post"))
        assert {action.type for action in other.list_actions()} == {"acknowledge", "status"}


def test_the_end_of_an_answer_says_how_many_rows_there_were(keeping, items):
    asked = ticket(0, COUNT)
    with served(keeping) as address, Access().connect(address) as other:
        chunks = list(other.do_get(flight.Ticket(to_json(asked))))
    assert chunks[-1].data.num_rows == 0
    end = msgspec.json.decode(chunks[-1].app_metadata.to_pybytes(), type=End)
    assert end == End(len(expected(items, 0, COUNT)), asked.end)


def test_acknowledged_by_the_owner_it_is_let_go(keeping, items):
    with served(keeping) as address:
        assert read(address, ticket=ticket(0, 20, lease="query 1"))
        assert client.acknowledge([address], "query 1", offset(20)) == []
        assert keeping.sink.flush() is not None
        assert read(address, ticket=ticket(20, COUNT)) == expected(items, 20, COUNT)
        with pytest.raises(CaptureUnavailable, match="starts after"):
            read(address, ticket=ticket(10, COUNT))
        found = client.status(address)
        assert (found.source, found.tables, found.lease.lease) == (SOURCE, ("shop.*",), "query 1")
        assert (found.held.base, found.held.reached) == (offset(20), offset(COUNT))
        assert 0 < found.held.rows < len(expected(items, 0, COUNT))


def test_a_second_query_neither_owns_nor_frees_anything(keeping, items):
    with served(keeping) as address:
        assert read(address, ticket=ticket(0, 20, lease="query 1"))
        with pytest.raises(CaptureUnavailable, match="leased to the query query 1 for another"):
            read(address, ticket=ticket(0, 20, lease="query 2"))
        (refusal,) = client.acknowledge([address], "query 2", offset(20))
        assert "leased to the query query 1" in refusal
        (refusal,) = client.acknowledge([address], "", offset(20))
        assert "the lease is missing" in refusal
        (refusal,) = client.acknowledge([address], "query 1", Offset(1, position(3), "server 2"))
        assert "follows server 1" in refusal
        # Reading alone needs no lease.
        assert read(address, ticket=ticket(0, COUNT)) == expected(items, 0, COUNT)


# --- who may ask


@pytest.fixture
def guarded(keeping):
    with served(keeping, middleware={"token": Doorkeeper("s3cret")}) as address:
        yield address


def test_with_the_token_everything_is_answered(guarded, items):
    access = Access(token="s3cret")
    found = read(guarded, ticket=ticket(0, COUNT, lease="q"), access=access)
    assert found == expected(items, 0, COUNT)
    assert client.acknowledge([guarded], "q", offset(5), access=access) == []
    assert client.status(guarded, access=access).source == SOURCE


@pytest.mark.parametrize("token", ["", "s3cre", "S3cret", "s3cret2"])
def test_without_it_nothing_is(guarded, token):
    access = Access(token=token)
    sentence = "the token is missing or isn't the capture's"
    with pytest.raises(CaptureUnavailable, match=sentence):
        read(guarded, ticket=ticket(0, COUNT), access=access)
    with pytest.raises(CaptureUnavailable, match=sentence):
        client.status(guarded, access=access)
    (refusal,) = client.acknowledge([guarded], "q", offset(COUNT), access=access)
    assert sentence in refusal
    with access.connect(guarded) as other:
        for call in (
            lambda: list(other.list_flights(options=access.call())),
            lambda: list(other.list_actions(options=access.call())),
            lambda: other.get_flight_info(flight.FlightDescriptor.for_path("shop.*"), access.call()),
        ):
            with pytest.raises(flight.FlightUnauthenticatedError):
                call()


@contextmanager
def behind_guard(keeping: Keeping, tmp_path: Path, **options: Any) -> Iterator[str]:
    """The address of a server of which clients see only the guard."""
    token = tmp_path / "token"
    token.write_text("s3cret")
    guard = Guard(CaptureOptions(listen="127.0.0.1:0", token_file=token, **options))
    try:
        with served(keeping, location=guard.location, middleware={"token": Doorkeeper("s3cret")}):
            yield f"127.0.0.1:{guard.port}"
    finally:
        guard.close()


@pytest.mark.parametrize("is_tls", [False, True])
def test_behind_its_guard_a_server_answers_as_before(tmp_path, keeping, items, is_tls):
    authority = Authority(tmp_path / "tls")
    cert, key = authority.issue("capture")
    options = {"tls_cert": cert, "tls_key": key} if is_tls else {}
    with behind_guard(keeping, tmp_path, **options) as address:
        access = Access(token="s3cret", ca=authority.ca.read_bytes() if is_tls else b"")
        assert read(address, ticket=ticket(0, COUNT), access=access) == expected(items, 0, COUNT)
        with pytest.raises(CaptureUnavailable, match="the token is missing or isn't the capture's"):
            read(address, ticket=ticket(0, COUNT), access=replace(access, token="other"))
        foreign = Authority(tmp_path / "other").ca.read_bytes()
        with pytest.raises(CaptureUnavailable):
            read(address, ticket=ticket(0, COUNT), access=replace(access, ca=foreign, tls=True))


def test_a_request_without_the_token_is_not_received_whole(keeping, tmp_path):
    large = bytes(MAX_REQUEST_BYTES + 1)
    with behind_guard(keeping, tmp_path) as address, Access().connect(address) as other:
        with pytest.raises(flight.FlightUnavailableError):
            list(other.do_action(flight.Action("status", large)))
        with pytest.raises(flight.FlightUnavailableError):
            other.do_get(flight.Ticket(large)).read_all()
        assert client.status(address, access=Access(token="s3cret")).source == SOURCE


def test_over_tls_the_certificate_is_checked(tmp_path, keeping, items):
    authority = Authority(tmp_path / "tls")
    cert, key = authority.issue("capture")
    pair = flight.CertKeyPair(cert.read_bytes(), key.read_bytes())
    with served(keeping, location="grpc+tls://127.0.0.1:0", tls_certificates=[pair]) as address:
        ca = authority.ca.read_bytes()
        assert read(address, ticket=ticket(0, COUNT), access=Access(ca=ca)) == expected(items, 0, COUNT)
        foreign = Authority(tmp_path / "other").ca.read_bytes()
        for access in (Access(ca=foreign), Access(tls=True), Access()):
            with pytest.raises(CaptureUnavailable):
                read(address, ticket=ticket(0, COUNT), access=access)


def test_the_status_is_json(keeping):
    with served(keeping) as address, Access().connect(address) as other:
        (result,) = other.do_action("status")
        found = json.loads(result.body.to_pybytes())
    assert set(found) == {"source", "tables", "held", "lease", "reading", "answered"}
    assert set(found["held"]) >= {"base", "reached", "rows", "memory_bytes", "disk_bytes"}
