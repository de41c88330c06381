"""The source's options, from those of a reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..read.options import ReadOptions
from ..read.parts import WHOLE


def source_options(options: ReadOptions) -> Any:
    """Raises ConfigError."""
    return options.feed(Path(), WHOLE).source
