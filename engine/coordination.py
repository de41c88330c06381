"""A feed's part in the coordination of several feeds that write into the same merged tables."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

from ..actors import Clock
from ..errors import CheckpointError, ConfigError
from ..sharding import Membership, Revisions, SharedLocks
from ..store.disk import replace as write_durably
from .options import FeedOptions

TOKEN_FILE = "coordination.token"
"""Identity of a data directory: only the process that has locked the directory writes with it."""


class FeedCoordination:
    """The store of the locks, and the claim of this feed, from `open` to `close`."""

    def __init__(self, options: FeedOptions, sources: Sequence[str], clock: Clock) -> None:
        """`sources` has the names of several sources. Raises ConfigError."""
        self._revisions = _revisions(options)
        etcd = options.sharding.etcd
        self.address = ", ".join(etcd.endpoints) if etcd else f"target of sink {options.sinks[0].name}"
        """Where the locks are, for messages."""
        self._membership = Membership(
            self._revisions,
            options.name,
            sources or [options.name],
            _token(options.data_dir),
            f"{socket.gethostname()}, process {os.getpid()}",
            clock,
        )
        self.locks = SharedLocks(
            self._revisions,
            options.name,
            clock.time,
            self._membership.running,
            self._membership.find_running,
        )
        self.check = self._membership.check

    def open(self) -> None:
        """Claim the feed and its sources. Raises ClaimedElsewhere, and Retryable."""
        self._membership.claim()
        self._membership.start()

    def close(self, *, releases: bool = True) -> None:
        """Release the claim and the store. Doesn't raise.

        Without `releases`, something may still write: the claim stays for its time to live.
        """
        self._membership.close(releases=releases)
        self._revisions.close()


def _revisions(options: FeedOptions) -> Revisions:
    """Return the store, not connected yet."""
    if len(options.sinks) != 1:
        raise ConfigError(
            "sharding.coordination: a feed that shares merged tables has one sink, not "
            f"{len(options.sinks)}: give each its own feed"
        )
    (sink,) = options.sinks
    make = sink.given.kind.revisions
    if make is None:
        raise ConfigError(
            f"sharding.coordination: feeds can't share tables of a {sink.given.kind.name} sink: name a SQL "
            "target"
        )
    if etcd := options.sharding.etcd:
        try:
            from ..puller.pump.registry.etcd import EtcdRegistry
        except ImportError as error:
            raise ConfigError("sharding.etcd needs: pip install 'tidemill[etcd]'") from error
        return EtcdRegistry(etcd.endpoints, prefix=f"/tidemill/{etcd.name}/")
    revisions: Revisions = make(sink.given.target, sink.given.options, options.name)
    return revisions


def _token(directory: Path) -> str:
    path = directory / TOKEN_FILE
    try:
        if not path.exists():
            write_durably(path, uuid4().hex.encode())
        return path.read_text()
    except OSError as error:
        raise CheckpointError(f"can't write {path}: {error.strerror}") from error
