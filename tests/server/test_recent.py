"""Recent answers: made once for all who ask, and never older than a change."""

from __future__ import annotations

import asyncio

import pytest

from tidemill.actors import ManualClock
from tidemill.server import recent as module
from tidemill.server.recent import FRESH_SECONDS, RecentAnswers


class Made:
    """An application that counts its answers; `held` delays them."""

    def __init__(self) -> None:
        self.count = 0
        self.status = 200
        self.held: asyncio.Event | None = None

    async def __call__(self, scope, receive, send) -> None:
        self.count += 1
        body = b"%d" % self.count
        if self.held is not None:
            await self.held.wait()
        await send({"type": "http.response.start", "status": self.status, "headers": []})
        await send({"type": "http.response.body", "body": body})


@pytest.fixture
def made() -> Made:
    return Made()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def ask(made, clock):
    app = RecentAnswers(made, lambda path: path.startswith("/feeds"), clock)

    async def request(
        path: str = "/feeds", query: bytes = b"", method: str = "GET", reads: bool = True
    ) -> bytes:
        body = b""

        async def send(message) -> None:
            nonlocal body
            body += message.get("body", b"")
            if not reads and body:
                await asyncio.Event().wait()

        scope = {"type": "http", "method": method, "path": "/below" + path, "root_path": "/below"}
        await app({**scope, "query_string": query}, None, send)
        return body

    return request


async def test_an_answer_is_for_all_who_ask_while_it_is_fresh(ask, clock) -> None:
    assert [await ask() for _ in range(3)] == [b"1"] * 3
    clock.advance(FRESH_SECONDS)
    assert [await ask() for _ in range(2)] == [b"2"] * 2


async def test_another_query_or_path_has_another_answer(ask) -> None:
    assert [await ask(), await ask(query=b"a=1"), await ask("/feeds/a"), await ask()] == [
        b"1",
        b"2",
        b"3",
        b"1",
    ]


@pytest.mark.parametrize("case", [{"path": "/events"}, {"method": "HEAD"}])
async def test_what_is_no_view_is_answered_each_time(ask, case) -> None:
    assert [await ask(**case), await ask(**case)] == [b"1", b"2"]


async def test_a_refusal_is_not_kept(ask, made) -> None:
    made.status = 404
    assert [await ask(), await ask()] == [b"1", b"2"]


async def test_a_change_makes_answers_stale(ask) -> None:
    assert [await ask(), await ask("/other", method="POST"), await ask()] == [b"1", b"2", b"3"]


async def test_an_answer_that_was_made_during_a_change_is_not_kept(ask, made) -> None:
    made.held = asyncio.Event()
    change = asyncio.create_task(ask("/other", method="POST"))
    await asyncio.sleep(0)
    looking = asyncio.create_task(ask())
    await asyncio.sleep(0)
    made.held.set()
    assert await asyncio.gather(change, looking) == [b"1", b"2"]
    assert await ask() == b"3"


async def test_those_who_ask_at_once_share_one_answer(ask, made) -> None:
    made.held = asyncio.Event()
    asked = [asyncio.create_task(ask()) for _ in range(5)]
    await asyncio.sleep(0)
    made.held.set()
    assert await asyncio.gather(*asked) == [b"1"] * 5


async def test_a_reader_that_reads_nothing_holds_up_nobody(ask) -> None:
    stuck = asyncio.create_task(ask(reads=False))
    await asyncio.sleep(0)
    assert await ask() == b"1"
    stuck.cancel()


async def test_a_reader_that_leaves_holds_up_nobody(ask, made) -> None:
    made.held = asyncio.Event()
    first, second = asyncio.create_task(ask()), asyncio.create_task(ask())
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    made.held.set()
    assert await second == b"2"


async def test_answers_take_bounded_memory(ask, monkeypatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 2 * module.ENTRY_BYTES)
    for number in range(5):
        await ask(query=b"%d" % number)
    assert await ask(query=b"0") == b"6"
