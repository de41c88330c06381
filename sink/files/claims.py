"""Stores of claim checks: messages that are too large for another target, each an object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from ...config import Finding, build
from ...config.survey import writable_directory
from ...errors import ConfigError
from ...events import Wait
from ...failpoint import reach
from ..encoding.options import LargeOptions
from .address import BUCKET_EXAMPLE, DIRECTORY_EXAMPLE, BucketAddress, bucket_of, directory_of
from .options import BucketAccess
from .store import Store, in_parallel

_URI: Final = "claim-check-storage-uri"
_OPTIONS: Final = "claim-check-storage-options"
_PARALLEL: Final = 8
"""Number of objects that are written at once."""


class Claims:
    """The claim checks of one sink. Called only by its sink, `waits` by any thread."""

    def __init__(self, store: Store, root: str, now: Callable[[], float]) -> None:
        """`root` is the URL of the store's objects."""
        self._store: Final = store
        self._root: Final = root
        self._now: Final = now
        self._waiting_since: float | None = None

    def check(self) -> None:
        """Raise SinkError if the store can't be used, Retryable if it doesn't answer."""
        self._store.check()

    def location(self, name: str) -> str:
        return f"{self._root}/{name}"

    def keep(self, objects: Mapping[str, bytes]) -> None:
        """Write objects durably; see `encoding.claims.ClaimStore`."""
        self._waiting_since = self._now()
        try:
            in_parallel(_PARALLEL, self._write, list(objects.items()))
        finally:
            self._waiting_since = None
        reach("claims.kept")

    def _write(self, named: tuple[str, bytes]) -> None:
        self._store.write(*named)

    def waits(self, stage: str) -> list[Wait]:
        """Return the wait for the store, of a part of this name."""
        since = self._waiting_since
        return [] if since is None else [Wait(stage, "answer", self._now() - since, on=self._store.name)]


@dataclass(frozen=True, slots=True)
class _NoOptions:
    """Options of a directory."""


class _Place(NamedTuple):
    """A bucket and how it is reached, or a directory."""

    bucket: tuple[BucketAddress, BucketAccess] | None
    directory: Path


def claims_of(options: LargeOptions, now: Callable[[], float]) -> Claims:
    """Return the store that an encoding's options name. Raises ConfigError."""
    place = _place(options)
    if place.bucket is None:
        from .directory import Directory

        return Claims(Directory(place.directory), place.directory.as_uri(), now)
    try:
        from .bucket import Bucket
    except ImportError as error:
        raise ConfigError(f"encoding.{_URI}: an object store needs: pip install 'tidemill[s3]'") from error
    return Claims(Bucket(*place.bucket), f"s3://{place.bucket[0].root}", now)


def survey_claims(options: LargeOptions, now: Callable[[], float]) -> Finding:
    """Return a finding: can claim checks be stored? Changes nothing; raises TidemillError if the store can't
    be used."""
    place = _place(options)
    if place.bucket is None:
        return writable_directory(place.directory)
    claims_of(options, now).check()
    return Finding("ok", f"bucket {place.bucket[0].bucket!r} for claim checks is there")


def _place(options: LargeOptions) -> _Place:
    uri = options.claim_check_storage_uri
    settings: dict[str, object] = {
        name.replace("-", "_"): value for name, value in options.claim_check_storage_options.items()
    }
    scheme = uri.partition(":")[0]
    if settings and scheme != "s3":
        raise ConfigError(f"encoding.{_OPTIONS}: only an object store has options")
    access = build(BucketAccess, settings, f"encoding.{_OPTIONS}")
    try:
        match scheme:
            case "s3":
                return _Place(bucket_of(uri, access), Path())
            case "directory" | "file":
                return _Place(None, directory_of(uri, _NoOptions())[0])
    except ConfigError as error:
        raise ConfigError(f"encoding.{_URI}: {error}") from error
    raise ConfigError(
        f"encoding.{_URI} = {uri!r}: accepted are {BUCKET_EXAMPLE}, {DIRECTORY_EXAMPLE} and file:///var/rows"
    )
