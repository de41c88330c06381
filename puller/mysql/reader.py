"""Reading a server's binlog through a decoder."""

from __future__ import annotations

from collections.abc import Callable

from ...dialects.mysql.client import Server
from ...dialects.mysql.result import POLL_SECONDS
from .binlog import BinlogDecoder
from .options import MysqlOptions
from .stop_signal import StopSignal
from .stream import Dump


class BinlogReader:
    """Feeds the binlog to `decoder`, from the decoder's position. Used by one thread.

    After an error the connection is closed; `read` opens a new one at the decoder's position.
    """

    def __init__(
        self,
        options: MysqlOptions,
        decoder: BinlogDecoder,
        *,
        wants_gtids: bool = False,
        stop: StopSignal | None = None,
    ) -> None:
        """With `wants_gtids`, the decoder's positions have GTIDs if the server can tell them.

        `stop` has `read` raise Retryable.
        """
        self._options = options
        self._stop = stop
        self._wants_gtids = wants_gtids
        self._decoder = decoder
        self._dump: Dump | None = None
        self._bytes = 0  # bytes of earlier connections

    @property
    def bytes(self) -> int:
        """Bytes read from all connections."""
        return self._bytes + (self._dump.bytes if self._dump is not None else 0)

    def connect(self) -> Server:
        """Connect if necessary and return the server. Raises Retryable and SourceError."""
        if self._dump is None:
            decoder = self._decoder
            dump = Dump(
                self._options, decoder.position, wants_gtids=self._wants_gtids and not decoder.has_gtids
            )
            self._dump = dump
            if self._stop is not None:
                self._stop.watch(dump.session)
            server = dump.server
            if dump.gtids is not None:
                decoder.know_gtids(dump.gtids, server.identity)
            if dump.is_by_gtid:
                decoder.move_to(server.identity)
            decoder.resume(server.epoch_seconds, server.zone)
        return self._dump.server

    def read(self, wait_seconds: float = POLL_SECONDS, between: Callable[[], None] | None = None) -> None:
        """Decode the next events; returns without any after `wait_seconds` of silence. `between` is called
        after each transaction.

        Raises Retryable and SourceError.
        """
        self.connect()
        assert self._dump is not None
        try:
            self._decoder.feed(self._dump.read(wait_seconds), between)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection. Idempotent."""
        dump, self._dump = self._dump, None
        if dump is not None:
            self._bytes += dump.bytes
            dump.close()
