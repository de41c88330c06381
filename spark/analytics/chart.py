"""SVG pictures for a page that defines the colours: bars, a heat map, a staircase."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from math import ceil, sqrt
from typing import Final

from msgspec import Struct

WIDTH: Final = 960
LABEL: Final = 190
"""Width of the names on the left, in pixels."""
_LABEL_CHARS: Final = 26
_ROW: Final = 22
_LETTER: Final = 6.6
"""Average width of a letter, in pixels."""

_LIVE: Final = (42, 120, 214)
_DEAD: Final = (222, 110, 38)


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
    most = max([row.total for row in rows], default=0) or 1
    room = WIDTH - LABEL - 260
    drawn = []
    for number, row in enumerate(rows):
        y = number * _ROW
        drawn.append(_label(row.label, y))
        x: float = LABEL
        for name, value in row.parts:
            width = room * value / most
            if width > 0:
                size = f'width="{max(width, 0.5):.1f}" height="{_ROW - 7}"'
                drawn.append(f'<rect class="{name}" x="{x:.1f}" y="{y + 3}" {size}/>')
            x += width
        drawn.append(_note(row.note, x + 8, y))
    return picture(drawn, len(rows) * _ROW, title)


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
    most = max([cell.weight for cell in cells.values()], default=0) or 1
    step = (WIDTH - LABEL) / max(1, len(columns))
    drawn = [_label(name, number * _ROW) for number, name in enumerate(rows)]
    for (row, column), cell in cells.items():
        opacity = _opacity(cell.weight / most)
        drawn.append(
            f'<rect x="{LABEL + column * step:.1f}" y="{row * _ROW + 1}" width="{max(1.0, step - 1):.1f}" '
            f'height="{_ROW - 2}" rx="2" fill="{_mix(cell.dead)}" fill-opacity="{opacity:.2f}">'
            f"<title>{escape(cell.note)}</title></rect>"
        )
    bottom = len(rows) * _ROW
    drawn += [
        tick(LABEL + number * step, bottom + 15, columns[number]) for number in tick_numbers(columns, step)
    ]
    return picture(drawn, bottom + 22, title)


def tick_numbers(labels: Sequence[str], step: float) -> range:
    """Return the numbers of the columns whose labels are shown: so many that none overlap or are cut off."""
    if not labels:
        return range(0)
    width = _LETTER * max(map(len, labels)) + 12
    every = max(1, ceil(width / step))
    last = int(len(labels) - width / step)
    return range(0, max(1, last + 1), every)


def heat_scale(cells: Iterable[Cell], show: Callable[[float], str], live: str, dead: str) -> str:
    """Draw the legend of a heat map: the weights of five opacities, and the colours from `live` to `dead`."""
    most = max([cell.weight for cell in cells], default=0)
    drawn: list[str] = []
    for number, part in enumerate(_SCALE):
        drawn += _swatch(LABEL + number * 85, _mix(0.0), _opacity(part), show(most * part))
    for number, part in enumerate((0.0, 0.5, 1.0)):
        text = (f"all {live}", "half", f"all {dead}")[number]
        drawn += _swatch(LABEL + 85 * len(_SCALE) + 15 + number * 110, _mix(part), 1.0, text)
    return picture(drawn, 24, "Scale of the heat map")


_SCALE: Final = (1 / 64, 1 / 16, 1 / 4, 9 / 16, 1.0)


def _swatch(x: float, fill: str, opacity: float, text: str) -> list[str]:
    size = 'width="14" height="14" rx="2"'
    return [
        f'<rect x="{x:.1f}" y="4" {size} fill="{fill}" fill-opacity="{opacity:.2f}"/>',
        tick(x + 20, 15, text),
    ]


def _opacity(share: float) -> float:
    return 0.12 + 0.88 * sqrt(share)


def _mix(dead: float) -> str:
    share = min(1.0, max(0.0, dead))
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in zip(_LIVE, _DEAD, strict=True))


def staircase(steps: Sequence[tuple[float, float]], across: str, up: str, title: str) -> str:
    """Draw the cumulated gain over the cumulated cost of steps (cost, gain)."""
    height, left = 260, 90
    spent = sum(cost for cost, _ in steps) or 1
    gained = sum(gain for _, gain in steps) or 1
    x, y = float(left), float(height - 30)
    path = [f"M{x:.1f},{y:.1f}"]
    dots = []
    for number, (cost, gain) in enumerate(steps, 1):
        x += (WIDTH - left - 40) * cost / spent
        y -= (height - 60) * gain / gained
        path.append(f"L{x:.1f},{y:.1f}")
        if number <= 12:
            dots.append(
                f'<circle class="free" cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>{number}</title></circle>'
            )
    area = f"{' '.join(path)} L{x:.1f},{height - 30} L{left},{height - 30} Z"
    return picture(
        [
            f'<line class="axis" x1="{left}" y1="{height - 30}" x2="{WIDTH - 40}" y2="{height - 30}"/>',
            f'<line class="axis" x1="{left}" y1="20" x2="{left}" y2="{height - 30}"/>',
            f'<path class="area" d="{area}"/>',
            f'<path class="curve" d="{" ".join(path)}"/>',
            *dots,
            tick(WIDTH - 40, height - 10, across, "end"),
            tick(left, 12, up),
        ],
        height,
        title,
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


def _label(name: str, y: int) -> str:
    shown = shortened(name, _LABEL_CHARS)
    return (
        f'<text class="label" x="{LABEL - 10}" y="{y + 15}" text-anchor="end">{escape(shown)}'
        f"<title>{escape(name)}</title></text>"
    )


def _note(note: str, x: float, y: int) -> str:
    most = int((WIDTH - x) / _LETTER)
    shown = note if len(note) <= most else note[: most - 1] + "…"
    whole = f"<title>{escape(note)}</title>" if shown != note else ""
    return f'<text class="note" x="{x:.1f}" y="{y + 15}">{escape(shown)}{whole}</text>'


def tick(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text class="tick" x="{x:.1f}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'


def picture(drawn: Sequence[str], height: float, title: str) -> str:
    head = f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}">'
    return f"{head}{''.join(drawn)}</svg>"
