"""`tidemill schema`."""

from __future__ import annotations

import json

from .say import say


def schema() -> None:
    """Print the JSON Schema of a feed.toml, for editors.

    The first line of a feed.toml names it: "#:schema ./feed.schema.json".

        tidemill schema > feed.schema.json
    """
    from ..config.schema import document_schema
    from ..spark.sections import SparkFeedOptions

    text = json.dumps(document_schema(SparkFeedOptions, "A feed of tidemill"), indent=2)
    say(*text.splitlines())
