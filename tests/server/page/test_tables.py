"""Tables of a feed: 100,000 of them, searched and sorted by the server, a page at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from .conftest import Open
from .recorded import RecordedFeed, served, table_status

COUNT = 100_000


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    tables = [table_status(f"shop.t{number:06}", inserts=number) for number in range(COUNT)]
    tables[70_007] = table_status(
        "shop.t070007",
        "failed",
        error="Duplicate entry '7' for key 'PRIMARY'",
        inserts=3,
        updates=4,
        deletes=5,
    )
    tables[5] = table_status("shop.t000005", "loading", rows_loaded=250_000, rows_estimated=1_000_000)
    tables[6] = table_status("shop.t000006", "paused", lag_seconds=None)
    with served(RecordedFeed("shop", tables)) as server:
        yield f"{server.url}/#/feeds/shop/tables"


def names(page: Page) -> list[str]:
    return page.locator("tbody th").all_inner_texts()


def test_a_page_of_them_is_shown(open_page: Open, url: str) -> None:
    page = open_page(url)
    found = page.locator(".found")
    expect(found).to_have_text("1 to 100 of 100,000 tables")
    assert names(page) == [f"shop.t{number:06}" for number in range(100)]
    page.get_by_role("button", name="Next").click()
    expect(found).to_have_text("101 to 200 of 100,000 tables")
    page.get_by_role("button", name="Last").click()
    expect(found).to_have_text("99,901 to 100,000 of 100,000 tables")
    assert names(page)[-1] == "shop.t099999"
    expect(page.get_by_role("button", name="Next")).to_have_attribute("aria-disabled", "true")


def test_they_are_searched_and_sorted(open_page: Open, url: str) -> None:
    page = open_page(url)
    page.get_by_role("button", name="Rows").click()
    expect(page.locator("tbody th").first).to_have_text("shop.t099999")
    expect(page.get_by_role("columnheader", name="Rows")).to_have_attribute("aria-sort", "descending")
    page.get_by_role("searchbox", name="Search tables").press_sequentially("T0999")
    expect(page.locator(".found")).to_have_text("100 tables")
    expect(page.get_by_role("searchbox", name="Search tables")).to_be_focused()
    page.get_by_role("button", name="Rows").click()
    expect(page.locator("tbody th").first).to_have_text("shop.t099900")
    page.reload()
    expect(page.get_by_role("searchbox", name="Search tables")).to_have_value("T0999")
    expect(page.locator("tbody th").first).to_have_text("shop.t099900")
    page.get_by_role("searchbox", name="Search tables").fill("nothing like it")
    expect(page.locator(".found")).to_have_text("No table matches.")


def test_states_say_what_is_wrong_and_what_can_be_done(open_page: Open, url: str) -> None:
    page = open_page(url)
    page.get_by_role("button", name="Failed 1").click()
    row = page.get_by_role("row", name="shop.t070007")
    expect(row).to_contain_text("Duplicate entry '7' for key 'PRIMARY'")
    expect(page.locator("tbody tr")).to_have_count(1)
    assert row.get_by_role("button").all_inner_texts() == ["Resume"]
    expect(row.get_by_title("3 inserts, 4 updates, 5 deletes")).to_have_text("12")
    page.get_by_role("button", name="Loading 1").click()
    expect(page.get_by_role("row", name="shop.t000005")).to_contain_text(
        "25 %: 250,000 of about 1,000,000 rows"
    )
    page.get_by_role("button", name="Paused 1").click()
    expect(page.get_by_role("row", name="shop.t000006")).to_contain_text("\N{EN DASH}")


@pytest.mark.parametrize(
    ("state", "verb", "will"),
    [
        ("following", "Pause", "Its changes are no longer written"),
        ("following", "Reload", "All of its rows are read from the source again"),
        ("paused", "Resume", "Its rows are loaded again, and then it follows"),
        ("failed", "Resume", "Its rows are loaded again, and then it follows"),
        ("loading", "Pause", "Its changes are no longer written"),
    ],
)
def test_a_verb_says_what_will_happen_and_asks_the_server(
    open_page: Open, state: str, verb: str, will: str
) -> None:
    with served(RecordedFeed("shop", [table_status("shop.a/b c", state)])) as server:
        page = open_page(f"{server.url}/#/feeds/shop/tables")
        page.route("**/tables/*/*", lambda route: route.fulfill(json={"name": "shop.a/b c"}))
        page.get_by_role("button", name=f"{verb} shop.a/b c").click()
        dialog = page.get_by_role("dialog", name=f"{verb} shop.a/b c?")
        expect(dialog).to_contain_text(will)
        with page.expect_request(re.compile(f"/tables/shop.a%2Fb%20c/{verb.lower()}$")) as asked:
            dialog.get_by_role("button", name=verb).click()
        assert (asked.value.method, json.loads(asked.value.post_data or "")) == ("POST", {})
        assert asked.value.headers["content-type"] == "application/json"
        expect(page.locator("#said")).to_contain_text("shop.a/b c")
