"""The reports as one self-contained HTML page with pictures."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape

from .advice import FeedPlace
from .archive_page import archive_sections
from .compared import Compaction, compaction_section
from .paper import STYLE, section
from .report import ArchiveReport, StoreReport
from .store_page import store_sections


def page(
    title: str,
    made: float,
    store: StoreReport | None = None,
    archive: ArchiveReport | None = None,
    place: FeedPlace | None = None,
    done: Compaction | None = None,
    no_store: str = "",
) -> str:
    """Render the page for a store report, an archive report or both; `made` in Unix seconds.

    `place` is for the commands on it; `done` is the compaction of which `store` is the state after;
    `no_store` says why there is none of the feed that was asked for.
    """
    when = datetime.fromtimestamp(made, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    parts = [f"<h1>{escape(title)}</h1><p>As of {when}.</p>"]
    if done is not None:
        parts.append(compaction_section(done))
    if store is not None:
        parts += store_sections(store, place or FeedPlace())
    elif no_store:
        parts.append(section("There is no store", f"{no_store}. The page is of the archive alone."))
    if archive is not None:
        parts += archive_sections(archive)
    return document(title, parts)


def document(title: str, parts: Iterable[str]) -> str:
    """Return a page that needs no other file."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>'
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )
