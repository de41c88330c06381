"""Preflight checks of a DuckDB target."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import URL

from ...codec.checkpoint import decode_checkpoint
from ...config import Finding
from ...dialects.duckdb.duckdb import DuckDbTarget
from ...dialects.options import DuckDbOptions
from ...dialects.target import CHECKPOINT_TABLE
from ..survey import begins, writable_file


def survey_duckdb(url: URL, options: DuckDbOptions, feed: str) -> Iterator[Finding]:
    """Yield findings about a file, which isn't created."""
    target = DuckDbTarget(url, feed, options)
    yield writable_file(target.session.path)
    if not target.session.path.exists():
        yield begins(None)
        return
    try:
        target.session.connect()
        stored = target.load_checkpoint() if target.own_tables.has(CHECKPOINT_TABLE) else None
        yield begins(None if stored is None else decode_checkpoint(stored, CHECKPOINT_TABLE)[0])
    except Exception as error:
        if (explained := target.explain(error, "connecting")) is None:
            raise
        yield Finding("error", str(explained))
    finally:
        target.close()
