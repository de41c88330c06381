"""The connection to the server: lost, found again, and with a token."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from playwright.sync_api import expect

from tidemill.server.security import Access

from .conftest import Open
from .recorded import RecordedFeed, served

LOST = "No connection to the server since"
TOKEN = "t" * 32


def test_a_lost_server_is_said_and_found_again(open_page: Open) -> None:
    feed = RecordedFeed("shop")
    with ExitStack() as first:
        server = first.enter_context(served(feed))
        page = open_page(f"{server.url}/#/feeds/shop")
        expect(page.get_by_role("heading", level=1)).to_have_text("shop")
        expect(page.locator("#connection")).to_have_text("Live")
        first.close()
        expect(page.get_by_role("alert").filter(has_text=LOST)).to_be_visible()
        expect(page.locator("#connection")).to_have_text("No connection")
        # The last state stays, and nothing can be asked for.
        expect(page.get_by_role("heading", level=1)).to_have_text("shop")
        expect(page.get_by_role("button", name="Pause")).to_have_attribute("aria-disabled", "true")
        feed.set(state="failed", detail="the disk is full")
        with served(feed, listen=server.url.partition("://")[2]):
            expect(page.get_by_role("alert").filter(has_text=LOST)).to_have_count(0)
            expect(page.locator("#connection")).to_have_text("Live")
            expect(page.locator(".cause")).to_have_text(
                "the disk is full: free space on that disk, or enlarge it"
            )


def test_streams_end_with_their_server(open_page: Open, caplog: pytest.LogCaptureFixture) -> None:
    with served(RecordedFeed("shop")) as server:
        page = open_page(server.url)
        expect(page.locator("#connection")).to_have_text("Live")
    assert "timeout graceful shutdown exceeded" not in caplog.text


def test_a_server_that_is_away_at_first_is_not_taken_for_an_empty_one(open_page: Open) -> None:
    with served(RecordedFeed("shop")) as server:
        page = open_page("about:blank")
        page.route("**/events*", lambda route: route.abort())
        page.goto(server.url)
        expect(page.get_by_role("alert").filter(has_text=LOST)).to_contain_text("This page tries again.")
        expect(page.locator("h1")).to_have_count(0)
        page.unroute("**/events*")
        expect(page.get_by_role("link", name="shop")).to_be_visible()


def test_a_lost_network_is_said_and_found_again(open_page: Open) -> None:
    with served(RecordedFeed("shop")) as server:
        page = open_page(server.url)
        expect(page.locator("#connection")).to_have_text("Live")
        page.context.set_offline(True)
        expect(page.get_by_role("alert").filter(has_text=LOST)).to_be_visible()
        page.context.set_offline(False)
        expect(page.locator("#connection")).to_have_text("Live")


def test_a_token_is_asked_for_once(open_page: Open) -> None:
    with served(RecordedFeed("shop"), access=Access(tokens={TOKEN: "alice"})) as server:
        page = open_page(server.url)
        dialog = page.get_by_role("dialog", name="Token")
        expect(dialog).to_contain_text("This server answers to clients with a token only.")
        dialog.get_by_role("textbox").fill("wrong")
        dialog.get_by_role("button", name="Continue").click()
        expect(dialog).to_contain_text("The server doesn't know this token.")
        dialog.get_by_role("textbox").fill(TOKEN)
        page.keyboard.press("Enter")
        expect(page.get_by_role("link", name="shop")).to_be_visible()
        page.reload()
        expect(page.get_by_role("link", name="shop")).to_be_visible()
        expect(dialog).to_have_count(0)
        page.get_by_role("link", name="shop").click()
        expect(page.get_by_role("heading", name="Last events")).to_be_visible()


def test_a_feed_that_is_gone_is_said(open_page: Open) -> None:
    with served(RecordedFeed("shop")) as server:
        page = open_page(f"{server.url}/#/feeds/crm")
        expect(page.get_by_role("heading", level=1)).to_have_text("No feed crm")
        page.get_by_role("link", name="All feeds").click()
        expect(page.get_by_role("link", name="shop")).to_be_visible()


def test_a_hidden_tab_leaves_its_connection_to_others(open_page: Open) -> None:
    hide = """is => {
        Object.defineProperty(document, "hidden", { configurable: true, get: () => is });
        document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
    }"""
    with served(RecordedFeed("shop")) as server:
        page = open_page(server.url)
        expect(page.locator("#connection")).to_have_text("Live")
        with page.expect_event("requestfailed", lambda request: "/events" in request.url):
            page.evaluate(hide, True)
        with page.expect_request(lambda request: "/events" in request.url):
            page.evaluate(hide, False)
        expect(page.locator("#connection")).to_have_text("Live")
