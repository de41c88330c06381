"""Options of files, directories and object stores as targets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

from msgspec import Meta

from ...errors import ConfigError

LineFormat: TypeAlias = Literal["ndjson", "canal-json", "debezium", "maxwell", "csv", "simple", "parquet"]
FILE_FORMATS: Final[tuple[str, ...]] = get_args(LineFormat)
Mode: TypeAlias = Literal["history", "copy"]
_KEYLESS: Final = ("debezium", "maxwell", "simple")
"""Formats whose messages have no field for the key of a row."""
LAKES: Final = ("delta", "iceberg")
"""Layouts of tables that have metadata of their own."""
DATE_LENGTHS: Final = {"none": 0, "year": 4, "month": 7, "day": 10}
"""Letters of a day in ISO 8601 that name a folder, by `date_separator`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinesOptions:
    """Options of one file of lines. Raises ConfigError that names the accepted values."""

    format: LineFormat = "ndjson"
    """ndjson, an encoding (canal-json, debezium, maxwell, csv, simple), or parquet for an archive of
    Parquet files."""
    encoding: dict[str, Any] = field(default_factory=dict, repr=False)
    """Options of the encoding, as in `[sink.encoding]`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryOptions:
    """Options of folders of files. Raises ConfigError that names the accepted values."""

    format: Literal["parquet", "ndjson", "csv", "canal-json", "debezium", "maxwell", "simple"] = "parquet"
    """Format of the files."""
    file_bytes: Annotated[int, Meta(ge=1)] = 64 << 20
    """Bytes in memory, over all tables, at which files are written; Parquet files take about a fifth of that
    on disk."""
    flush_seconds: Annotated[float, Meta(ge=0)] = 60.0
    """Maximum time until rows are in files for readers."""
    journal_seconds: Annotated[float, Meta(ge=0)] = 60.0
    """Minimum pause between writes to the journal, after which rows are acknowledged that have yet to be in
    files. Rows that are enough for files meanwhile go there without the journal. There is none if this is as
    long as `flush_seconds`."""
    layout: Literal["tables", "ticdc", "delta", "iceberg"] = "tables"
    """Names of the files: by table and date, or as TiCDC names them; delta: a Delta table for each table,
    which has every change; iceberg: an Iceberg table, which needs the URL of a catalog."""
    encoding: dict[str, Any] = field(default_factory=dict, repr=False)
    """Options of the encoding, as in `[sink.encoding]`."""
    commit_rows: Annotated[int, Meta(ge=1)] = 200_000
    """Rows at which files are written, whatever their bytes: the feed keeps them in memory until then."""
    date_separator: Literal["none", "year", "month", "day"] = "day"
    """Folders of the layout "ticdc" by the UTC date of a row's commit ts."""
    file_index_width: Annotated[int, Meta(ge=6, le=20)] = 20
    """Digits of a file's number in the layout "ticdc"."""
    file_expiration_days: Annotated[int, Meta(ge=0)] = 0
    """Days that files of rows are kept, counted back from the checkpoint's; 0: forever. Needs folders by
    day."""
    row_key: bool = False
    """Add the row's source and number in its transaction to canal-json (in `_tidb`) and to csv of the layout
    "ticdc" (with the commit ts, as columns at the end); parquet, ndjson and other csv always have them."""
    parallel: Annotated[int, Meta(ge=1)] = 8
    """Number of files that are written at once."""

    @property
    def is_copy(self) -> bool:
        """True if tables have the present rows, not the changes."""
        return False

    @property
    def adds_columns(self) -> bool:
        """True if rows of csv have columns after those of their table."""
        return self.row_key and self.format == "csv" and self.layout == "ticdc"

    @property
    def file_format(self) -> str:
        """Form of the files, which can't change in a prefix."""
        if self.is_copy:
            return f"{self.format} for mode = copy"
        return "csv with row_key" if self.adds_columns else self.format

    def __post_init__(self) -> None:
        for option, default in (("date_separator", "day"), ("file_index_width", 20)):
            if self.layout != "ticdc" and getattr(self, option) != default:
                raise ConfigError(f'{option} goes with layout = "ticdc": give it too, or leave {option} out')
        if self.file_expiration_days and self.date_separator != "day":
            raise ConfigError('file_expiration_days needs date_separator = "day"')
        if self.layout in LAKES and self.format != "parquet":
            raise ConfigError(
                f'layout = "{self.layout}" has files of Parquet: leave format = "{self.format}" out'
            )
        if self.layout in LAKES and self.file_expiration_days:
            raise ConfigError(
                "file_expiration_days: rows of a lake's tables are removed by DELETE: leave it out"
            )
        if self.row_key and self.format in _KEYLESS:
            raise ConfigError(f"row_key: the format {self.format} has no place for a key: leave row_key out")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveOptions(DirectoryOptions):
    """Options of an archive of Parquet files. Raises ConfigError that names the accepted values."""

    format: Literal["parquet"] = "parquet"
    """Format of the files."""
    journal_seconds: Annotated[float, Meta(ge=0)] = 1.0
    """Minimum pause between writes to the journal, after which rows are acknowledged that have yet to be in
    files. Rows that are enough for files meanwhile go there without the journal. There is none if this is as
    long as `flush_seconds`."""
    commit_rows: Annotated[int, Meta(ge=1)] = 1_000_000
    """Rows at which files are written, whatever their bytes: the feed keeps them in memory until then. They
    are there as bytes of the source, not as Python objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaOptions(ArchiveOptions):
    """Options of Delta tables in a directory. Raises ConfigError that names the accepted values."""

    layout: Literal["delta"] = "delta"
    """A Delta table for each table of the source."""
    mode: Mode = "history"
    """history: every change of each table. copy: the present rows of each table by its primary key, with the
    columns of the source."""

    @property
    def is_copy(self) -> bool:
        return self.mode == "copy"


@dataclass(frozen=True, kw_only=True)
class BucketAccess:
    """Options by which an S3-compatible store is reached. Raises ConfigError that names the accepted
    values."""

    endpoint: str = ""
    """URL of a store other than Amazon's, such as "http://minio:9000"."""
    region: str = ""
    """Region of the bucket; empty: found out at Amazon, and us-east-1 elsewhere."""
    access_key: str = field(default="", repr=False)
    """Access key, with `secret_key`; empty: the environment, files and services where Amazon's tools look."""
    secret_key: str = field(default="", repr=False)
    """Its secret."""
    session_token: str = field(default="", repr=False)
    """Token of temporary keys."""
    role: str = ""
    """ARN of a role to assume."""
    path_style: bool = True
    """Name the bucket in the path of requests to an `endpoint`; False: in its host name."""
    tls_ca: str = ""
    """File of the CA certificates; empty: those of the system."""
    timeout_seconds: Annotated[float, Meta(ge=1)] = 10.0
    """Time without an answer after which a request is given up, and sent again later."""

    def __post_init__(self) -> None:
        if bool(self.access_key) != bool(self.secret_key):
            raise ConfigError("access_key and secret_key go together")
        if self.session_token and not self.access_key:
            raise ConfigError("session_token needs access_key and secret_key")
        if self.endpoint and not self.endpoint.startswith(("http://", "https://")):
            raise ConfigError(f"endpoint = {self.endpoint!r}: a URL, for instance http://minio:9000")


@dataclass(frozen=True, kw_only=True)
class BucketOptions(BucketAccess, DirectoryOptions):
    """Options of files in an S3-compatible store. Raises ConfigError that names the accepted values."""

    def __post_init__(self) -> None:
        DirectoryOptions.__post_init__(self)
        BucketAccess.__post_init__(self)


@dataclass(frozen=True, kw_only=True)
class DeltaBucketOptions(BucketOptions):
    """Options of Delta tables in an S3-compatible store. Raises ConfigError that names the accepted
    values."""

    format: Literal["parquet"] = "parquet"
    """Format of the files."""
    layout: Literal["delta"] = "delta"
    """A Delta table for each table of the source."""
    mode: Mode = "history"
    """history: every change of each table. copy: the present rows of each table by its primary key, with the
    columns of the source."""

    @property
    def is_copy(self) -> bool:
        return self.mode == "copy"
