"""A full-text index of a table, kept by the table's changes: here SQLite's, in place of a search server.

python examples/search_index.py mysql://user:password@host:port
"""

import sqlite3
import sys
from contextlib import closing

import tidemill


class Index:
    """Articles by id. A transaction that comes again, after a crash, leaves the same index."""

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, check_same_thread=False)
        self._connection.execute("CREATE VIRTUAL TABLE IF NOT EXISTS article USING fts5 (title, text)")

    def apply(self, txn: tidemill.Transaction) -> None:
        with self._connection:
            for row in txn.rows:
                before, after = row.before_dict(), row.after_dict()
                if before:
                    self._connection.execute("DELETE FROM article WHERE rowid = ?", (before["id"],))
                if after:
                    self._connection.execute("DELETE FROM article WHERE rowid = ?", (after["id"],))
                    values = (after["id"], after["title"], after["text"])
                    self._connection.execute(
                        "INSERT INTO article (rowid, title, text) VALUES (?, ?, ?)", values
                    )

    def find(self, words: str) -> list[str]:
        """Return the titles of the articles with these words, the best first."""
        found = self._connection.execute(
            "SELECT title FROM article WHERE article MATCH ? ORDER BY rank", (words,)
        )
        return [title for (title,) in found]

    def close(self) -> None:
        self._connection.close()


def main(source: str, path: str = "index.db", data_dir: str = "state", until: str | None = None) -> None:
    with closing(Index(path)) as index:
        tidemill.follow(index.apply, source, ["shop.articles"], data_dir=data_dir, until=until)


if __name__ == "__main__":
    main(*sys.argv[1:])
