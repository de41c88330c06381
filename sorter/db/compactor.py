"""What gives a store's space back."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ...actors import PooledActor
from ...events import Ts
from ...store import Store


class Acknowledged(Struct, frozen=True):
    """To a Compactor: nothing at or below `ts` will be needed again."""

    ts: Ts


class Compactor(PooledActor):
    """Drops the windows of one store that are acknowledged as a whole. Raises StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def on_receive_batch(self, messages: Sequence[Acknowledged]) -> None:
        self._store.drop(max(message.ts for message in messages))
