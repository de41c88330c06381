"""Versions of clusters that are supported."""

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
        """Return the sort key: pre-releases by their dotted parts, numbers by value and before words, fewer
        parts before more."""
        parts = tuple((0, int(p), "") if p.isdecimal() else (1, 0, p) for p in self.pre.split("."))
        return self.major, self.minor, self.patch, not self.pre, parts


LEAST: Final = Version(5, 1, 0, "alpha")
"""Oldest supported version of TiKV and PD: that of TiCDC 6.5, which the puller document describes."""
BELOW: Final = Version(10, 0, 0)
"""Version from which on clusters aren't supported, as in the newest TiCDC: a new major version may be
incompatible."""


def parse(text: str) -> Version | None:
    """Parse a version: "v6.1.0-alpha-13-gabc1234-dirty" is 6.1.0-alpha; None if it isn't a version.

    The commit hash and kind (-dirty, -fips) of a build are ignored.
    """
    clean = _HASH.sub("", text.strip()).removesuffix("-fips").removesuffix("-dirty")
    match = _VERSION.fullmatch(clean)
    if match is None:
        return None
    return Version(int(match[1]), int(match[2]), int(match[3]), match[4] or "")


def check(stores: Iterable[StoreInfo], members: Mapping[str, str] | None = None) -> Version:
    """Return the lowest version of the cluster's TiKV stores; TiFlash is ignored.

    `members` are PD's versions by name; a member without a version is accepted. Raises SourceError for the
    first one that is too old, too new or unreadable.
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
        raise SourceError(f"{what} at {where} reports {text!r}, which is not a version")
    if version < LEAST:
        raise SourceError(f"{what} {version} at {where} is too old: {LEAST} or later is needed")
    if not version < BELOW:
        raise SourceError(f"{what} {version} at {where} is too new: only versions before {BELOW} are known")
    return version
