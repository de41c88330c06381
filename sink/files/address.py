"""URLs of files: s3://bucket/prefix?option=value, directory:///path?option=value, file:///path?option=value."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

from ...config import with_query
from ...config.url import redacted
from ...errors import ConfigError
from .options import BucketAccess

A = TypeVar("A", bound=BucketAccess)
D = TypeVar("D")

BUCKET_EXAMPLE: Final = "s3://bucket/prefix"
DIRECTORY_EXAMPLE: Final = "directory:///var/rows"
FILE_EXAMPLE: Final = "file:///var/rows.ndjson"
ARCHIVE_EXAMPLE: Final = "parquet:///var/rows"
DELTA_EXAMPLE: Final = "delta:///var/lake"

NOT_IN_URLS: Final = frozenset(
    {"encoding", "access_key", "secret_key", "session_token", "catalog", "token", "credential"}
)
"""Options that a URL can't contain: tables, and secrets, as URLs are shown."""


class BucketAddress(NamedTuple):
    bucket: str
    prefix: str
    """Folder of the feed in the bucket, without slashes around it; may be empty."""

    @property
    def root(self) -> str:
        return f"{self.bucket}/{self.prefix}" if self.prefix else self.bucket


def bucket_of(url: str, options: A) -> tuple[BucketAddress, A]:
    """Return the address, and the options with those in the URL. Raises ConfigError."""
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise ConfigError("the URL has a user: give access_key and secret_key as options instead")
    if not parts.netloc or parts.fragment:
        raise ConfigError(f"the URL names no bucket; for instance {BUCKET_EXAMPLE}")
    prefix = "/".join(part for part in unquote(parts.path).split("/") if part)
    return BucketAddress(parts.netloc, prefix), with_query(options, parts.query, NOT_IN_URLS)


def directory_of(url: str, options: D) -> tuple[Path, D]:
    """Return the directory, and the options with those in the URL. Raises ConfigError."""
    parts = urlsplit(url)
    if parts.scheme in ("directory", "delta") and (parts.netloc or not parts.path.strip("/")):
        example = DELTA_EXAMPLE if parts.scheme == "delta" else DIRECTORY_EXAMPLE
        raise ConfigError(f"{redacted(url)!r} names no directory; for instance {example}")
    path, options = path_of(url, options, ARCHIVE_EXAMPLE)
    return path.absolute().resolve(), options


def path_of(url: str, options: D, example: str) -> tuple[Path, D]:
    """Return the path, which may be relative, and the options with those in the URL. Raises ConfigError."""
    parts = urlsplit(url)
    path = unquote(parts.netloc + parts.path)
    if not path:
        raise ConfigError(f"{redacted(url)!r} names no file; for instance {example}")
    if parts.fragment:
        raise ConfigError(f"{redacted(url)!r} has a #: write %23 for one in a name")
    return Path(path), with_query(options, parts.query, NOT_IN_URLS)
