"""A feed that compares its targets with the source while it runs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from threading import Thread
from typing import TYPE_CHECKING, Final

from ..actors import Clock, SystemClock
from ..dialects.registry import DIALECTS
from ..engine.feed import Feed
from ..engine.opening import open_sinks
from ..engine.options import FeedOptions
from ..engine.shared import Shared
from ..engine.sink_options import SinkOptions
from ..engine.verification import VerifyStatus
from ..errors import ConfigError
from ..sources.registry import SOURCES
from ..sources.several_options import SeveralOptions
from .opening import is_comparable

if TYPE_CHECKING:
    from .verifier import Verifier

log = logging.getLogger("tidemill")

END_SECONDS: Final = 10.0
"""Time for which a database's answer is waited for at the feed's end."""


def verified_feed(options: FeedOptions, clock: Clock | None = None, *, shared: Shared | None = None) -> Feed:
    """Return a feed into the sinks of its options, with the verification that they ask for.

    Raises ConfigError as Feed does, and for a source or target that can't be compared.
    """
    verification = open_verification(options, clock or SystemClock())
    return Feed(options, open_sinks(options), clock, shared=shared, verification=verification)


def open_verification(options: FeedOptions, clock: Clock) -> FeedVerification | None:
    """Return the verification of a feed's targets; None if its options ask for none. Raises ConfigError."""
    verify = options.verify
    if verify is None:
        return None
    from .verifier import Verifier

    sinks = verified_sinks(options)
    share = verify.share / len(sinks)
    return FeedVerification([Verifier(options, verify, sink.name, share, clock) for sink in sinks])


class FeedVerification:
    """A thread for each sink."""

    def __init__(self, verifiers: Sequence[Verifier]) -> None:
        self._verifiers = verifiers
        self._threads = [
            Thread(target=one.run, name=f"tidemill-verify-{one.sink}", daemon=True) for one in verifiers
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        for one in self._verifiers:
            one.stop()

    def wait(self) -> None:
        for thread in self._threads:
            thread.join(END_SECONDS)
            if thread.is_alive():
                log.warning("%s still waits for an answer of a database", thread.name)

    def statuses(self) -> Sequence[VerifyStatus]:
        return [one.status for one in self._verifiers]


def verified_sinks(options: FeedOptions) -> list[SinkOptions]:
    """Return the sinks whose targets are to be compared; none if the options ask for no verification.

    Raises ConfigError if the source or a target can't be compared. Nothing is connected.
    """
    if options.verify is None:
        return []
    wanted = options.verify.sinks
    sinks = [sink for sink in options.sinks if not wanted or sink.name in wanted]
    if not sinks:
        raise ConfigError("verify: the feed has no sink: leave out [verify], or add a [[sink]]")
    source = options.source
    several = source.options.sources if isinstance(source.options, SeveralOptions) else (source,)
    for one in several:
        if not is_comparable(one.kind):
            kinds = ", ".join(kind.name for kind in SOURCES if is_comparable(kind))
            raise ConfigError(
                f"verify: a {one.kind.name} source can't be compared: leave out [verify] "
                f"(can be compared: {kinds})"
            )
    for sink in sinks:
        dialect = sink.given.kind.dialect
        if dialect is None or dialect.traits.is_exclusive:
            names = ", ".join(one.name for one in DIALECTS if not one.traits.is_exclusive)
            raise ConfigError(
                f"verify: sink {sink.name}: a {sink.given.kind.name} target can't be compared while the feed "
                f"runs: name the others in verify.sinks (can be compared: {names})"
            )
        if sink.rules.rows:
            raise ConfigError(
                f"verify: sink {sink.name} gets a part of the rows, which can't be compared: name the others "
                "in verify.sinks"
            )
    for section, has_some in ("filter", options.filters), ("transform", options.transforms):
        if has_some:
            raise ConfigError(
                f"verify: what [[{section}]] changes can't be compared: leave out [verify] or [[{section}]]"
            )
    if options.sharding.is_shared:
        raise ConfigError(
            "verify: merged tables that several feeds share can't be compared, as the target has the other "
            "feeds' rows too: leave out [verify]"
        )
    return sinks
