"""Follow a database inside an asyncio service: batches of transactions, without blocking the loop."""

import asyncio
import sys

import tidemill


async def follow(source: str, data_dir: str, until: str | None) -> int:
    rows = 0
    async with tidemill.open(source=source, tables=["shop.*"], data_dir=data_dir, until=until) as feed:
        async for batch in feed.batches():
            rows += sum(len(txn.rows) for txn in batch)
            feed.ack(batch[-1])  # and with it everything before
    return rows


async def heartbeat(beats: list[float]) -> None:
    """Do the service's other work at the same time."""
    while True:
        beats.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0.01)


async def main(source: str, data_dir: str = "state", until: str | None = None) -> None:
    beats: list[float] = []
    service = asyncio.create_task(heartbeat(beats))
    rows = await follow(source, data_dir, until)
    service.cancel()
    print(f"{rows} rows, {len(beats)} heartbeats meanwhile")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
