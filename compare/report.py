"""A comparison on a terminal and in files: its findings as lines, its progress, its script of repairs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TextIO

import msgspec
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from ..actors import Clock, SystemClock
from ..config.printable import printable
from ..errors import ConfigError
from .diff import Diff
from .finding import Difference, Finding, TableResult

_PLAIN_SECONDS: Final = 10.0
"""Pause between lines of progress where there is no terminal."""
_MOST_CHARS: Final = 200


def json_of(finding: Finding, **more: object) -> str:
    """Return a finding as one JSON object; bytes and other values that JSON lacks are text."""
    return msgspec.json.encode({**object_of(finding), **more}).decode()


def object_of(finding: Finding) -> dict[str, object]:
    """Return a finding as an object of JSON; bytes and other values that JSON lacks are text."""
    kind = "difference" if isinstance(finding, Difference) else "table"
    return {"type": kind} | {name: _plain(getattr(finding, name)) for name in finding.__struct_fields__}


def line_of(finding: Finding) -> str:
    """Return a finding as a line for people; control characters are escapes."""
    return printable(_difference(finding) if isinstance(finding, Difference) else _table(finding))


def _difference(one: Difference) -> str:
    where = f"{one.table} {keys_of(one.key)}"
    times = f" {one.count} times" if one.count > 1 else ""
    late = "" if one.settled else " (not settled: the target may only be late)"
    if one.kind == "changed":
        assert one.source is not None
        assert one.target is not None
        parts = [
            f"{name} is {shown(value)} in the source, {shown(one.target[name])} in the target"
            for name, value in one.source.items()
        ]
        return f"{where}: {'; '.join(parts)}{late}"
    what = "missing in the target" if one.kind == "missing" else "only in the target"
    return f"{where}: {what}{times}{late}"


def _table(one: TableResult) -> str:
    if one.state in ("loading", "missing", "extra", "not comparable"):
        return f"{one.table}: {one.detail}"
    said = [f"{one.rows:,} rows"]
    if one.differences:
        kinds = [f"{getattr(one, kind):,} {kind}" for kind in ("missing", "extra", "changed")]
        said.append(f"{one.differences:,} differences ({', '.join(kinds)})")
    else:
        said.append("no differences")
    if one.unsettled:
        said.append(f"{one.unsettled:,} not settled")
    if one.moving:
        said.append(f"{one.moving:,} rows changed all the time and weren't compared")
    if one.detail:
        said.append(one.detail)
    return f"{one.table}: {', '.join(said)}"


def keys_of(values: Mapping[str, object]) -> str:
    """Return a row's key for people: "a=1, b='x'"."""
    return ", ".join(f"{name}={shown(value)}" for name, value in values.items())


def shown(value: object) -> str:
    """Return a value for people, cut if it is long."""
    text = "NULL" if value is None else f"x'{value.hex()}'" if isinstance(value, bytes) else None
    if text is None:
        text = repr(value) if isinstance(value, (int, float, str)) else str(value)
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return str(value).encode("utf-8", "backslashreplace").decode()


class DiffProgress:
    """A bar on a terminal, a line now and then elsewhere; a context manager."""

    def __init__(self, stream: TextIO, clock: Clock | None = None) -> None:
        self._stream = stream
        self._clock = clock or SystemClock()
        self._shown_at = self._began = self._clock.now()
        self._table = ""
        self._bar: Bar | None = None
        if stream.isatty():
            self._bar = Bar(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.completed:,} of about {task.total:,} rows"),
                TimeRemainingColumn(),
                console=Console(file=stream),
                transient=True,
            )
            self._task = self._bar.add_task("", total=0)

    def show(self, diff: Diff) -> None:
        now = self._clock.now()
        if diff.table != self._table:
            self._table, self._began, self._shown_at = diff.table, now, now
            if self._bar is not None:
                self._bar.reset(self._task)
        total = max(diff.rows, diff.rows_estimated)
        if self._bar is not None:
            text = f"{printable(diff.table)} ({diff.tables_done + 1} of {diff.tables_in_all})"
            self._bar.update(self._task, description=text, completed=diff.rows, total=total)
        elif now - self._shown_at >= _PLAIN_SECONDS:
            self._shown_at = now
            left = (now - self._began) / diff.rows * (total - diff.rows) if diff.rows else 0.0
            rest = f", {left:.0f} s left" if diff.rows_estimated else ""
            shown = printable(diff.table)
            print(f"{shown}: {diff.rows:,} of about {total:,} rows{rest}", file=self._stream, flush=True)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


class Script:
    """A file of repairs, in transactions; a context manager."""

    def __init__(self, path: Path, begin: list[str]) -> None:
        """Raises ConfigError if the file can't be written."""
        self._count = 0
        self._begin = begin
        try:
            self._file = path.open("w", encoding="utf-8", errors="surrogateescape", newline="\n")
        except OSError as error:
            raise ConfigError(f"--fix: {path}: {error.strerror}") from None

    def add(self, statements: list[str]) -> None:
        """Add the statements of one row."""
        if self._count % _SCRIPT_ROWS == 0:
            self._write(["COMMIT"] if self._count else self._begin)
            self._write(["BEGIN"])
        self._count += 1
        self._write(statements)

    def _write(self, statements: list[str]) -> None:
        self._file.writelines(f"{statement};\n" for statement in statements)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._count:
            self._write(["COMMIT"])
        self._file.close()


_SCRIPT_ROWS: Final = 100
"""Number of rows that a transaction of a script repairs."""
