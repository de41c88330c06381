"""Division of a time span into columns of a picture."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

MOST: Final = 60
"""Maximum number of columns."""
_DAY: Final = 1440
_WIDTHS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, _DAY)


class Buckets(Struct, frozen=True):
    """Columns of `width` minutes each, which begin at multiples of it."""

    first: int
    """First minute, since 1970."""
    width: int
    count: int

    def of(self, minute: int) -> int:
        return (minute - self.first) // self.width

    @property
    def unit(self) -> str:
        """The width for people, such as "5 minutes"."""
        for minutes, name in ((_DAY, "day"), (60, "hour"), (1, "minute")):
            if self.width % minutes == 0:
                number = self.width // minutes
                return name if number == 1 else f"{number} {name}s"
        raise AssertionError

    @property
    def labels(self) -> list[str]:
        """The begin of each column in UTC, with the day if there are several."""
        span = self.count * self.width
        form = "%H:%M" if span <= _DAY else "%m-%d %H:%M" if self.width < _DAY else "%Y-%m-%d"
        starts = [self.first + number * self.width for number in range(self.count)]
        return [f"{datetime.fromtimestamp(minute * 60, UTC):{form}}" for minute in starts]


def buckets(minutes: Iterable[int]) -> Buckets:
    """Return at most MOST columns for these minutes; none for no minutes."""
    times = [*minutes]
    if not times:
        return Buckets(0, 1, 0)
    first, last = min(times), max(times)
    for width in _WIDTHS:
        if (count := last // width - first // width + 1) <= MOST:
            return Buckets(first // width * width, width, count)
    days = -(-(last // _DAY - first // _DAY + 1) // MOST)
    begin = first // _DAY * _DAY
    return Buckets(begin, days * _DAY, (last - begin) // (days * _DAY) + 1)
