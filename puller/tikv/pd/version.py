"""Which clusters are new enough."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from ....errors import SourceError
from ..topology import StoreInfo

_HASH: Final = re.compile(r"-[0-9]+-g[0-9a-f]{7,}(-dev)?")
_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+\S*)?")


class Version(Struct, frozen=True):
    """A semantic version; a pre-release comes before its release."""

    major: int
    minor: int
    patch: int
    pre: str = ""

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}" + (f"-{self.pre}" if self.pre else "")

    def __lt__(self, other: Version) -> bool:
        return self._order() < other._order()

    def _order(self) -> tuple[object, ...]:
        """Pre-releases by their dotted parts: numbers by value and before words, fewer before more."""
        parts = tuple((0, int(p), "") if p.isdecimal() else (1, 0, p) for p in self.pre.split("."))
        return self.major, self.minor, self.patch, not self.pre, parts


LEAST: Final = Version(5, 1, 0, "alpha")
"""Of TiKV and PD, as TiCDC 6.5's, which the puller document describes."""
BELOW: Final = Version(10, 0, 0)
"""As the newest TiCDC's: a further major version may change what is relied on."""


def parse(text: str) -> Version | None:
    """Of "v6.1.0-alpha-13-gabc1234-dirty": 6.1.0-alpha; None for what isn't a version.

    Builds of a commit carry its hash, and their kind (-dirty, -fips), which say nothing of the version.
    """
    clean = _HASH.sub("", text.strip()).removesuffix("-fips").removesuffix("-dirty")
    found = _VERSION.fullmatch(clean)
    if found is None:
        return None
    return Version(int(found[1]), int(found[2]), int(found[3]), found[4] or "")


def check(stores: Iterable[StoreInfo], members: Mapping[str, str] | None = None) -> Version:
    """The least version of the cluster's TiKV stores; TiFlash is no matter.

    `members` are PD's, by name; one that doesn't say its version passes. Raises SourceError for the
    first that is too old or too new, or whose version can't be read.
    """
    for name, text in (members or {}).items():
        if text:
            _checked("PD", name, text)
    versions = [
        _checked("TiKV", store.address, store.version)
        for store in stores
        if not store.tombstone and not store.tiflash
    ]
    if not versions:
        raise SourceError("the cluster has no TiKV store")
    return min(versions)


def _checked(what: str, where: str, text: str) -> Version:
    version = parse(text)
    if version is None:
        raise SourceError(f"{what} at {where} says it is version {text!r}, which is not one")
    if version < LEAST:
        raise SourceError(f"{what} {version} at {where} is too old: {LEAST} or later is needed")
    if not version < BELOW:
        raise SourceError(f"{what} {version} at {where} is too new: only versions before {BELOW} are known")
    return version
