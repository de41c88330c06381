"""The history of a feed, in its file."""

from tidemill.server.history import History
from tidemill.server.model.feeds import HistoryEntry


def entry(text: str) -> HistoryEntry:
    return HistoryEntry(1.0, "operation", text, "somebody")


def test_entries_are_kept_over_restarts(tmp_path):
    path = tmp_path / "a.history"
    History(path).add(entry("paused"))
    assert [one.text for one in History(path).last(9)] == ["paused"]


def test_a_history_that_has_ended_leaves_no_file_behind(tmp_path):
    path = tmp_path / "a.history"
    history = History(path)
    history.add(entry("removed"))
    history.end()
    path.unlink()
    history.add(entry("stopped"))
    assert not path.exists()
    assert [one.text for one in history.last(9)] == ["stopped", "removed"]
