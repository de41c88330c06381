"""A feed's source as options of the data source."""

from __future__ import annotations

from ...engine.options import FeedOptions
from ..option_values import as_text
from ..read.options import OWN_OPTIONS, SOURCE_PREFIX


def feed_reads(options: FeedOptions) -> dict[str, str]:
    """Return the data source's options."""
    section = options.source.section
    source = {
        SOURCE_PREFIX + key: as_text(value)
        for key, value in section.items()
        if key != "url" and key not in OWN_OPTIONS
    }
    patterns = ",".join(options.tables.patterns)
    return {"source": section["url"], "tables": patterns, "name": options.name, **source}
