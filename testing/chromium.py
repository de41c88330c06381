"""A headless Chromium, for tests of pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")


def missing() -> str:
    """Return the reason why no Chromium can be started on this machine; empty if one can."""
    return "" if _program() else "chromium not found: apt-get install chromium"


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yield a browser for this thread. No asyncio loop may be run in the thread meanwhile."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_program())
        try:
            yield browser
        finally:
            browser.close()


def _program() -> str | None:
    return next((path for name in _NAMES if (path := shutil.which(name))), None)
