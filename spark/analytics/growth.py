"""SVG pictures of amounts over time: columns for each unit of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from .chart import Drawing, Frame, picture, tick, tick_numbers

Show: TypeAlias = Callable[[float], str]
"""Formats an amount with its unit."""
Parts: TypeAlias = Sequence[tuple[str, float]]
"""CSS class and value of each part of a column, from the bottom."""

_HEIGHT: Final = 170
_TOP: Final = 26
_BOTTOM: Final = 24
_LINES: Final = 4
"""Maximum number of lines of a scale."""


def columns(values: Sequence[Parts], labels: Sequence[str], caption: str, show: Show, *, base: int) -> str:
    """Draw a column for each label. `base` is 1024 for a scale of bytes, or 10."""
    return picture(lambda frame: _columns(values, labels, caption, show, base, frame), caption)


def _columns(
    values: Sequence[Parts], labels: Sequence[str], caption: str, show: Show, base: int, frame: Frame
) -> Drawing:
    most = max([sum(value for _, value in parts) for parts in values], default=0)
    top, drawn = _scale(most, caption, show, base, frame)
    step = frame.column(len(values))
    for number, parts in enumerate(values):
        y = float(_HEIGHT - _BOTTOM)
        for name, value in parts:
            height = _room() * value / top
            y -= height
            if height > 0:
                x, width = frame.label + number * step, max(1.0, step - 1)
                place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.2f}"'
                drawn.append(f'<rect class="{name}" {place}/>')
    return [*drawn, *_times(labels, frame)], _HEIGHT


def _room() -> int:
    return _HEIGHT - _TOP - _BOTTOM


def _scale(most: float, caption: str, show: Show, base: int, frame: Frame) -> tuple[float, list[str]]:
    """Return the value at the top of the picture, and the caption with the lines of the scale."""
    step = scale_step(most, base)
    lines = range(int(-(-most // step)) + 1) if most else range(1)
    top = max(step * (len(lines) - 1), step)
    drawn = [f'<text x="{frame.label}" y="12">{caption}</text>']
    for number in lines:
        y = _HEIGHT - _BOTTOM - _room() * number * step / top
        drawn.append(f'<line class="axis" x1="{frame.label}" y1="{y:.1f}" x2="{frame.width}" y2="{y:.1f}"/>')
        drawn.append(tick(frame.label - 10, y + 4, show(number * step), "end"))
    return top, drawn


def scale_step(most: float, base: int) -> float:
    """Return the distance of a scale's lines: 1, 2 or 5 times a power of ten of a unit."""
    unit = 1.0
    while base == 1024 and most / unit > 1024:
        unit *= 1024
    rough = most / unit / _LINES
    power = 1.0
    while power * 10 <= rough:
        power *= 10
    return unit * next((power * n for n in (1, 2, 5) if power * n >= rough), power * 10)


def _times(labels: Sequence[str], frame: Frame) -> list[str]:
    step = frame.column(len(labels))
    return [
        tick(frame.label + number * step, _HEIGHT - 8, labels[number])
        for number in tick_numbers(labels, step, frame)
    ]
