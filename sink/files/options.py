"""Options of files as targets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class LinesOptions:
    """Options of a file of lines. Raises ConfigError that names the accepted values."""

    format: str = "ndjson"
    """ndjson, an encoding (canal-json, debezium, maxwell, csv, simple), or parquet for an archive of
    Parquet files."""
    encoding: dict[str, Any] = field(default_factory=dict, repr=False)
    """Options of the encoding, by the names in docs/encodings.md."""

    def __post_init__(self) -> None:
        if self.encoding and self.format in ("ndjson", "parquet"):
            raise ConfigError(f"encoding: the format {self.format} has no such options")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetOptions:
    """Raises ConfigError that names the accepted values."""

    format: str = "parquet"
    file_bytes: int = 64 << 20
    """Bytes in Arrow's memory layout, over all tables, at which files are written; about a fifth of that on
    disk. The sink uses as much memory."""
    flush_seconds: float = 60.0
    """Maximum time until rows are in files for readers."""
    journal_seconds: float = 1.0
    """Minimum pause between writes to the journal, after which rows are acknowledged that have yet to be in
    files. Rows that reach `file_bytes` meanwhile go to files without the journal."""

    def __post_init__(self) -> None:
        if self.file_bytes < 1:
            raise ConfigError(f"file_bytes = {self.file_bytes}: at least 1")
        for option in ("flush_seconds", "journal_seconds"):
            if getattr(self, option) < 0:
                raise ConfigError(f"{option} = {getattr(self, option):g}: at least 0")
