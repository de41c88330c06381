"""Pages in a real browser; what a page reports as an error fails its test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from tidemill.testing.progress import STALL_SECONDS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page

WIDE = {"width": 1280, "height": 800}
NARROW = {"width": 360, "height": 740}
OF_NETWORK = "Failed to load resource"
"""Beginning of what the browser says of each request that fails: tests make some fail."""

Open: TypeAlias = "Callable[..., Page]"


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Return a function that opens a URL in a fresh profile."""
    from playwright.sync_api import expect

    expect.set_options(timeout=STALL_SECONDS * 1000)
    contexts = []
    errors: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(OF_NETWORK):
            errors.append(message.text)

    def open_(url: str, **options: Any) -> Page:
        context = browser.new_context(**({"viewport": WIDE, "timezone_id": "UTC"} | options))
        context.set_default_timeout(STALL_SECONDS * 1000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(url)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert errors == []
