"""The pool of those who write and read the files."""

from __future__ import annotations

import os
from typing import Final

from msgspec import Struct

from ...actors import PooledRef
from ...codec.blocks import block_from_bytes
from ...errors import StoreError
from ...events import Block
from ..admission import AdmissionControl, SorterActor
from ..arrivals import WAKE, Wake
from ..merge import ReadRuns, RunsRead
from ..run import BlockLocation, SortRun
from ..tier import Tier
from .pool import BackEndPool, BackFile

FILE_BYTES: Final = 16 << 20
"""A file is full with this much, so that its space comes back soon after it is read."""


class FlushRuns(Struct, frozen=True):
    """To a FileWriter: put these sorted runs into a file."""

    runs: list[SortRun]


class FileWriter(SorterActor[FlushRuns]):
    """Appends runs to files. Waits for nobody but the disk. Raises StoreError."""

    def __init__(
        self, gate: AdmissionControl, tier: Tier, pool: BackEndPool, merger: PooledRef[Wake]
    ) -> None:
        super().__init__(gate)
        self._tier = tier
        self._pool = pool
        self._merger = merger
        self._file: BackFile | None = None

    def on_receive(self, message: FlushRuns) -> None:
        blocks = [run.block.to_bytes() for run in message.runs if run.block is not None]
        if blocks:
            self._write(message.runs, blocks)
        self._merger.offer(WAKE)  # it may wait for them; if it is full it looks anyway
        self._gate.open_if_possible()

    def _write(self, runs: list[SortRun], blocks: list[bytes]) -> None:
        data = b"".join(blocks)
        try:
            file = self._file = self._file or self._pool.file()
            at = self._pool.reserve(file, len(data))
            _write_all(file.descriptor, data, at)
        except OSError as error:
            where = self._file.path if self._file else "a new file"
            raise StoreError(f"the sorter can't write {where}: {error.strerror or error}") from error
        for run, block in zip(runs, blocks, strict=True):
            key = at.to_bytes(8, "big")
            self._tier.stored(run, BlockLocation(file, key, key, 1, len(block)))
            at += len(block)
        if file.bytes >= FILE_BYTES:
            file.is_full = True
            self._file = None


class FileReader(SorterActor[ReadRuns]):
    """Brings runs back from files. Raises StoreError."""

    def __init__(self, gate: AdmissionControl, tier: Tier, pool: BackEndPool) -> None:
        super().__init__(gate)
        self._tier = tier
        self._pool = pool

    def on_receive(self, message: ReadRuns) -> None:
        self.send(message.reply_to, RunsRead([self._read(run) for run in message.runs]))
        self._pool.sweep()

    def _read(self, run: SortRun) -> tuple[SortRun, Block]:
        place = run.place
        assert place is not None
        try:
            block = _load(place)
        except (OSError, StoreError) as error:
            raise StoreError(f"{run} can't be read back from {place.window.path}: {error}") from error
        self._tier.read(run)
        return run, block


def _load(place: BlockLocation) -> Block:
    data = os.pread(place.window.descriptor, place.bytes, int.from_bytes(place.lower, "big"))
    if len(data) < place.bytes:
        raise StoreError(f"{place.bytes - len(data)} bytes are missing")
    try:
        return block_from_bytes(data)
    except ValueError as error:
        raise StoreError(str(error)) from error


def _write_all(descriptor: int, data: bytes, offset: int) -> None:
    left = memoryview(data)
    while left:
        written = os.pwrite(descriptor, left, offset)
        left = left[written:]
        offset += written
