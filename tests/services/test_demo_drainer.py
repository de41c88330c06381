"""The demo of pumps, shortened: it says identical only where that is so."""

import pytest

from tidemill.benchmarks import demo_drainer as demo

pytestmark = pytest.mark.long

SHORT = ["--seconds", "4", "--large", "500", "--pause", "0.03"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(mariadb_template, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_demo_of_pumps_ends_identical_and_leaves_nothing_behind(tmp_path, capsys):
    assert demo.main(SHORT) == 0
    output = capsys.readouterr().out
    assert "identical: " in output
    assert "pump-4 has joined" in output
    assert "pump-1 has left" in output
    assert list((tmp_path / ".demo").iterdir()) == []


def test_one_row_changed_by_hand_makes_the_demo_of_pumps_fail(capsys):
    assert demo.main([*SHORT, "--spoil"]) == 1
    assert "bank.accounts in SQLite: 1,000 rows in the source, 1,000 in the target" in capsys.readouterr().out
