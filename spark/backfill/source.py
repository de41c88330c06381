"""The source's options, from those of a reader."""

from __future__ import annotations

from pathlib import Path

from ...puller.mysql.options import MysqlOptions
from ...puller.tikv.options import TikvOptions
from ..read.options import ReadOptions
from ..read.parts import WHOLE


def source_options(options: ReadOptions) -> MysqlOptions | TikvOptions:
    """Raises ConfigError."""
    return options.feed(Path(), WHOLE).source
