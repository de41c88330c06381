"""SVG pictures for a page that defines the colours: bars, a heat map, a staircase.

Each is drawn twice, for wide and for narrow screens: text that is scaled down with its picture can't be read.
The page shows one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from math import ceil, sqrt
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

_LIVE: Final = (42, 120, 214)
_DEAD: Final = (222, 110, 38)


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


class Cell(Struct, frozen=True):
    weight: float
    """Size, shown as opacity."""
    dead: float
    """Dead share, from 0 to 1, shown as colour."""
    note: str


def heat_map(
    rows: Sequence[str], columns: Sequence[str], cells: Mapping[tuple[int, int], Cell], title: str
) -> str:
    """Draw cells by (row, column): opacity by weight, colour from live to dead."""
    return picture(lambda frame: _heat_map(rows, columns, cells, frame), title)


def _heat_map(
    rows: Sequence[str], columns: Sequence[str], cells: Mapping[tuple[int, int], Cell], frame: Frame
) -> Drawing:
    most = max([cell.weight for cell in cells.values()], default=0) or 1
    step = frame.column(len(columns))
    drawn = [_label(name, number * _ROW, frame) for number, name in enumerate(rows)]
    for (row, column), cell in cells.items():
        opacity = _opacity(cell.weight / most)
        x, width = frame.label + column * step, max(1.0, step - 1)
        drawn.append(
            f'<rect x="{x:.1f}" y="{row * _ROW + 1}" width="{width:.1f}" height="{_ROW - 2}" rx="2" '
            f'fill="{_mix(cell.dead)}" fill-opacity="{opacity:.2f}">'
            f"<title>{escape(cell.note)}</title></rect>"
        )
    bottom = len(rows) * _ROW
    drawn += [
        tick(frame.label + number * step, bottom + 15, columns[number])
        for number in tick_numbers(columns, step, frame)
    ]
    return drawn, bottom + 22


def tick_numbers(labels: Sequence[str], step: float, frame: Frame) -> range:
    """Return the numbers of the columns whose labels are shown: so many that none overlap or are cut off."""
    if not labels:
        return range(0)
    width = _LETTER * max(map(len, labels)) + 12
    every = max(1, ceil(width / step))
    last = min(len(labels) - 1, int((frame.width - frame.label - width) / step))
    return range(0, max(1, last + 1), every)


def heat_scale(cells: Iterable[Cell], show: Callable[[float], str], live: str, dead: str) -> str:
    """Draw the legend of a heat map: weights of five opacities, and colours from `live` to `dead`."""
    most = max([cell.weight for cell in cells], default=0)
    weights = [(_mix(0.0), _opacity(part), show(most * part)) for part in _SCALE]
    colours = [(_mix(0.0), 1.0, f"all {live}"), (_mix(0.5), 1.0, "half"), (_mix(1.0), 1.0, f"all {dead}")]
    return picture(lambda frame: _heat_scale(weights, colours, frame), "Scale of the heat map")


def _heat_scale(weights: Sequence[_Swatch], colours: Sequence[_Swatch], frame: Frame) -> Drawing:
    """Draw both on one line if there is room."""
    wraps = frame.label + 85 * len(weights) + 110 * len(colours) > frame.width
    left = 0 if wraps else frame.label
    right, y = (0, _ROW) if wraps else (left + 85 * len(weights) + 15, 0)
    drawn: list[str] = []
    for number, swatch in enumerate(weights):
        drawn += _swatch(left + number * 85, 0, swatch)
    for number, swatch in enumerate(colours):
        drawn += _swatch(right + number * 110, y, swatch)
    return drawn, 24 + y


_Swatch: TypeAlias = tuple[str, float, str]
"""Colour, opacity and text."""
_SCALE: Final = (1 / 64, 1 / 16, 1 / 4, 9 / 16, 1.0)


def _swatch(x: float, y: int, swatch: _Swatch) -> list[str]:
    fill, opacity, text = swatch
    size = 'width="14" height="14" rx="2"'
    return [
        f'<rect x="{x:.1f}" y="{y + 4}" {size} fill="{fill}" fill-opacity="{opacity:.2f}"/>',
        tick(x + 20, y + 15, text),
    ]


def _opacity(share: float) -> float:
    return 0.12 + 0.88 * sqrt(share)


def _mix(dead: float) -> str:
    share = min(1.0, max(0.0, dead))
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in zip(_LIVE, _DEAD, strict=True))


def staircase(steps: Sequence[tuple[float, float]], across: str, up: str, title: str) -> str:
    """Draw the cumulated gain over the cumulated cost of steps (cost, gain)."""
    return picture(lambda frame: _staircase(steps, across, up, frame), title)


def _staircase(steps: Sequence[tuple[float, float]], across: str, up: str, frame: Frame) -> Drawing:
    height, left, right = 260, frame.label / 2, frame.width - 40
    spent = sum(cost for cost, _ in steps) or 1
    gained = sum(gain for _, gain in steps) or 1
    x, y = float(left), float(height - 30)
    path = [f"M{x:.1f},{y:.1f}"]
    dots = []
    for number, (cost, gain) in enumerate(steps, 1):
        x += (right - left) * cost / spent
        y -= (height - 60) * gain / gained
        path.append(f"L{x:.1f},{y:.1f}")
        if number <= 12:
            dots.append(
                f'<circle class="free" cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>{number}</title></circle>'
            )
    area = f"{' '.join(path)} L{x:.1f},{height - 30} L{left},{height - 30} Z"
    return (
        [
            f'<line class="axis" x1="{left}" y1="{height - 30}" x2="{right}" y2="{height - 30}"/>',
            f'<line class="axis" x1="{left}" y1="20" x2="{left}" y2="{height - 30}"/>',
            f'<path class="area" d="{area}"/>',
            f'<path class="curve" d="{" ".join(path)}"/>',
            *dots,
            tick(right, height - 10, across, "end"),
            tick(left, 12, up),
        ],
        height,
    )


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
