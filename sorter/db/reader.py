"""Reading runs back from disk."""

from __future__ import annotations

from ...errors import StoreError
from ...events import Block
from ...store.store import Store
from ..admission import AdmissionControl, SorterActor
from ..merge import ReadRuns, RunsRead
from ..run import SortRun
from ..tier import Tier
from .layout import Layout


class Reader(SorterActor[ReadRuns]):
    """Reads runs from one store, which may be written concurrently. Raises StoreError."""

    def __init__(self, gate: AdmissionControl, store: Store, layout: Layout, tier: Tier) -> None:
        super().__init__(gate)
        self._store = store
        self._layout = layout
        self._tier = tier

    def on_receive(self, message: ReadRuns) -> None:
        self.send(message.reply_to, RunsRead([self._read(run) for run in message.runs]))

    def _read(self, run: SortRun) -> tuple[SortRun, Block]:
        place = run.place
        assert place is not None
        try:
            block = self._layout.get(self._store, run, place)
        except StoreError as error:
            raise StoreError(
                f"{run} can't be read back from {self._store.path} ({place.window.name}): {error}"
            ) from error
        self._tier.read(run)
        return run, block
