"""UTC offsets: of a session's time zone, and of the server's own."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct

from ...errors import SourceError

_WEEK: Final = 7 * 86400
_WEEKS: Final = 60
_OFFSET: Final = re.compile(r"([+-])(\d+):(\d+)")

SAMPLES_QUERY: Final = f"""
WITH RECURSIVE week (moment) AS (
  SELECT UNIX_TIMESTAMP() - {_WEEKS * _WEEK}
  UNION ALL SELECT moment + {_WEEK} FROM week WHERE moment < UNIX_TIMESTAMP() + {_WEEKS * _WEEK})
SELECT moment, TIMESTAMPDIFF(
  SECOND, FROM_UNIXTIME(moment), CONVERT_TZ(FROM_UNIXTIME(moment), '+00:00', 'SYSTEM')) FROM week
"""
"""A query for a session in UTC. A server can't tell the full name of its own zone, only its local time."""


class ServerZone(Struct, frozen=True):
    """The server's own time zone, as a list of sampled offsets."""

    samples: tuple[tuple[int, int], ...] = ((0, 0),)
    """(Unix seconds, UTC offset in seconds), ascending."""

    @property
    def name(self) -> str:
        return "SYSTEM" if any(offset for _, offset in self.samples) else "+00:00"

    def offset_at(self, epoch_seconds: int) -> int | None:
        """Return the offset in seconds. None within a week of a change of the clock, and outside of the
        samples if it ever changes."""
        behind = [offset for moment, offset in self.samples if moment <= epoch_seconds][-1:]
        ahead = [offset for moment, offset in self.samples if moment >= epoch_seconds][:1]
        near = {*behind, *ahead} if behind and ahead else {offset for _, offset in self.samples}
        return near.pop() if len(near) == 1 else None


def offset_of(zone: str, epoch_seconds: int) -> int:
    """Return the UTC offset of a session's time zone. Raises SourceError for a zone that isn't known here."""
    if match := _OFFSET.fullmatch(zone):
        seconds = int(match[2]) * 3600 + int(match[3]) * 60
        return -seconds if match[1] == "-" else seconds
    try:
        offset = datetime.fromtimestamp(epoch_seconds, ZoneInfo(zone)).utcoffset()
    except (ZoneInfoNotFoundError, ValueError):
        raise SourceError(
            f"a statement was run in the time zone {zone!r}, which isn't known here: install tzdata"
        ) from None
    return int(offset.total_seconds()) if offset else 0
