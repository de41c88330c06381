"""Errors that requests get instead of an answer, by region."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from ..region import Region
from .region_errors import FEED_WORDS, KV_WORDS, WORDS


class Charge(Struct):
    """Errors to come: `times` more requests of one kind fail with `word`."""

    word: str
    times: int
    kind: str


class Injected:
    """The errors to inject. To be used in the loop's thread only."""

    def __init__(self) -> None:
        self._charges: dict[int, list[Charge]] = {}
        self.hits: Counter[str] = Counter()
        """Number of errors returned, by word."""

    def fail_next(self, region: int, word: str, times: int = 1, kind: str = "") -> None:
        """Make the next requests for a region fail; `kind` is "kv", "feed" or "" for both.

        Raises ValueError for a word that isn't an answer to requests of this kind.
        """
        fit = {"kv": KV_WORDS, "feed": FEED_WORDS, "": WORDS}
        if kind not in fit or word not in fit[kind]:
            known = ", ".join(fit.get(kind, WORDS))
            raise ValueError(f"fail_next: no error {word!r} of kind {kind!r}; there are: {known}")
        if not kind and word not in KV_WORDS:
            kind = "feed"
        elif not kind and word not in FEED_WORDS:
            kind = "kv"
        self._charges.setdefault(region, []).append(Charge(word, times, kind))

    def take(self, kind: str, region: Region | None) -> str | None:
        """Return the word with which a request must fail now; None if it may continue."""
        charges = self._charges.get(region.id) if region is not None else None
        charge = next((each for each in charges or () if each.kind in ("", kind)), None)
        if charge is None or charges is None:
            return None
        charge.times -= 1
        if not charge.times:
            charges.remove(charge)
        self.hits[charge.word] += 1
        return charge.word

    def waiting(self) -> int:
        """Return the number of requests that are still to fail."""
        return sum(charge.times for charges in self._charges.values() for charge in charges)
