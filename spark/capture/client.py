"""A task's side: changes from captures, and from the source itself where they fail."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import pyarrow as pa
from msgspec.structs import replace
from pyarrow import flight

from ...errors import ConfigError, InvariantViolated, Retryable
from ..envelope import ENVELOPE
from ..offsets.offset import Offset
from . import ticket as tickets
from .access import Access
from .progress import OutOfOrder, Progress
from .server import CaptureStatus
from .texts import Texts
from .ticket import Acknowledge, End, Ticket
from .watch import Watch

log = logging.getLogger("tidemill.capture")

SILENT_SECONDS: Final = 10.0
"""A capture that sends nothing for longer, though it has all, is as good as dead."""
ACTION_SECONDS: Final = 10.0

Rest: TypeAlias = Callable[[Offset], Iterable[pa.RecordBatch]]
"""The changes from an offset to the ticket's end, from the source itself."""
NOBODY: Final = Access()


class CaptureUnavailable(Retryable):
    """No capture gave what was asked for; the sentence says why, by address."""


def read(
    addresses: Sequence[str],
    ticket: Ticket,
    rest: Rest | None = None,
    *,
    access: Access = NOBODY,
    json: bool = True,
    silent_seconds: float = SILENT_SECONDS,
) -> Generator[pa.RecordBatch]:
    """The changes that the ticket names, in order, each once, whatever happens to the captures.

    They are asked in turn; where one fails the next goes on, behind the last whole transaction that came,
    and in the end `rest`. Without `rest` raises CaptureUnavailable, maybe with rows handed on before. With
    `json` the columns `before` and `after` are filled in.

    Raises OutOfOrder where `rest` doesn't go on with the row that is next, and InvariantViolated where a
    capture left out rows: what was handed on can't be taken back then, and all is to be read again.
    """
    if ticket.start == ticket.end:
        return
    progress = Progress(ticket.start)
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
    """An answer without its end."""


def _from_capture(
    address: str, ticket: Ticket, progress: Progress, access: Access, silent_seconds: float
) -> Iterator[pa.RecordBatch]:
    """What is still missing of the ticket. Raises one of the errors above where it doesn't come."""
    with access.connect(address) as client:
        # With a deadline: a call to one that can't be reached would wait for it before it can be cancelled.
        client.list_actions(access.call(silent_seconds))
        reader = client.do_get(flight.Ticket(tickets.write(ticket)), access.call())
        with Watch(reader.cancel) as watch:
            try:
                yield from progress.continued(_batches(reader, ticket, watch, silent_seconds))
            except flight.FlightCancelledError:
                if watch.expired:
                    raise Short(f"sent nothing for {silent_seconds:g} s") from None
                raise
            finally:
                reader.cancel()  # nobody reads on; of a stream at its end this is nothing


def _batches(
    reader: flight.FlightStreamReader, ticket: Ticket, watch: Watch, silent_seconds: float
) -> Iterator[pa.RecordBatch]:
    """The rows of an answer, up to its end. Raises Short if that is missing, OutOfOrder if rows are."""
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
    """Tell all captures that nobody asks again for what is up to there; why those that refused did.

    Never raises: what isn't freed now is freed with the next one.
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
    """Raises CaptureUnavailable."""
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
    """Of Flight's errors what the other side said, without gRPC's account of it."""
    return str(error).partition(". Detail: ")[0].partition(". gRPC client debug context")[0]
