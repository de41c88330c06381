"""This feed among the feeds that share merged tables: claimed once, kept by heartbeats, never shared."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from threading import Event, Thread

import msgspec
from msgspec import Struct

from ..actors import Clock
from ..errors import Retryable, SinkError, TidemillError
from .shared_locks import Revisions

log = logging.getLogger("tidemill.sharding")

TTL_SECONDS = 10
"""Time after the last heartbeat at which a feed counts as stopped."""
BEAT_SECONDS = 3.0
CLOSE_SECONDS = 1.0
"""Maximum time for which `close` waits for a heartbeat."""
_FEEDS = "feed/"


class ClaimedElsewhere(SinkError):
    """Another process runs this feed, or one of its sources."""


class MembershipClaim(Struct, frozen=True):
    token: str
    """Identity of the feed's data directory, in which only one process can run."""
    sources: list[str]
    where: str
    """Host and process, for people."""


class Membership:
    """The claim of one feed and its sources. `claim` first; `beat` by its own thread, or by a test."""

    def __init__(
        self, revisions: Revisions, feed: str, sources: Sequence[str], token: str, where: str, clock: Clock
    ) -> None:
        self._revisions = revisions
        self._feed = feed
        self._key = f"{_FEEDS}{feed}"
        self._claim = MembershipClaim(token, sorted(sources), where)
        self._clock = clock
        self._revision = 0
        self._beaten = clock.now()
        self._running: frozenset[str] = frozenset()
        self._error: SinkError | None = None
        self._wake = Event()
        self._stopped = False
        self._thread: Thread | None = None

    def claim(self) -> None:
        """Claim the feed and its sources. Raises ClaimedElsewhere, and Retryable."""
        self._claims()
        self.beat()
        if self._error is not None:
            raise self._error
        try:
            self._claims()  # again, as another feed may have claimed a source at the same time
        except ClaimedElsewhere:
            self._release()
            raise

    def _claims(self) -> None:
        """Note the feeds that run. Raises ClaimedElsewhere."""
        claims = {
            key.removeprefix(_FEEDS): (msgspec.json.decode(value, type=MembershipClaim), revision)
            for key, (value, revision) in self._revisions.list(_FEEDS).items()
        }
        for feed, (claim, revision) in claims.items():
            if feed == self._feed:
                if claim.token != self._claim.token:
                    raise self._claimed(f"feed {feed}", claim)
                self._revision = revision
            elif common := sorted({*claim.sources} & {*self._claim.sources}):
                raise self._claimed(f"source {common[0]}", claim, f" of feed {feed}")
        if self._feed not in claims:
            self._revision = 0
        self._running = frozenset(claims)

    def _claimed(self, what: str, claim: MembershipClaim, of: str = "") -> ClaimedElsewhere:
        return ClaimedElsewhere(
            f"{what} is run by another process{of}, {claim.where}: stop it, or wait {TTL_SECONDS} s if it "
            "was killed, or give this one another name"
        )

    def beat(self) -> None:
        """Write the claim again, and note the feeds that run. Raises Retryable."""
        value = msgspec.json.encode(self._claim)
        for _ in range(3):
            revision = self._revisions.put(self._key, value, self._revision, TTL_SECONDS)
            if revision is not None:
                self._revision = revision
                self._beaten = self._clock.now()
                return
            try:
                self._claims()
            except ClaimedElsewhere as error:
                self._error = error
                return
        raise Retryable(f"{self._key}: its heartbeat can't be written")

    def start(self) -> None:
        """Beat in a thread until `close`."""
        self._thread = Thread(target=self._beats, name=f"tidemill-{self._feed}-membership", daemon=True)
        self._thread.start()

    def _beats(self) -> None:
        while not self._stopped:
            alarm = self._clock.call_at(self._clock.now() + BEAT_SECONDS, self._wake.set)
            self._wake.wait()
            self._wake.clear()
            alarm.cancel()
            if not self._stopped:
                try:
                    self.beat()
                    self._claims()
                except ClaimedElsewhere as error:
                    self._error = error
                except TidemillError as error:  # `check` and the next `claim` raise what lasts
                    log.warning("feed %s: its heartbeat waits: %s", self._feed, error)

    def check(self) -> None:
        """Raise ClaimedElsewhere if another process has the claim, and Retryable if it may have it. Any
        thread."""
        if self._error is not None:
            raise self._error
        if self._thread is not None and self._clock.now() - self._beaten > TTL_SECONDS:
            raise Retryable(f"feed {self._feed}: no heartbeat was written for {TTL_SECONDS} s")

    def running(self) -> frozenset[str]:
        """Return the feeds that run, as of the last heartbeat. Any thread."""
        return self._running | {self._feed}

    def find_running(self) -> frozenset[str]:
        """Return the feeds that run now. Raises Retryable. Any thread."""
        return frozenset(key.removeprefix(_FEEDS) for key in self._revisions.list(_FEEDS)) | {self._feed}

    def close(self, *, releases: bool = True) -> None:
        """Stop, and release the claim, which else ends by itself. Doesn't raise."""
        self._stopped = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout=CLOSE_SECONDS)
            releases &= not self._thread.is_alive()  # the store doesn't answer
        if releases:
            self._release()

    def _release(self) -> None:
        try:
            if self._error is None:
                self._revisions.delete(self._key, self._revision)
        except TidemillError as error:
            log.warning("feed %s: its claim ends in %d s: %s", self._feed, TTL_SECONDS, error)
