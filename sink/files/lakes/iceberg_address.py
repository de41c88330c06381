"""URLs of Iceberg tables: iceberg+sql:///directory?option=value, iceberg+rest://host:port?option=value."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from ....config import with_query
from ....config.url import redacted
from ....errors import ConfigError
from ..address import NOT_IN_URLS, BucketAddress, bucket_of
from .iceberg_options import CatalogOptions, IcebergBucketOptions, IcebergOptions

SQL_EXAMPLE: Final = "iceberg+sql:///var/lake"
REST_EXAMPLE: Final = "iceberg+rest://host:8181/path?location=s3://bucket/prefix"
_SQLITE: Final = "catalog.db"


class CatalogAddress(NamedTuple):
    """A catalog, and how it is reached."""

    is_rest: bool
    url: str
    """URL of a REST catalog, or of a database with its password."""
    options: CatalogOptions


class IcebergAddress(NamedTuple):
    catalog: CatalogAddress
    place: BucketAddress | Path
    """Prefix or directory of the tables."""
    options: IcebergOptions | IcebergBucketOptions
    """All options, with those in the URL."""


def iceberg_of(url: str, options: IcebergOptions | IcebergBucketOptions) -> IcebergAddress:
    """Return the catalog, the place of the tables, and the options with those in the URL. Raises
    ConfigError."""
    parts = urlsplit(url)
    if parts.fragment:
        raise ConfigError(f"{redacted(url)!r} has a #: write %23 for one in a name")
    options = with_query(options, parts.query, NOT_IN_URLS)
    scheme = parts.scheme.partition("+")[2]
    if scheme == "sql":
        directory = _directory(url, options)
        catalog = _sql(directory, options)
    elif scheme:
        directory = None
        catalog = _rest(url, "https" if scheme == "rests" else "http", options)
    else:
        raise ConfigError(
            f"{redacted(url)!r} names no kind of catalog; accepted: {SQL_EXAMPLE}, {REST_EXAMPLE}"
        )
    return IcebergAddress(catalog, _place(options, directory), options)


def is_in_bucket(url: str, options: Mapping[str, Any]) -> bool:
    """Return True if the URL or the raw options place the tables in a bucket."""
    location = options.get("location") or parse_qs(urlsplit(url).query).get("location", [""])[-1]
    return str(location).startswith("s3:")


def _directory(url: str, options: CatalogOptions) -> Path | None:
    """Return the directory of iceberg+sql; None if the URL has none because the options say all."""
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.netloc or (not path.strip("/") and not (options.catalog and options.location)):
        raise ConfigError(f"{redacted(url)!r} names no directory; for instance {SQL_EXAMPLE}")
    return Path(path).absolute().resolve() if path.strip("/") else None


def _sql(directory: Path | None, options: CatalogOptions) -> CatalogAddress:
    if options.rest_only:
        raise ConfigError(f"{options.rest_only[0]} goes with iceberg+rest: leave it out")
    return CatalogAddress(False, options.catalog or f"sqlite:///{directory}/{_SQLITE}", options)


def _rest(url: str, scheme: str, options: CatalogOptions) -> CatalogAddress:
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise ConfigError("the URL has a user: give token or credential as an option instead")
    if not parts.hostname:
        raise ConfigError(f"{redacted(url)!r} names no host; for instance {REST_EXAMPLE}")
    if options.catalog:
        raise ConfigError("catalog goes with iceberg+sql: leave it out")
    if scheme == "http" and options.catalog_ca:
        raise ConfigError("catalog_ca goes with iceberg+rests, which is REST over TLS")
    if not options.location:
        raise ConfigError(f"location is missing, the place of the tables; for instance {REST_EXAMPLE}")
    return CatalogAddress(True, f"{scheme}://{parts.netloc}{parts.path}".rstrip("/"), options)


def _place(options: IcebergOptions | IcebergBucketOptions, directory: Path | None) -> BucketAddress | Path:
    if not options.location and directory is not None:
        return directory
    parts = urlsplit(options.location)
    if not parts.query and not parts.fragment:
        if isinstance(options, IcebergBucketOptions):
            return bucket_of(options.location, options)[0]
        if parts.scheme in ("", "file", "directory") and not parts.netloc and parts.path.strip("/"):
            return Path(unquote(parts.path)).absolute().resolve()
    raise ConfigError(f"location = {redacted(options.location)!r}: a directory, or s3://bucket/prefix")
