"""`tidemill capture`: a feed whose changes are buffered and served to other processes."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Final, cast

import pyarrow as pa
from pyarrow import flight

from ...actors import Clock, SystemClock
from ...config.token import read_token
from ...engine.checkpoint import CheckpointFile
from ...engine.feed import Feed
from ...engine.opening import make_data_dir
from ...engine.options import FeedOptions
from ...engine.status import FeedStatus
from ...errors import ConfigError
from ...sink import SinkFactory
from ...store.scratch import Scratch
from .access import Doorkeeper
from .answer import Answers
from .buffer import ChangeBuffer
from .guard import Guard
from .lease import Lease
from .options import CaptureOptions
from .place import rank_of
from .server import CaptureServer
from .sink import CaptureSink

LOOK_SECONDS: Final = 0.25
ENDED: Final = "the capture has ended"


def serve(
    options: FeedOptions,
    capture: CaptureOptions,
    stopping: Event,
    show: Callable[[FeedStatus], object] = lambda _: None,
    listening: Callable[[int], object] = lambda _: None,
) -> None:
    """Follow the source and answer requests until `stopping` is set, or raise the error of a failed feed.

    `listening` is called once with the port, `show` several times per second. Raises ConfigError if the
    server can't listen.
    """
    with opened(options, capture) as running:
        listening(running.port)
        while not running.feed.wait(LOOK_SECONDS):
            show(running.feed.status())
            if stopping.is_set():
                running.close()
        show(running.feed.status())
    if running.feed.error is not None:
        raise running.feed.error


@contextmanager
def opened(options: FeedOptions, capture: CaptureOptions, clock: Clock | None = None) -> Iterator[Capture]:
    """Run a capture in this process."""
    running = Capture(options, capture, clock or SystemClock())
    try:
        running.start()
        yield running
    finally:
        running.close()


class Capture:
    """A feed, the buffer of its changes, and their server."""

    def __init__(self, options: FeedOptions, capture: CaptureOptions, clock: Clock) -> None:
        """Create the server, which listens at once. Raises ConfigError."""
        rank = rank_of(options)
        options = _following(options)
        self._started = False
        self._scratch: Scratch | None = None
        self._scratch_lock = Lock()
        self._directory = options.data_dir / "scratch-capture"
        self.buffer = ChangeBuffer(capture.memory_bytes, capture.disk_bytes, self._new_file, clock)
        self._store = CheckpointFile(options.data_dir / "capture.checkpoint")
        answers = Answers(options, self.buffer, rank, capture.wait_seconds)
        protection = _protection(capture)
        self._guard = Guard(capture) if capture.token_file is not None else None
        with ExitStack() as undo:
            if self._guard is not None:
                undo.callback(self._guard.close)
            location = _location(capture) if self._guard is None else self._guard.location
            try:
                self.server = CaptureServer(
                    location,
                    answers,
                    self.buffer,
                    Lease(capture.lease_seconds, clock),
                    rank,
                    tuple(options.tables.patterns),
                    lambda: self.buffer.source,
                    lambda: self.feed.flush(),
                    **protection,
                )
            except (pa.ArrowException, OSError) as error:
                what = "tls_cert" if capture.tls_cert is not None else "listen"
                raise ConfigError(f"capture.{what}: {location}: {error}") from None
            self.port: int = self.server.port if self._guard is None else self._guard.port
            target = f"flight://{capture.listen.rpartition(':')[0]}:{self.port}"
            sink = SinkFactory(lambda: CaptureSink(target, self._store, self.buffer, rank))
            # Tasks have no catalog: with one, a capture would leave out statements that change nothing.
            self.feed = Feed(options, [sink], clock, keeps_state=False)
            undo.pop_all()
        self._thread = Thread(target=self.server.serve, name="tidemill-capture", daemon=True)
        self._thread.start()

    def start(self) -> None:
        """Start the feed. Raises ConfigError if another feed runs in the data directory."""
        self.feed.start(on_end=self.let_go)
        self._started = True
        self._scratch_files()

    def _scratch_files(self) -> Scratch:
        # Only after the feed has locked the data directory: this removes the files of an earlier capture.
        with self._scratch_lock:
            if self._scratch is None:
                self._scratch = Scratch(self._directory)
            return self._scratch

    def _new_file(self) -> Path:
        return self._scratch_files().new_file()

    def let_go(self) -> None:
        """Close the buffer after the feed has ended, which wakes waiting readers."""
        self.buffer.close(self.feed.status().detail or ENDED)

    def close(self) -> None:
        """Stop everything, with the checkpoint saved. Safe to repeat."""
        self.feed.stop()
        self.buffer.close(ENDED)
        if self._started:
            self.feed.wait()
        if self._guard is not None:
            self._guard.close()
        self.server.shutdown()
        self._thread.join()
        if self._scratch is not None:
            self._scratch.close()


def _following(options: FeedOptions) -> FeedOptions:
    """Return the feed's options with a unique name: another process may run a feed of the same name, and
    TiKV's GC keeps old versions by name."""
    make_data_dir(options)
    try:
        path = options.data_dir / "capture.id"
        if not path.exists():
            path.write_text(uuid.uuid4().hex[:12])
        name = f"{options.name[:40]}-capture-{path.read_text()}"
    except OSError as error:
        raise ConfigError(f"data_dir: {options.data_dir}: {error.strerror}") from None
    followed = replace(cast("Any", options.source.options), snapshot=False)
    source = replace(options.source, options=followed)
    return replace(options, name=name, sinks=(), until="", source=source)


def _location(capture: CaptureOptions) -> str:
    """Return the server's URL. Raises ConfigError if the port is in use: Flight's error doesn't say so."""
    host, _, port = capture.listen.rpartition(":")
    try:
        address = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
        with socket.socket(address[0], socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address[4])
    except OSError as error:
        raise ConfigError(f"capture.listen: {capture.listen}: {error.strerror or error}") from None
    return f"{'grpc+tls' if capture.tls_cert else 'grpc+tcp'}://{capture.listen}"


def _protection(capture: CaptureOptions) -> dict[str, object]:
    arguments: dict[str, object] = {}
    if capture.token_file is not None:
        arguments["middleware"] = {"token": Doorkeeper(read_token(capture.token_file, "capture.token_file"))}
    elif capture.tls_cert is not None and capture.tls_key is not None:
        try:
            pair = flight.CertKeyPair(capture.tls_cert.read_bytes(), capture.tls_key.read_bytes())
        except OSError as error:
            raise ConfigError(f"capture.tls_cert: {error.filename}: {error.strerror}") from None
        arguments["tls_certificates"] = [pair]
    return arguments
