"""A feed's source as options of the data source."""

from __future__ import annotations

from typing import Any, Final

from ...engine.options import FeedOptions
from ..read.options import SOURCE_PREFIX

_SAID_OTHERWISE: Final = (
    "url", "tables", "snapshot", "snapshot_workers", "start_ts", "position", "server_id",
)  # fmt: skip
"""Fields of the source section that are passed as other options, or that tasks don't need."""


def feed_reads(options: FeedOptions) -> dict[str, str]:
    """Return the data source's options."""
    section = options.source.section
    source = {
        SOURCE_PREFIX + key: _text(value) for key, value in section.items() if key not in _SAID_OTHERWISE
    }
    patterns = ",".join(options.tables.patterns)
    return {"source": section["url"], "tables": patterns, "name": options.name, **source}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
