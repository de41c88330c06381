"""Differences that a verification finds: reported in a file, and repaired."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ..actors import Clock
from ..dialects.read import Key, Reader, Settled
from ..errors import SinkError, StoreError
from ..failpoint import reach
from .finding import Difference, difference_of
from .report import json_of, keys_of
from .table import TableComparison

log = logging.getLogger("tidemill")

ATTEMPTS: Final = 3
"""Number of times that a row is written if it differs again: the source may have changed it meanwhile."""


class Repairs:
    """Lines as `tidemill diff --json` prints them: each difference once it is found, and again with
    `repaired` after the attempt to repair it."""

    def __init__(self, path: Path, whom: str, clock: Clock) -> None:
        self._path = path
        self._whom = whom
        self._clock = clock

    def found(self, differences: Sequence[Difference]) -> None:
        """Raises StoreError."""
        self._add([json_of(one, time=self._clock.time()) for one in differences])

    def repair(
        self, target: Reader, comparison: TableComparison, differing: Sequence[Settled]
    ) -> tuple[int, list[Settled], bool]:
        """Write rows again; return the number of repaired ones, those that still differ, and False if the
        target is too late to tell.

        A row that the feed has changed since it was read stays as it is. After each attempt all rows are
        compared again, as a change of the source may have come between the reading and the repair. Raises
        Retryable and StoreError.
        """
        table, written, left, is_certain = comparison.table, set[Key](), list(differing), True
        keys = [one.key for one in differing]
        for _ in range(ATTEMPTS):
            for one in left:
                try:
                    if target.apply(table, one):
                        written.add(one.key)
                        reach("verify.repaired")
                except SinkError as error:
                    log.warning("%s: a row of %s isn't repaired: %s", self._whom, table.full_name, error)
            left = comparison.settled(keys)
            is_certain = all(one.is_certain for one in left)
            if not left or not is_certain:
                break
        if is_certain:
            written -= {one.key for one in left}
        tried = [(difference_of(table, settled), settled.key in written) for settled in differing]
        now = self._clock.time()
        self._add([json_of(row, time=now, repaired=is_done) for row, is_done in tried])
        for row, is_done in tried:
            if is_done:
                log.warning("%s: repaired %s %s, %s", self._whom, row.table, keys_of(row.key), row.kind)
        return len(written), left, is_certain

    def _add(self, lines: Sequence[str]) -> None:
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in lines)
        except OSError as error:
            raise StoreError(f"{self._path} can't be written: {error.strerror}") from error
