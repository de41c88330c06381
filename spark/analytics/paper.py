"""Parts of the pages: style, tiles, sections, tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from html import escape
from typing import Final

STYLE: Final = """
:root { --live: #2a78d6; --stuck: #e3b04b; --free: #de6e26; --ink: #1c2430; --soft: #667085;
  --paper: #fbfbf9; --card: #fff; --line: #e4e4df; color-scheme: light dark }
@media (prefers-color-scheme: dark) { :root { --live: #5a9cf0; --stuck: #d9a944; --free: #ee8a4a;
  --ink: #e8eaee; --soft: #9aa4b2; --paper: #14171c; --card: #1c2027; --line: #2e343d } }
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif }
main { max-width: 1040px; margin: 0 auto; padding: 32px 24px 64px }
h1 { font-size: 26px; margin: 0 0 4px; letter-spacing: -.01em } h2 { font-size: 18px; margin: 0 0 4px }
h3 { font-size: 20px; margin: 40px 0 0 }
.sub, section > p { color: var(--soft); margin: 0 0 16px; max-width: 70ch } code { font-size: .92em }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 20px;
  margin: 20px 0; overflow-x: auto }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(128px, 1fr)); gap: 12px;
  margin: 20px 0 }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 14px 12px }
.tile b { display: block; font-size: 20px; letter-spacing: -.02em; white-space: nowrap }
.tile span { display: block }
.tile i { font-style: normal; color: var(--soft); font-size: 13px; overflow-wrap: anywhere }
svg { display: block; width: 100%; height: auto } svg + svg { margin-top: 12px }
svg.narrow { display: none; max-width: 560px }
@media (max-width: 860px) { svg.wide { display: none } svg.narrow { display: block }
  main { padding: 20px 12px 40px } section { padding: 14px 12px } }
svg.spark { width: 120px; min-width: 120px; display: inline-block; vertical-align: middle }
text { font: 12px system-ui, sans-serif; fill: var(--ink) } .note, .tick { fill: var(--soft) }
rect.live { fill: var(--live) } rect.stuck { fill: var(--stuck) } rect.free { fill: var(--free) }
.curve { fill: none; stroke: var(--live); stroke-width: 2; stroke-linejoin: round }
.axis { stroke: var(--line) }
.legend { display: flex; gap: 18px; color: var(--soft); font-size: 13px; margin-bottom: 10px }
.legend i { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 6px }
i.live { background: var(--live) } i.stuck { background: var(--stuck) } i.free { background: var(--free) }
table { border-collapse: collapse; width: 100%; font-size: 14px; font-variant-numeric: tabular-nums }
th { text-align: left; color: var(--soft); font-weight: 500; vertical-align: bottom }
th, td { padding: 5px 10px 5px 0 } td { white-space: nowrap; vertical-align: top }
table.names td:first-child { white-space: normal; overflow-wrap: anywhere; min-width: 20ch; max-width: 300px }
h4 { font-size: 15px; margin: 16px 0 4px } ol { margin: 0; padding-left: 22px } li > h4 { margin-top: 0 }
li + li { margin-top: 20px } li > p { margin: 0 0 8px; max-width: 76ch; color: var(--soft) }
pre { margin: 0 0 8px; padding: 8px 12px; background: var(--paper); border: 1px solid var(--line);
  border-radius: 6px; white-space: pre-wrap; font-size: 13px }
.gives { display: flex; flex-wrap: wrap; gap: 4px 24px; font-size: 14px } .gives i { font-style: normal;
  color: var(--soft) } .rest { color: var(--soft); font-size: 13px; margin: 10px 0 0 }
tr + tr td { border-top: 1px solid var(--line) } td.n, th.n { text-align: right }
@media (max-width: 600px) { .tiles { grid-template-columns: 1fr 1fr } th { display: none }
  tr, td, td.n { display: block; text-align: left; white-space: normal } tr + tr { margin-top: 12px }
  td, tr + tr td { border: 0; padding: 0 0 0 16px } td:first-child { padding: 0; font-weight: 600 }
  td[data-head]::before { content: attr(data-head) ": "; color: var(--soft) }
  td:empty, td:first-child::before { display: none } }
"""

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def size(count: float) -> str:
    """Format bytes for people."""
    for unit in _UNITS:
        if count < 1024 or unit == _UNITS[-1]:
            break
        count /= 1024
    return f"{count:,.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def amount(count: float | None) -> str:
    """Format a number; None is unknown. Numbers above 100,000 have a unit."""
    if count is None:
        return "unknown"
    if count < 1e5:
        return f"{count:,.0f}"
    divisor, unit = (1e3, "k") if count < 1e6 else (1e6, "M") if count < 1e9 else (1e9, "G")
    return f"{count / divisor:,.4g} {unit}"


def share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "0 %"


def times(ratio: float) -> str:
    """Format a ratio; 0 means unknown."""
    return f"{ratio:.1f}\u00d7" if ratio else "unknown"


def tiles(shown: Iterable[tuple[str, str, str]]) -> str:
    """Render tiles of (figure, label, remark)."""
    drawn = [
        f'<div class="tile"><b>{escape(figure)}</b><span>{escape(what)}</span><i>{escape(remark)}</i></div>'
        for figure, what, remark in shown
    ]
    return f'<div class="tiles">{"".join(drawn)}</div>'


def rest(hidden: int, noun: str, what: str) -> str:
    """Render a remark on rows that aren't shown, if there are any; `what` says how much they have."""
    return f'<p class="rest">{counted(hidden, "more " + noun)}, {escape(what)}</p>' if hidden > 0 else ""


def section(title: str, text: str, *parts: str) -> str:
    said = f"<p>{escape(text)}</p>" if text else ""
    return f"<section><h2>{escape(title)}</h2>{said}{''.join(parts)}</section>"


def legend(*entries: tuple[str, str]) -> str:
    """Render a legend of (CSS class, meaning)."""
    drawn = [f'<span><i class="{name}"></i>{escape(meaning)}</span>' for name, meaning in entries]
    return f'<div class="legend">{"".join(drawn)}</div>'


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Collection[int] = (), is_html: bool = False
) -> str:
    """Render a table; narrow screens show a row as lines. `numbers` are the right-aligned columns; with
    `is_html` the cells are markup."""
    heads = [f' data-head="{escape(name)}"' if name else "" for name in head]

    def row(tag: str, cells: Sequence[str], is_markup: bool) -> str:
        drawn = [
            f"<{tag}{' class=n' if at in numbers else ''}{heads[at] if tag == 'td' else ''}>"
            f"{cell if is_markup else escape(cell)}</{tag}>"
            for at, cell in enumerate(cells)
        ]
        return f"<tr>{''.join(drawn)}</tr>"

    kind = " class=names" if head[0] == "table" else ""
    return (
        f"<table{kind}>{row('th', head, False)}{''.join(row('td', cells, is_html) for cells in rows)}</table>"
    )
