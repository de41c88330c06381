"""The Arrow Flight server of a capture's buffer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final

import msgspec
import pyarrow as pa
from pyarrow import flight

from ...errors import Fatal, Retryable, TidemillError
from ..envelope import ENVELOPE
from .answer import Answers, Message
from .buffer import BufferStatistics, ChangeBuffer
from .lease import Lease, LeaseStatistics
from .place import RankOf
from .ticket import Acknowledge, Ticket, read, write

log = logging.getLogger("tidemill.capture")

_ACTIONS: Final = {
    "acknowledge": "free all changes at or before an offset; only for the owner of the lease",
    "status": "the buffered range, the lease, and the answers in progress, as JSON",
}


class CaptureStatus(msgspec.Struct, frozen=True):
    """The result of the action `status`."""

    source: str
    tables: tuple[str, ...]
    held: BufferStatistics
    lease: LeaseStatistics
    reading: int
    """Number of answers in progress."""
    answered: int
    """Number of completed answers."""


class CaptureServer(flight.FlightServerBase):  # type: ignore[misc]
    """Answers tickets; listens from its creation until `shutdown`."""

    def __init__(
        self,
        location: str,
        answers: Answers,
        buffer: ChangeBuffer,
        lease: Lease,
        rank_of: RankOf,
        tables: tuple[str, ...],
        source: Callable[[], str],
        acknowledged: Callable[[], object],
        **options: object,
    ) -> None:
        """`source` returns the source's identity, empty while it is unknown; `acknowledged` is called after
        each acknowledgement; `options` are Flight's."""
        super().__init__(location, **options)
        self._answers = answers
        self._buffer = buffer
        self._lease = lease
        self._rank_of = rank_of
        self._tables = tables
        self._source = source
        self._acknowledged = acknowledged
        self._reading = self._answered = 0
        self._counting = Lock()

    # --- changes

    def do_get(self, context: Any, ticket: flight.Ticket) -> flight.GeneratorStream:
        with _translated():
            asked = read(Ticket, "a ticket", ticket.ticket)
            self._answers.check(asked, self._source())
            self._use(asked.lease)
        return flight.GeneratorStream(ENVELOPE, self._stream(asked, lambda: not context.is_cancelled()))

    def _stream(self, asked: Ticket, wanted: Callable[[], bool]) -> Iterator[Message]:
        with self._counting:
            self._reading += 1
        try:
            with _translated():
                for message in self._answers.stream(asked, self._source(), wanted):
                    self._use(asked.lease)
                    yield message
            with self._counting:
                self._answered += 1
        finally:
            with self._counting:
                self._reading -= 1

    def _use(self, lease: str) -> None:
        if lease:
            self._lease.use(lease)

    # --- what there is

    def list_flights(self, context: object, criteria: bytes) -> Iterator[flight.FlightInfo]:  # noqa: ARG002
        with _translated():
            if self._buffer.statistics().base is not None:
                yield self._info(self._tables)

    def get_flight_info(self, context: object, descriptor: flight.FlightDescriptor) -> flight.FlightInfo:  # noqa: ARG002
        """Return the buffered range; the descriptor's path has table patterns, empty: all followed tables."""
        with _translated():
            return self._info(tuple(part.decode() for part in descriptor.path or ()) or self._tables)

    def _info(self, tables: tuple[str, ...]) -> flight.FlightInfo:
        held, source = self._buffer.statistics(), self._source()
        if held.base is None or held.reached is None:
            raise Retryable("the feed has not begun yet")
        ticket = Ticket(held.base, held.reached, tables)
        self._answers.check(ticket, source)
        whole = tables == self._tables
        return flight.FlightInfo(
            ENVELOPE,
            flight.FlightDescriptor.for_path(*tables),
            [flight.FlightEndpoint(write(ticket), [])],
            held.rows if whole else -1,
            held.memory_bytes + held.disk_bytes if whole else -1,
        )

    # --- actions

    def list_actions(self, context: object) -> list[flight.ActionType]:  # noqa: ARG002
        return [flight.ActionType(name, text) for name, text in _ACTIONS.items()]

    def do_action(self, context: object, action: flight.Action) -> list[flight.Result]:  # noqa: ARG002
        with _translated():
            match action.type:
                case "acknowledge":
                    self._acknowledge(read(Acknowledge, "an acknowledgement", action.body.to_pybytes()))
                    body = b"{}"
                case "status":
                    body = write(self.status())
                case other:
                    raise Fatal(f"no action {other!r}; there are: {', '.join(_ACTIONS)}")
        return [flight.Result(pa.py_buffer(body))]

    def _acknowledge(self, asked: Acknowledge) -> None:
        source = self._source()
        if source and asked.upto.source != source:
            raise Fatal(f"this capture follows {source}, and the offset is of {asked.upto.source}")
        if not asked.lease:
            raise Fatal("only the owner of a lease may acknowledge: the lease is missing")
        rank = self._rank_of(asked.upto.position)
        self._lease.use(asked.lease)
        self._buffer.acknowledge(rank)
        self._acknowledged()

    def status(self) -> CaptureStatus:
        return CaptureStatus(
            self._source(),
            self._tables,
            self._buffer.statistics(),
            self._lease.statistics(),
            self._reading,
            self._answered,
        )


@contextmanager
def _translated() -> Iterator[None]:
    """Translate tidemill's errors to Flight's; a temporary error becomes "unavailable"."""
    try:
        yield
    except Fatal as error:
        raise flight.FlightServerError(str(error)) from error
    except TidemillError as error:
        raise flight.FlightUnavailableError(str(error)) from error
    except GeneratorExit:
        raise
    except Exception as error:
        log.exception("a request failed")
        raise flight.FlightInternalError(f"{error!r}: please report this as a bug") from error
