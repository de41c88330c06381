"""A running feed's status for people (a live panel on a terminal, log lines elsewhere) and machines."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping, Sequence
from typing import Any, Protocol, TextIO

import msgspec
import structlog
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ..config.printable import printable
from ..events import Wait
from .diagnosis import cause_of
from .sentences import divergence_sentence, sentence, verify_sentence
from .status import RUNNING, BackfillProgress, FeedStatus, SnapshotStatus
from .tables import TableStatus

LINE_SECONDS = 5.0
"""Pause between two plain log lines while only numbers change."""

_COLOURS = {
    "normal": "green",
    "finished": "green",
    "following": "green",
    "warning": "yellow",
    "paused": "yellow",
    "failed": "red",
}


class Progress(Protocol):
    def show(self, status: FeedStatus) -> None:
        """Show the status. Called about four times a second, and once more when the feed has ended."""

    def close(self) -> None: ...


def open_progress(stream: TextIO, *, as_json: bool) -> Progress:
    if as_json:
        return JsonLines(stream)
    return LivePanel(stream) if stream.isatty() else LogLines(stream)


class LivePanel:
    """A few lines at the bottom of a terminal, redrawn in place."""

    def __init__(self, stream: TextIO) -> None:
        self._live = Live(console=Console(file=stream), auto_refresh=False)
        self._live.start()

    def show(self, status: FeedStatus) -> None:
        self._live.update(panel(status), refresh=True)

    def close(self) -> None:
        self._live.stop()


class LogLines:
    """A line when the state or a backfill's stage changes, and one every few seconds between."""

    def __init__(self, stream: TextIO) -> None:
        self._log = structlog.wrap_logger(
            structlog.PrintLogger(stream),
            processors=[
                structlog.processors.TimeStamper(fmt="iso"),
                structlog.processors.add_log_level,
                _escaped,
                structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"]),
            ],
        )
        self._last: object = None
        self._next = 0.0
        self._warnings = _Warnings(self._log)
        logging.getLogger("tidemill").addHandler(self._warnings)

    def show(self, status: FeedStatus) -> None:
        stage = status.state, status.backfill and status.backfill.stage
        if stage == self._last and status.updated < self._next:
            return
        self._last, self._next = stage, status.updated + LINE_SECONDS
        level = {"warning": self._log.warning, "failed": self._log.error}.get(status.state, self._log.info)
        level(status.state, **figures(status))

    def close(self) -> None:
        logging.getLogger("tidemill").removeHandler(self._warnings)


class _Warnings(logging.Handler):
    """Prints log records between the lines of the feed."""

    def __init__(self, log: Any) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        log = self._log.error if record.levelno >= logging.ERROR else self._log.warning
        log("message", detail=self.format(record))


def _escaped(_logger: object, _method: str, line: MutableMapping[str, object]) -> MutableMapping[str, object]:
    return {name: printable(value) if isinstance(value, str) else value for name, value in line.items()}


class JsonLines:
    """Prints each status as one line of JSON."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._last = 0.0

    def show(self, status: FeedStatus) -> None:
        if status.updated - self._last >= 1.0 or status.state not in RUNNING:
            self._last = status.updated
            self._stream.write(msgspec.json.encode(status).decode() + "\n")
            self._stream.flush()

    def close(self) -> None:
        pass


def figures(status: FeedStatus) -> dict[str, object]:
    """Return the numbers of a log line by name."""
    line: dict[str, object] = {"feed": status.name}
    if status.detail:
        line["detail"] = status.detail
    if status.snapshot is not None:
        line["snapshot"] = f"{status.snapshot.percent:.0f}%"
        line["table"] = status.snapshot.table
    if (backfill := status.backfill) is not None:
        line |= {"stage": backfill.stage, "chunks": f"{backfill.chunks}/{backfill.chunks_in_all}"}
        if backfill.seconds_left is not None:
            line["seconds_left"] = round(backfill.seconds_left)
    line |= {"rows": status.rows, "rows_per_second": round(status.rows_per_second)}
    line |= {"position": status.position, "memory": size(status.memory_bytes)}
    for sink in status.sinks:
        line[f"{sink.name}.checkpoint"] = sink.position
        line[f"{sink.name}.lag"] = lag(sink.lag_seconds)
        if sink.dead_letters:
            line[f"{sink.name}.dead_letters"] = sink.dead_letters
    return {name: value for name, value in line.items() if value != ""}


def panel(status: FeedStatus) -> Group:
    """Return the live panel, which `tidemill status` prints too."""
    head = _line(f"{status.name}  ", "bold")
    head.append(status.state, _COLOURS.get(status.state, "white"))
    head.append(printable(f"  {status.source}" + (f" at {status.position}" if status.position else "")))
    parts: list[object] = [head]
    if status.detail:
        parts.append(Text(printable(status.detail), style=_COLOURS.get(status.state, "white")))
    transactions = "" if status.transactions is None else f"{status.transactions:,} transactions  "
    parts.append(
        _line(
            f"{status.rows:,} rows  {transactions}{status.rows_per_second:,.0f} rows/s  "
            f"memory {size(status.memory_bytes)}  "
            f"sorter {size(status.sorter_memory_bytes)} + {size(status.sorter_disk_bytes)} on disk"
            + (f"  decoder {status.decoder}" if status.decoder else "")
        )
    )
    if status.snapshot is not None:
        parts.append(_snapshot_line(status.snapshot))
    if status.backfill is not None:
        parts.append(_backfill_line(status.backfill))
    parts.append(_sinks(status))
    parts += [_line(verify_sentence(one)) for one in status.verify]
    if status.table_states:
        counts = ", ".join(f"{count:,} {state}" for state, count in status.table_states.items())
        parts.append(_line(f"tables: {counts}"))
    if shown := [one for one in status.tables if one.state != "following" or one.lag_seconds]:
        parts.append(tables_panel(shown))
    return Group(*parts)  # type: ignore[arg-type]


def tables_panel(tables: Sequence[TableStatus]) -> Table:
    """Return tables as lines, with their errors."""
    panel = Table(box=None, padding=(0, 2, 0, 0), show_header=True, header_style="dim")
    for title in ("table", "state", "lag", "loaded", "inserts", "updates", "deletes", "position"):
        is_number = title in ("lag", "loaded", "inserts", "updates", "deletes")
        panel.add_column(title, justify="right" if is_number else "left", no_wrap=True)
    panel.add_column("error", overflow="ellipsis")
    for one in tables:
        state: str = one.state
        if state == "loading" and one.rows_estimated:
            state = f"loading {min(100, 100 * one.rows_loaded // one.rows_estimated)}%"
        panel.add_row(
            _line(one.name),
            Text(state, style=_COLOURS.get(one.state, "white")),
            lag(one.lag_seconds),
            *(f"{count:,}" for count in (one.rows_loaded, one.inserts, one.updates, one.deletes)),
            _line(one.position or "-"),
            _line(one.error),
        )
    return panel


def _sinks(status: FeedStatus) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=True, header_style="dim")
    for title in ("sink", "lag", "rows", "state"):
        table.add_column(title, justify="right" if title in ("lag", "rows") else "left", no_wrap=True)
    for title in ("target", "checkpoint"):  # of any length, so they are cut where the terminal ends
        table.add_column(title, overflow="ellipsis")
    for sink in status.sinks:
        table.add_row(
            sink.name,
            lag(sink.lag_seconds),
            f"{sink.rows:,}",
            Text(sink.state, style=_COLOURS.get(sink.state, "white")),
            _line(sink.target),
            _line(sink.position or "-"),
        )
    return table


def _line(text: str, style: str = "") -> Text:
    """Return text for one line, which is cut where there is no more room."""
    return Text(printable(text), style=style, no_wrap=True, overflow="ellipsis")


def _snapshot_line(snapshot: SnapshotStatus) -> Table:
    said = f"table {_table_number(snapshot)}, {_rows(snapshot)}: {snapshot.table}"
    return _bar(f"snapshot {snapshot.percent:3.0f}%", 100, snapshot.percent, said)


def _backfill_line(backfill: BackfillProgress) -> Table:
    left = "" if backfill.seconds_left is None else f", {backfill.seconds_left:,.0f} s left"
    said = (
        f"{backfill.chunks:,} of {backfill.chunks_in_all:,} chunks, {backfill.rows:,} of about "
        f"{backfill.rows_estimated:,} rows{left}"
    )
    return _bar(backfill.stage, max(1, backfill.chunks_in_all), backfill.chunks, said)


def _bar(title: str, total: float, completed: float, said: str) -> Table:
    line = Table.grid(padding=(0, 1))
    line.add_column(no_wrap=True)
    line.add_column(no_wrap=True)
    line.add_column(overflow="ellipsis")
    line.add_row(Text(title), ProgressBar(total=total, completed=completed, width=20), _line(said))
    return line


def explanation(status: FeedStatus, waits: Sequence[Wait]) -> list[str]:
    """Return the feed's state with its cause and what to do; then the table that is loaded, and the waits as
    sentences, the longest first."""
    head = f"feed {status.name}: {status.state}"
    cause = cause_of(status, waits)
    causes = [] if cause is None else [cause.sentence]
    if causes or any(one.divergences for one in status.verify):
        head = f"{head}: {'; '.join([*causes, *filter(None, map(divergence_sentence, status.verify))])}"
    if status.state not in RUNNING:
        return [head]
    longest_first = sorted(waits, key=lambda wait: -wait.seconds)
    lines = [sentence(wait) for wait in longest_first]
    lines += [
        f"the verification of sink {one.sink} is paused: {one.detail}"
        for one in status.verify
        if one.state == "paused"
    ]
    slowest = max(status.sinks, key=lambda sink: sink.lag_seconds or 0.0, default=None)
    if slowest is not None and slowest.lag_seconds:
        lines.append(f"the furthest behind is sink {slowest.name}, by {lag(slowest.lag_seconds)}")
    if status.snapshot is not None:
        return [head, _loading(status.snapshot), *lines]
    return [head, *(lines if waits else ["nothing waits", *lines])]


def _loading(snapshot: SnapshotStatus) -> str:
    return f"table {snapshot.table} is loaded, {_table_number(snapshot)}: {_rows(snapshot)} so far"


def _rows(snapshot: SnapshotStatus) -> str:
    about = f" of about {snapshot.rows_estimated:,}" if snapshot.rows_estimated else ""
    return f"{snapshot.rows:,}{about} rows"


def _table_number(snapshot: SnapshotStatus) -> str:
    return f"{min(snapshot.tables_done + 1, snapshot.tables)} of {snapshot.tables}"


def size(count: int) -> str:
    """Return a number of bytes as text: "312.5 MiB"."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def lag(seconds: float | None) -> str:
    return "-" if seconds is None else f"{max(0.0, seconds):.1f} s"
