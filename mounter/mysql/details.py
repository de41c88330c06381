"""Effects of a statement on a table's definition besides columns and the primary key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from ...events import Action, ChangeColumn, ChangeKey, Details, DropColumn, Index


def followed(details: Details, actions: Iterable[Action]) -> Details:
    """Return the details after changes of columns and the key, which the server applies to indexes too."""
    names: dict[str, str] = {}
    for action in actions:
        match action:
            case DropColumn(name):
                details = _without_column(details, name.lower())
            case ChangeColumn(name, column) if name != column.name:
                names[name.lower()] = column.name
            case ChangeKey(columns):
                details = replace(details, has_primary=bool(columns))
    return _with_names(details, names) if names else details


def _without_column(details: Details, low: str) -> Details:
    indexes: list[Index] = []
    for index in details.indexes:
        parts = tuple(part for part in index.parts if part.column.lower() != low)
        if parts:
            indexes.append(replace(index, parts=parts))
    columns = tuple(one for one in details.columns if one.name.lower() != low)
    unknown = details.unknown or ("the CHECKs after DROP COLUMN" if details.checks else "")
    return replace(details, indexes=tuple(indexes), columns=columns, unknown=unknown)


def _with_names(details: Details, names: Mapping[str, str]) -> Details:
    """Return the details after columns got other names, all at once; `names` are the new by the old ones."""

    def new(name: str) -> str:
        return names.get(name.lower(), name)

    indexes = tuple(
        replace(index, parts=tuple(replace(part, column=new(part.column)) for part in index.parts))
        for index in details.indexes
    )
    has_text = details.partitions or details.checks or any(one.check for one in details.columns)
    return replace(
        details,
        indexes=indexes,
        columns=tuple(replace(one, name=new(one.name)) for one in details.columns),
        references=tuple(tuple(map(new, columns)) for columns in details.references),
        unknown=details.unknown or ("expressions after a column got another name" if has_text else ""),
    )
