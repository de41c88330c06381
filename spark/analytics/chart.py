"""SVG pictures for a page that defines the colours: bars, small curves.

Each is drawn twice, for wide and for narrow screens: text that is scaled down with its picture can't be read.
The page shows one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from math import ceil
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct


class Frame(NamedTuple):
    """Sizes of a picture, in pixels."""

    name: str
    width: int
    label: int
    """Width of the names on the left."""
    note: int
    """Width that bars leave for the notes after them."""

    @property
    def label_chars(self) -> int:
        return int((self.label - 10) / _WIDE_LETTER)

    def column(self, count: int) -> float:
        """Return the distance of columns, of which there are `count`: few of them leave room on the right."""
        return min(_MOST_COLUMN, (self.width - self.label) / max(1, count))


WIDE: Final = Frame("wide", 960, 190, 260)
NARROW: Final = Frame("narrow", 440, 128, 180)
_MOST_COLUMN: Final = 64
_ROW: Final = 22
_LETTER: Final = 6.6
"""Average width of a letter, in pixels."""
_WIDE_LETTER: Final = 7.3
"""The same of names with few narrow letters."""


Drawing: TypeAlias = tuple[Sequence[str], float]
"""The parts of a picture, and its height."""


class Bar(Struct, frozen=True):
    """A bar of several parts: CSS class and value of each."""

    label: str
    parts: Sequence[tuple[str, float]]
    note: str
    """Text after the bar."""

    @property
    def total(self) -> float:
        return sum(value for _, value in self.parts)


def bars(rows: Sequence[Bar], title: str) -> str:
    """Draw horizontal bars on one scale."""
    return picture(lambda frame: _bars(rows, frame), title)


def _bars(rows: Sequence[Bar], frame: Frame) -> Drawing:
    most = max([row.total for row in rows], default=0) or 1
    room = frame.width - frame.label - frame.note
    drawn = []
    for number, row in enumerate(rows):
        y = number * _ROW
        drawn.append(_label(row.label, y, frame))
        x: float = frame.label
        for name, value in row.parts:
            width = room * value / most
            if width > 0:
                size = f'width="{max(width, 0.5):.1f}" height="{_ROW - 7}"'
                drawn.append(f'<rect class="{name}" x="{x:.1f}" y="{y + 3}" {size}/>')
            x += width
        drawn.append(_note(row.note, x + 8, y, frame))
    return drawn, len(rows) * _ROW


def tick_numbers(labels: Sequence[str], step: float, frame: Frame) -> range:
    """Return the numbers of the columns whose labels are shown: so many that none overlap or are cut off."""
    if not labels:
        return range(0)
    width = _LETTER * max(map(len, labels)) + 12
    every = max(1, ceil(width / step))
    last = min(len(labels) - 1, int((frame.width - frame.label - width) / step))
    return range(0, max(1, last + 1), every)


def spark_line(values: Sequence[float], title: str) -> str:
    """A small curve to stand in a line of text."""
    width, height = 120, 20
    most = max(values, default=0) or 1
    step = width / max(1, len(values) - 1)
    points = " ".join(
        f"{i * step:.1f},{height - 1 - (height - 2) * v / most:.1f}" for i, v in enumerate(values)
    )
    return (
        f'<svg class="spark" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">'
        f'<title>{escape(title)}</title><polyline class="curve" points="{points}"/></svg>'
    )


def shortened(name: str, most: int) -> str:
    """Return at most `most` characters: begin and end of a longer name, as many names differ at the end."""
    if len(name) <= most:
        return name
    end = most // 2
    return f"{name[: most - 1 - end]}…{name[-end:]}"


def _label(name: str, y: int, frame: Frame) -> str:
    shown = shortened(name, frame.label_chars)
    return (
        f'<text class="label" x="{frame.label - 10}" y="{y + 15}" text-anchor="end">{escape(shown)}'
        f"<title>{escape(name)}</title></text>"
    )


def _note(note: str, x: float, y: int, frame: Frame) -> str:
    most = int((frame.width - x) / _LETTER)
    shown = note if len(note) <= most else note[: most - 1] + "…"
    whole = f"<title>{escape(note)}</title>" if shown != note else ""
    return f'<text class="note" x="{x:.1f}" y="{y + 15}">{escape(shown)}{whole}</text>'


def tick(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text class="tick" x="{x:.1f}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'


def picture(draw: Callable[[Frame], Drawing], title: str) -> str:
    """Draw a picture for both kinds of screens."""
    return "".join([_picture(draw(frame), frame, title) for frame in (WIDE, NARROW)])


def _picture(drawing: Drawing, frame: Frame, title: str) -> str:
    drawn, height = drawing
    box = f'class="{frame.name}" viewBox="0 0 {frame.width} {height:.0f}"'
    return f'<svg {box} role="img" aria-label="{escape(title)}">{"".join(drawn)}</svg>'
