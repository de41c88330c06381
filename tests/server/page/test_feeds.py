"""The list of feeds: what needs a person comes first, and changes appear by themselves."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from .conftest import Open
from .recorded import RecordedFeed, served, sink_status, table_status


def lines(page: Page) -> list[tuple[str, str]]:
    """Return names and conditions of the feeds, from the top."""
    rows = page.get_by_role("table", name="Feeds").locator("tbody tr")
    return [
        (row.locator("th").inner_text(), row.locator(".badge").inner_text().replace("\n", " "))
        for row in rows.all()
    ]


def test_what_needs_a_person_comes_first(open_page: Open) -> None:
    feeds = [
        RecordedFeed("a-idle"),
        RecordedFeed("b-busy", rows_per_second=812.0),
        RecordedFeed("c-paused", state="stopped"),
        RecordedFeed("d-retrying", state="warning", detail="sink copy: connection lost"),
        RecordedFeed("e-stuck", sinks=[sink_status("copy", 340.0)]),
        RecordedFeed("f-behind", sinks=[sink_status("copy", 340.0)], rows_per_second=9_000.0),
        RecordedFeed("g-failed", state="failed", detail="sink copy: no table shop.orders"),
        RecordedFeed("h-done", state="finished"),
        RecordedFeed("i-new", state="starting"),
        RecordedFeed("j-loads", [table_status("shop.a", "loading")]),
        RecordedFeed("k-parked", [table_status("shop.a", "failed"), table_status("shop.b")]),
    ]
    with served(*feeds) as server:
        page = open_page(server.url)
        expect(page.get_by_role("heading", level=1)).to_have_text("4 of 11 feeds need you")
        assert lines(page) == [
            ("g-failed", "▲ Failed"),
            ("e-stuck", "▲ Stalled"),
            ("d-retrying", "◆ Warning"),
            ("k-parked", "◆ Warning"),
            ("f-behind", "● Behind"),
            ("j-loads", "● Loading"),
            ("i-new", "● Starting"),
            ("c-paused", "‖ Paused"),
            ("b-busy", "✓ Following"),
            ("a-idle", "✓ Idle"),
            ("h-done", "‖ Finished"),
        ]
        assert page.title() == "(4) tidemill"
        stuck = page.get_by_role("row", name="e-stuck")
        expect(stuck).to_contain_text("Nothing reaches the target, which is 5 min 40 s behind")
        expect(stuck).to_have_class("alarm")
        expect(page.get_by_role("row", name="f-behind")).to_contain_text("Catching up at 9,000 rows/s")
        expect(page.get_by_role("row", name="k-parked")).to_contain_text("1 table failed; the others go on")
        expect(page.get_by_role("row", name="g-failed")).to_contain_text("no table shop.orders")


def test_a_change_appears_by_itself_and_takes_no_focus(open_page: Open) -> None:
    feeds = [RecordedFeed("billing"), RecordedFeed("shop")]
    with served(*feeds) as server:
        page = open_page(server.url)
        expect(page.get_by_role("heading", level=1)).to_have_text("All 2 feeds are well")
        link = page.get_by_role("link", name="billing")
        link.focus()
        feeds[1].set(state="failed", detail="the disk is full")
        expect(page.get_by_role("heading", level=1)).to_have_text("1 of 2 feeds needs you")
        assert [name for name, _ in lines(page)] == ["shop", "billing"]
        expect(link).to_be_focused()
        feeds[1].set(state="normal", detail="", rows_per_second=12_345.0)
        expect(page.get_by_role("row", name="shop")).to_contain_text("12,345")
        expect(link).to_be_focused()


def test_feeds_are_searched_and_chosen_by_their_condition(open_page: Open) -> None:
    feeds = [RecordedFeed(f"shop-{number:03}") for number in range(300)]
    feeds += [RecordedFeed("crm", state="failed", detail="x"), RecordedFeed("erp", state="stopped")]
    with served(*feeds) as server:
        page = open_page(server.url)
        expect(page.locator("tbody tr")).to_have_count(200)
        page.get_by_role("button", name="Show all 302").click()
        expect(page.locator("tbody tr")).to_have_count(302)
        page.get_by_role("searchbox", name="Search feeds").fill("SHOP-17")
        expect(page.locator("tbody tr")).to_have_count(10)
        page.get_by_role("searchbox", name="Search feeds").fill("")
        page.get_by_role("button", name="Paused 1").click()
        expect(page.locator("tbody tr")).to_have_count(1)
        assert lines(page) == [("erp", "‖ Paused")]
        page.reload()
        expect(page.locator("tbody tr")).to_have_count(1)
        expect(page.get_by_role("button", name="Paused 1")).to_have_attribute("aria-pressed", "true")


def test_a_server_without_feeds_says_how_to_add_one(open_page: Open) -> None:
    with served() as server:
        page = open_page(server.url)
        expect(page.get_by_role("heading", level=1)).to_have_text("No feeds")
        expect(page.get_by_text("Put a feed file NAME.toml into the server's directory")).to_be_visible()


def test_the_colours_are_those_of_the_switch(open_page: Open) -> None:
    with served(RecordedFeed("shop")) as server:
        page = open_page(server.url, color_scheme="dark")

        def ground() -> str:
            return str(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))

        dark = ground()
        page.get_by_role("button", name="Colours: system").click()
        expect(page.get_by_role("button", name="Colours: light")).to_be_visible()
        light = ground()
        assert light != dark
        page.reload()
        assert ground() == light
        page.get_by_role("button", name="Colours: light").click()
        assert ground() == dark
