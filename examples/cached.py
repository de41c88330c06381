"""A cache that a database keeps fresh: whoever changes a row, its value leaves the cache.

python examples/cached.py mysql://user:password@host:port
"""

import sys
from collections.abc import Callable
from threading import Lock
from typing import Any

import tidemill


class Cache:
    """Values of `shop.products` by id. A value that was loaded while a row changed isn't kept."""

    def __init__(self, load: Callable[[Any], object]) -> None:
        self._load = load
        self._lock = Lock()
        self._values: dict[Any, object] = {}
        self._changes = 0

    def get(self, key: Any) -> object:
        with self._lock:
            if key in self._values:
                return self._values[key]
            changes = self._changes
        value = self._load(key)
        with self._lock:
            if changes == self._changes:
                self._values[key] = value
        return value

    def forget(self, txn: tidemill.Transaction) -> None:
        images = [image for row in txn.rows for image in (row.before_dict(), row.after_dict()) if image]
        with self._lock:
            self._changes += 1
            for image in images:
                self._values.pop(image["id"], None)


def follow(cache: Cache, source: str, data_dir: str = "state") -> tidemill.FollowHandle:
    """Begin to empty the cache; the handle stops it. A new process begins with an empty one."""
    return tidemill.follow(cache.forget, source, ["shop.products"], data_dir=data_dir, block=False)


if __name__ == "__main__":
    with follow(Cache(lambda key: f"product {key}"), *sys.argv[1:]) as handle:
        handle.wait()
