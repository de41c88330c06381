"""The events of a feed that one sink gets, and its copy of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..chain.selection.rule import Rule
from ..chain.selection.tables import TablePatterns
from .relay.options import RelayOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkRules:
    """Rules about one sink of a feed; without any, it gets everything."""

    tables: TablePatterns | None = None
    """Patterns of the feed's tables for this sink; None: all."""
    rows: tuple[Rule, ...] = ()
    """Rules about rows and changes that aren't for this sink."""
    omissions: tuple[Rule, ...] = ()
    """Rules about transactions and schema changes that the sink isn't to get, after shards are merged."""
    loopback_channel: int = 0
    """Number above 0, the same for both directions between two clusters: transactions with a mark of this
    channel came from the target, and are left out; those that are applied get the mark."""
    relay: RelayOptions | None = None
    """Durable copy of what the sink is about to apply; None: none."""


EVERYTHING: Final = SinkRules()
