"""Changes of a database in the browser: FastAPI sends each transaction as a server-sent event.

SOURCE=mysql://user:password@host:port uvicorn examples.server_sent_events:app
"""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.responses import StreamingResponse

import tidemill

MOST_WAITING = 1_000
"""Events of a browser that doesn't read; then its connection is closed, and it connects again."""
listeners: set[asyncio.Queue[str | None]] = set()


async def receive(txn: tidemill.Transaction) -> None:
    rows = [
        {"op": row.op, "table": row.table.full_name, "before": row.before_dict(), "after": row.after_dict()}
        for row in txn.rows
    ]
    event = f"id: {txn.commit_ts}\ndata: {json.dumps(rows, default=str)}\n\n"
    for queue in [*listeners]:
        if queue.qsize() < MOST_WAITING:
            queue.put_nowait(event)
        else:
            listeners.discard(queue)
            queue.put_nowait(None)


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncGenerator[None, None]:
    directory = os.environ.get("DATA_DIR", "state")
    handle = tidemill.follow(receive, os.environ["SOURCE"], ["shop.*"], data_dir=directory)
    yield
    handle.stop()
    await handle


app = FastAPI(lifespan=lifespan)


@app.get("/changes")
async def changes() -> StreamingResponse:
    queue: asyncio.Queue[str | None] = asyncio.Queue()
    listeners.add(queue)

    async def events() -> AsyncIterator[str]:
        yield ": connected\n\n"
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            listeners.discard(queue)

    return StreamingResponse(events(), media_type="text/event-stream")
