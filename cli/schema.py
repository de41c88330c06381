"""`tidemill schema`."""

from __future__ import annotations

import json

import typer

from .say import say


def add_commands(app: typer.Typer) -> None:
    @app.command()
    def schema() -> None:
        """Print the JSON Schema of a feed.toml, for editors.

        For instance: tidemill schema > feed.schema.json, and in the first line of the feed.toml
        "#:schema ./feed.schema.json".
        """
        from ..engine.schema import feed_schema
        from ..spark.capture.options import CaptureOptions
        from ..spark.run.options import SparkOptions

        text = json.dumps(feed_schema({"capture": CaptureOptions, "spark": SparkOptions}), indent=2)
        say(*text.splitlines())
