"""The content of a drainer's checkpoint, as JSON in a table and as TOML in a file."""

from __future__ import annotations

import tomllib
from typing import Final

import msgspec
from msgspec import Struct

from ...errors import CheckpointError

PRIMARY: Final = "primary-ts"
SECONDARY: Final = "secondary-ts"
_OLD_KEYS: Final = {"master-ts": PRIMARY, "slave-ts": SECONDARY}
"""Names in the ts-map of versions before 5.2."""


class DrainerState(
    Struct,
    frozen=True,
    kw_only=True,
    rename={"commit_ts": "commitTS", "ts_map": "ts-map", "schema_version": "schema-version"},
):
    """The order and names of the fields in JSON are those of TiDB-Binlog's newest version."""

    consistent: bool = False
    """True if the target is consistent at the commit ts; False while changes after it may be applied too."""
    commit_ts: int = 0
    """Everything up to this commit ts is applied; 0: no checkpoint yet."""
    ts_map: dict[str, int] | None = None
    """PRIMARY and SECONDARY: a ts of the source, and one of the target at which it had the same rows."""
    schema_version: int = 0


def to_json(state: DrainerState) -> str:
    return msgspec.json.encode(_with_map(state)).decode()


def from_json(text: str, where: str) -> DrainerState:
    """Parse a checkpoint of any version. Raises CheckpointError, naming the location `where`."""
    try:
        return _with_map(msgspec.json.decode(text, type=DrainerState))
    except msgspec.DecodeError as error:
        raise CheckpointError(_damaged(where, error)) from None


def to_toml(state: DrainerState) -> str:
    """Return the file form, which has no ts-map."""
    return (
        f"consistent = {str(state.consistent).lower()}\n"
        f"commitTS = {state.commit_ts}\n"
        f"schema-version = {state.schema_version}\n"
    )


def from_toml(text: str, where: str) -> DrainerState:
    """Parse a checkpoint of any version. Raises CheckpointError, naming the location `where`."""
    try:
        fields: dict[str, object] = tomllib.loads(text)
        return _with_map(msgspec.convert(fields, DrainerState))
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise CheckpointError(_damaged(where, error)) from None


def _with_map(state: DrainerState) -> DrainerState:
    renamed = {_OLD_KEYS.get(key, key): ts for key, ts in (state.ts_map or {}).items()}
    return msgspec.structs.replace(state, ts_map=renamed)


def _damaged(where: str, error: Exception) -> str:
    return f"{where} is not a checkpoint of a drainer ({error}): restore it, or remove it to begin again"
