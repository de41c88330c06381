"""The page for keyboards, screen readers and narrow screens, and what its headers forbid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tidemill.engine.status import SnapshotStatus
from tidemill.events import Wait

from .conftest import NARROW, WIDE, Open
from .recorded import RecordedFeed, served, sink_status, table_status
from .test_feed import LOCK

VIEWS = [
    "",
    "feeds/shop",
    "feeds/shop/tables?offset=95",
    "feeds/shop/locks",
    "feeds/shop/history",
    "feeds/shop/options",
]
LOOKS = [("light", WIDE), ("dark", NARROW)]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    tables = [table_status(f"shop.{'long_name_of_a_table_' * 3}{number}") for number in range(101)]
    tables[0] = table_status("shop.y", "failed", error="Duplicate entry '7' for key 'PRIMARY'")
    tables[1] = table_status("shop.x", "loading", rows_loaded=1, rows_estimated=4)
    tables[2] = table_status("shop.z", "paused")
    shop = RecordedFeed(
        "shop",
        tables,
        state="warning",
        detail="sink copy: connection lost",
        position="binlog.000012:884411-with-a-gtid-of-0a5c1f2e-aaaa-bbbb-cccc-0242ac110002:1-884411",
        locks=[LOCK],
        snapshot=SnapshotStatus("shop.b", 1, 4, 12, 3),
        sinks=[sink_status("copy", 75.0, dead_letters=3), sink_status("archive")],
    )
    shop.waiting = [Wait("sink copy", "retry", 42.0, reason="connection lost", pause_seconds=4.0)]
    shop.note("operation", "paused", "alice")
    states = ["failed", "stopped", "finished", "starting"]
    others = [RecordedFeed(f"feed-{state}", state=state, detail="a reason") for state in states]
    stuck = RecordedFeed("stuck", sinks=[sink_status("copy", 340.0)])
    behind = RecordedFeed("behind", sinks=[sink_status("copy", 340.0)], rows_per_second=9.0)
    with served(shop, *others, stuck, behind, RecordedFeed("idle")) as server:
        yield server.url


@pytest.mark.parametrize(("scheme", "viewport"), LOOKS, ids=["light and wide", "dark and narrow"])
@pytest.mark.parametrize("view", VIEWS, ids=[view or "list" for view in VIEWS])
def test_axe_finds_nothing(open_page: Open, url: str, view: str, scheme: str, viewport: Any) -> None:
    page = open_page(f"{url}/#/{view}", color_scheme=scheme, viewport=viewport, bypass_csp=True)
    expect(page.locator("h1")).to_be_visible()
    expect(page.get_by_text("Loading …")).to_have_count(0)
    assert_accessible(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def assert_accessible(page: Page) -> None:
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize(("scheme", "viewport"), LOOKS, ids=["light and wide", "dark and narrow"])
def test_axe_finds_nothing_in_a_dialog(open_page: Open, url: str, scheme: str, viewport: Any) -> None:
    page = open_page(f"{url}/#/feeds/shop", color_scheme=scheme, viewport=viewport, bypass_csp=True)
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("dialog", name="Remove shop?")).to_be_visible()
    assert_accessible(page)


def test_everything_is_done_by_the_keyboard(open_page: Open, url: str) -> None:
    page = open_page(url)
    expect(page.get_by_role("link", name="shop")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.get_by_role("link", name="shop", exact=True).focus()
    page.keyboard.press("Enter")
    pause = page.get_by_role("button", name="Pause", exact=True)
    expect(pause).to_be_visible()  # the status has come
    expect(page.get_by_role("heading", name="shop", level=1)).to_be_focused()
    page.get_by_role("link", name="Tables").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Tables", level=2)).to_be_focused()
    pause.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Pause shop?")
    expect(dialog.get_by_role("button", name="Pause")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(pause).to_be_focused()


def test_what_cannot_be_undone_is_not_confirmed_by_mistake(open_page: Open, url: str) -> None:
    page = open_page(f"{url}/#/feeds/shop")
    page.get_by_role("button", name="Remove").click()
    dialog = page.get_by_role("dialog", name="Remove shop?")
    remove = dialog.get_by_role("button", name="Remove")
    expect(remove).to_be_disabled()
    dialog.get_by_role("textbox").fill("shop")
    expect(remove).to_be_enabled()
    dialog.get_by_role("textbox").fill("sho")
    expect(remove).to_be_disabled()


@pytest.mark.parametrize("path", ["/", "/page/main.js", "/page/base.css"])
def test_the_headers_forbid_what_the_page_does_not_need(url: str, path: str) -> None:
    with urlopen(url + path) as response:
        headers = response.headers
    policy = headers["Content-Security-Policy"].split("; ")
    assert {"default-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} <= set(
        policy
    )
    assert not any("unsafe" in one or "http" in one for one in policy)
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"


def test_the_page_loads_nothing_from_elsewhere(open_page: Open, url: str) -> None:
    requests: list[str] = []
    page = open_page("about:blank")
    page.on("request", lambda request: requests.append(request.url))
    for view in VIEWS:
        page.goto(f"{url}/#/{view}")
        expect(page.locator("h1")).to_be_visible()
    assert [one for one in requests if not one.startswith(url)] == []


def test_the_page_takes_no_text_for_html(browser: Browser, url: str) -> None:
    page = browser.new_page()
    page.goto(url)
    insert = "(() => { try { document.body.innerHTML = '<p>'; } catch (error) { return error.name; } })()"
    assert page.evaluate(insert) == "TypeError"
    page.close()
