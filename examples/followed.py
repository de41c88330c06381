"""An async function gets each transaction, until the service is told to stop.

python examples/followed.py mysql://user:password@host:port
"""

import asyncio
import signal
import sys

import tidemill


async def receive(txn: tidemill.Transaction) -> None:
    for row in txn.rows:
        print(tidemill.timestamp(txn.commit_ts), row.op, row.table.full_name, row.after_dict())


async def main(source: str, data_dir: str = "state", until: str | None = None) -> None:
    handle = tidemill.follow(receive, source, ["shop.*"], data_dir=data_dir, until=until)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, handle.stop)
    await handle


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
