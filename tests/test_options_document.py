"""docs/reference/options.md describes every option as it is declared."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tidemill.config.reference import PagePart, reference
from tidemill.dialects.mysql.url_options import UrlOptions
from tidemill.sink.encoding.encodings import ENCODINGS
from tidemill.sink.encoding.options import EncodingOptions
from tidemill.spark.read.options import ReadOptions
from tidemill.spark.sections import SparkFeedOptions
from tidemill.spark.write.options import WriteOptions

DOCUMENT = Path(__file__).parents[1] / "docs" / "reference" / "options.md"
PARTS: Final = (
    PagePart(
        "`[sink.encoding]`",
        "Options of the [encoding](encodings.md) that a sink's `format` names. All encodings have these; "
        "`_` in place of `-` is the same.",
        EncodingOptions,
        {f"`{name}`": encoding.options for name, encoding in ENCODINGS.items()},
    ),
    PagePart(
        "URLs of MariaDB and MySQL targets",
        "Options after the question mark: mysql://user:password@host:3306/?ssl_ca=ca.pem.",
        UrlOptions,
    ),
    PagePart(
        '`spark.read.format("tidemill")`',
        "Options of the data source for [reading](spark.md), besides `source.…`: keys of `[source]`, "
        "such as `source.ssl_ca`.",
        ReadOptions,
    ),
    PagePart(
        '`df.write.format("tidemill")`',
        "Options of the data source for [writing](spark-sinks.md), besides `sink.…`: keys of `[[sink]]`, "
        "such as `sink.schema`; `sink.encoding` is a JSON object.",
        WriteOptions,
    ),
)

NEXT: Final = """
## Next

- [Run a feed from a file](../how-to/feed-file.md), with an example.
- [Command line](command-line.md): the same as flags.
- Sources and targets with more words: [reference](index.md).
"""


def test_the_document_is_that_of_the_declarations(rewrite):
    made = reference(SparkFeedOptions, "Options", PARTS) + NEXT
    if rewrite:
        DOCUMENT.write_text(made)
    assert DOCUMENT.read_text() == made


def test_every_option_is_described():
    empty = [line for line in DOCUMENT.read_text().splitlines() if line.endswith("|  |")]
    assert empty == []
