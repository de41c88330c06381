"""Cases of dead letters as text, for every SQL target.

`30 insert 1 a` is a change of shop.orders in the transaction with commit ts 30, `update 1 a 2 b` one that
also changes the key; `loose` before the operation is the table without a key. The target rejects a note that
begins with "bad", until `allow`.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from tidemill.errors import TidemillError
from tidemill.events import Chunk
from tidemill.sink import Delivery, DeliveryOptions
from tidemill.sink.registry import open_dead_letters
from tidemill.testing.cases import load
from tidemill.testing.changes import (
    LOOSE,
    ORDERS,
    create,
    delete,
    insert,
    transaction,
    update,
)
from tidemill.testing.progress import eventually

CASES = load(Path(__file__).with_name("letters.txt"))
TABLES = {"orders": ORDERS, "loose": LOOSE}


def box_of(url):
    return open_dead_letters(url, feed="test")


class Play:
    """Plays commands on a place; `reject` and `allow` add and remove its constraint."""

    def __init__(self, place, url, *, reject, allow, **options):
        self._place, self._url = place, url
        self._allow = allow
        self._options = {"on_error": "dead letters", **options}
        self.said = []
        self.deliver([create(1, ORDERS), create(2, LOOSE), transaction(3, chunk=Chunk(""))])
        reject()

    def deliver(self, items):
        with closing(self._place.sink(**self._options)) as sink:
            work = Delivery(sink, sink.open(), "src", DeliveryOptions(rowless_seconds=0, max_rows=1000))
            work.accept(items)
            work.run(0)
            eventually(lambda: self._is_durable(work, items[-1].commit_ts))

    def _is_durable(self, work, ts):
        work.run(0)
        checkpoint = work.statistics().checkpoint
        return checkpoint is not None and checkpoint.ts >= ts

    def run(self, commands):
        items = {}
        for line in [*commands.splitlines(), ""]:
            word, *rest = line.split() or [""]
            if word.isdigit():
                items.setdefault(int(word), []).append(self._change(rest))
                continue
            if items:
                self._try([transaction(ts, *rows) for ts, rows in items.items()])
                items = {}
            self._command(word, rest)
        with closing(box_of(self._url)) as box:
            for one in box.list():
                self.said.append(f"letter {one.id}: {one.op} of {one.key} at {one.ts}: {_reason(one)}")
        for name, table in TABLES.items():
            if rows := self._place.rows(table):
                listed = sorted(rows, key=str)
                self.said.append(f"{name}: {', '.join(' '.join(map(str, row)) for row in listed)}")
        return "\n".join(self.said)

    def _change(self, words):
        table = ORDERS
        if words[0] == "loose":
            table = LOOSE
            words = words[1:]
        op, *values = words
        rows = [(int(key), note) for key, note in zip(values[::2], values[1::2], strict=True)]
        match op:
            case "insert":
                return insert(table, *rows[0])
            case "delete":
                return delete(table, *rows[0])
        return update(table, *rows)

    def _command(self, word, rest):
        number = int(rest[0]) if rest and rest[0].isdigit() else None
        table = rest[0] if rest and number is None else None
        match word:
            case "limit":
                self._options["max_dead_letters"] = number
            case "stop":
                self._options["on_error"] = "stop"
            case "allow":
                self._allow()
            case "retry":
                with closing(box_of(self._url)) as box:
                    found = box.retry(table, number)
                applied = " ".join(map(str, found.applied)) or "none"
                left = " ".join(str(one.id) for one in found.left) or "none"
                self.said.append(f"applied {applied}, rejected again {left}")
            case "drop":
                with closing(box_of(self._url)) as box:
                    self.said.append(f"dropped {' '.join(map(str, box.drop(table, number))) or 'none'}")

    def _try(self, items):
        try:
            self.deliver(items)
        except TidemillError as error:
            text = str(error)
            self.said.append(f"stopped: {text[text.index('feed ') :] if 'feed ' in text else _plain(text)}")


def _reason(letter):
    for known in ("bad note", "no such row", "earlier change"):
        if known in letter.reason:
            return known
    return "duplicate" if "uplicate" in letter.reason or "UNIQUE" in letter.reason else letter.reason


def _plain(text):
    """Return an error without the target's name and the words of its driver."""
    return text[text.index(": ") + 2 :].partition(": ")[0]
