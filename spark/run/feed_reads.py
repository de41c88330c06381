"""A feed's source as options of the data source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...engine.options import FeedOptions
from ..read.options import SOURCE_PREFIX

_SAID_OTHERWISE: Final = ("url", "tables", "snapshot", "start_ts", "position", "server_id")
"""Of a feed's source section: or of no use to tasks, each of which is a replica of its own."""


def feed_reads(section: Mapping[str, Any], options: FeedOptions) -> dict[str, str]:
    """`section` is the source's of the feed.toml that `options` were made of."""
    source = {
        SOURCE_PREFIX + key: _text(value) for key, value in section.items() if key not in _SAID_OTHERWISE
    }
    patterns = ",".join(options.tables.patterns)
    return {"source": section["url"], "tables": patterns, "name": options.name, **source}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
