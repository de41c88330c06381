"""The client of captures: tasks read changes from them, or from the source if they fail."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Final, TypeAlias

import pyarrow as pa
from msgspec.structs import replace
from pyarrow import flight

from ...errors import ConfigError, InvariantViolated, Retryable
from ..envelope import ENVELOPE
from ..offsets.offset import Offset
from . import ticket as tickets
from .access import Access
from .progress import OutOfOrder, WholeTransactions
from .server import CaptureStatus
from .texts import Texts
from .ticket import Acknowledge, End, Ticket
from .watch import StepTimeout

log = logging.getLogger("tidemill.capture")

SILENT_SECONDS: Final = 10.0
"""Timeout for a capture that has the range but sends nothing."""
ACTION_SECONDS: Final = 10.0

Rest: TypeAlias = Callable[[Offset], Iterable[pa.RecordBatch]]
"""Reads the changes from an offset to the ticket's end from the source."""
NOBODY: Final = Access()


class CaptureUnavailable(Retryable):
    """No capture answered the ticket; the message has the reason for each address."""


def read(
    addresses: Sequence[str],
    ticket: Ticket,
    rest: Rest | None = None,
    *,
    access: Access = NOBODY,
    json: bool = True,
    silent_seconds: float = SILENT_SECONDS,
) -> Generator[pa.RecordBatch]:
    """Yield the ticket's changes in commit order, each exactly once, also if captures fail.

    Captures are tried in turn: after a failure the next one continues after the last whole transaction
    received, and finally `rest`. Without `rest` raises CaptureUnavailable, possibly after some rows. With
    `json` the columns `before` and `after` are filled in.

    Raises OutOfOrder if `rest` doesn't continue with the next row, and InvariantViolated if a capture left
    out rows: the rows already yielded can't be taken back, so the caller must read everything again.
    """
    if ticket.start == ticket.end:
        return
    progress = WholeTransactions(ticket.start)
    reasons = []
    texts = Texts() if json else None
    for address in addresses:
        before = progress.rows
        try:
            missing = replace(ticket, start=progress.at)
            for batch in _from_capture(address, missing, progress, access, silent_seconds):
                yield batch if texts is None else texts(batch)
        except (flight.FlightError, pa.ArrowException, OSError, ConfigError, Short) as error:
            reasons.append(f"{address}: {_sentence(error)}")
        except OutOfOrder as error:
            if progress.rows > before:
                raise InvariantViolated(f"the capture {address} gave a wrong answer: {error}") from error
            reasons.append(f"{address}: {error}")
        else:
            return
    if rest is None:
        raise CaptureUnavailable("; ".join(reasons) or "no capture is named")
    log.warning("read from the source itself, after %d rows: %s", progress.rows, "; ".join(reasons))
    yield from progress.continued(rest(progress.at))


class Short(Retryable):
    """The answer ended before its `End` message."""


def _from_capture(
    address: str, ticket: Ticket, progress: WholeTransactions, access: Access, silent_seconds: float
) -> Iterator[pa.RecordBatch]:
    """Yield the missing rows of the ticket. Raises one of the errors above if the capture fails."""
    with access.connect(address) as client:
        # This call has a deadline: do_get to an unreachable host couldn't be cancelled while it connects.
        client.list_actions(access.call(silent_seconds))
        reader = _begun(client, ticket, access, ticket.wait_seconds + silent_seconds)
        with StepTimeout(reader.cancel) as watch:
            try:
                yield from progress.continued(_batches(reader, ticket, watch, silent_seconds))
            except flight.FlightCancelledError:
                if watch.expired:
                    raise Short(f"sent nothing for {silent_seconds:g} s") from None
                raise
            finally:
                reader.cancel()  # the reader has stopped; no effect at the stream's end


def _begun(
    client: flight.FlightClient, ticket: Ticket, access: Access, seconds: float
) -> flight.FlightStreamReader:
    """Return the answer to a ticket. Raises Short if it doesn't begin within `seconds`.

    `do_get` waits for the first message and can't be cancelled meanwhile; so it is left alone then, and ends
    with the connection.
    """
    answers: SimpleQueue[flight.FlightStreamReader | BaseException] = SimpleQueue()
    is_late = Event()

    def begin() -> None:
        try:
            reader = client.do_get(flight.Ticket(tickets.write(ticket)), access.call())
        except BaseException as error:
            answers.put(error)
        else:
            answers.put(reader)
            if is_late.is_set():
                reader.cancel()

    Thread(target=begin, name="tidemill-do-get", daemon=True).start()
    try:
        answer = answers.get(timeout=seconds)
    except Empty:
        is_late.set()
        raise Short(f"sent nothing for {seconds:g} s") from None
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _batches(
    reader: flight.FlightStreamReader, ticket: Ticket, watch: StepTimeout, silent_seconds: float
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an answer. Raises Short if its end is missing, OutOfOrder if rows are."""
    rows, patience = 0, ticket.wait_seconds + silent_seconds
    while True:
        with watch.step(patience):
            try:
                message = reader.read_chunk()
            except StopIteration:
                raise Short(f"ended after {rows} rows, without saying that this was all") from None
        patience = silent_seconds
        if message.app_metadata is not None:
            end = tickets.read(End, "an end", message.app_metadata.to_pybytes())
            if end.rows != rows:
                raise OutOfOrder(f"{rows} rows came, and it says that there were {end.rows}")
            if end.end != ticket.end:
                raise Short(f"ended at {end.end.position}, before the range's end at {ticket.end.position}")
            return
        if message.data.schema != ENVELOPE:
            raise Short("sent other columns than the envelope's: it is of another version")
        rows += message.data.num_rows
        yield message.data


def acknowledge(addresses: Sequence[str], lease: str, upto: Offset, *, access: Access = NOBODY) -> list[str]:
    """Tell all captures to free the changes up to the offset; return the reasons of those that failed.

    Never raises: the next acknowledgement frees what this one couldn't.
    """
    body = tickets.write(Acknowledge(lease, upto))
    return [
        f"{address}: {failure}"
        for address in addresses
        if (failure := _acknowledge(address, body, access)) is not None
    ]


def _acknowledge(address: str, body: bytes, access: Access) -> str | None:
    try:
        _act(address, "acknowledge", body, access)
    except (flight.FlightError, pa.ArrowException, OSError, ConfigError) as error:
        return _sentence(error)
    return None


def status(address: str, *, access: Access = NOBODY) -> CaptureStatus:
    """Return a capture's status. Raises CaptureUnavailable."""
    try:
        return tickets.read(CaptureStatus, "a status", _act(address, "status", b"", access))
    except (flight.FlightError, pa.ArrowException, OSError, ConfigError) as error:
        raise CaptureUnavailable(f"{address}: {_sentence(error)}") from None


def _act(address: str, name: str, body: bytes, access: Access) -> bytes:
    with access.connect(address) as client:
        (result,) = client.do_action(flight.Action(name, body), access.call(ACTION_SECONDS))
        found: bytes = result.body.to_pybytes()
        return found


def _sentence(error: BaseException) -> str:
    """Return the server's message of a Flight error, without gRPC's details."""
    return str(error).partition(". Detail: ")[0].partition(". gRPC client debug context")[0]
