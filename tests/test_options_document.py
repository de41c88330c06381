"""docs/options.md describes every key of a feed.toml as it is declared."""

from __future__ import annotations

from pathlib import Path

from tidemill.config.reference import reference
from tidemill.spark.sections import SparkFeedOptions

DOCUMENT = Path(__file__).parents[1] / "docs" / "options.md"


def test_the_document_is_that_of_the_declarations(rewrite):
    made = reference(SparkFeedOptions, "Keys of a feed.toml")
    if rewrite:
        DOCUMENT.write_text(made)
    assert DOCUMENT.read_text() == made
