"""Sections of a feed.toml that are about captures and Spark, and a feed with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ..config import build
from ..engine.options import FeedOptions, built_feed
from .capture.options import CaptureOptions
from .reading import reading_of_kind
from .run.options import SECTION, SparkOptions

CAPTURE: Final = "capture"
_NO_FLAGS: Final[Mapping[str, object]] = {}


@dataclass(frozen=True, kw_only=True)
class SparkSections:
    """Sections of the commands that need Arrow or Spark."""

    capture: CaptureOptions = field(default_factory=CaptureOptions)
    """Options of `tidemill capture`."""
    spark: SparkOptions = field(default_factory=SparkOptions)
    """Options of `tidemill run --engine spark`, `tidemill backfill` and other commands that start Spark."""


@dataclass(frozen=True, kw_only=True)
class SparkFeedOptions(SparkSections, FeedOptions):
    """A feed that captures and Spark read."""


def spark_options(document: Mapping[str, object], flags: Mapping[str, object] = _NO_FLAGS) -> SparkOptions:
    """Return the options in the table `[spark]` of a feed.toml, overridden by the flags that aren't None.

    Raises ConfigError.
    """
    section = _overridden(document, SECTION, flags).get(SECTION, {})
    return build(SparkSections, {SECTION: section}, "").spark


def spark_feed(document: Mapping[str, object], flags: Mapping[str, object] = _NO_FLAGS) -> SparkFeedOptions:
    """Return a feed's options, with the table `[spark]` overridden by the flags that aren't None.

    Raises ConfigError.
    """
    return built_feed(SparkFeedOptions, _overridden(document, SECTION, flags))


def capture_feed(document: Mapping[str, object], flags: Mapping[str, object] = _NO_FLAGS) -> SparkFeedOptions:
    """Return the options of a capture's feed, without its sinks, with the table `[capture]` overridden by the
    flags that aren't None.

    Raises ConfigError.
    """
    rest = {key: value for key, value in document.items() if key not in ("sink", "until", "verify")}
    options = built_feed(SparkFeedOptions, _overridden(rest, CAPTURE, flags))
    options.reject_local_only("a capture")
    reading_of_kind(options.source.kind)
    return options


def _overridden(
    document: Mapping[str, object], name: str, flags: Mapping[str, object]
) -> Mapping[str, object]:
    """Return the tables of a feed.toml, with the keys of one overridden by the flags that aren't None."""
    overrides = {key: _plain(value) for key, value in flags.items() if value is not None}
    section = document.get(name, {})
    if not overrides or not isinstance(section, Mapping):
        return document
    for key, before in section.items():
        if isinstance(before, Mapping) and isinstance(inner := overrides.get(key), Mapping):
            overrides[key] = {**before, **inner}
    return {**document, name: {**section, **overrides}}


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Path) else value
