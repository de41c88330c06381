"""The source's options, from those of a reader."""

from __future__ import annotations

from typing import Any

from ..read.options import ReadOptions


def source_options(options: ReadOptions) -> Any:
    """Raises ConfigError."""
    return options.source_options
