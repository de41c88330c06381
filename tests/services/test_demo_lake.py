"""The demo of lakes, shortened: it says identical only where that is so."""

import pytest

from tidemill.benchmarks import demo_lake as demo

pytestmark = pytest.mark.long

SHORT = ["--seconds", "3", "--large", "3000", "--pause", "0.03"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(mariadb_template, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_demo_ends_identical_and_leaves_nothing_behind(tmp_path, capsys):
    assert demo.main(SHORT) == 0
    assert "identical: " in capsys.readouterr().out
    assert [path.name for path in (tmp_path / ".demo").iterdir()] == ["lake.html"]


def test_one_row_changed_by_hand_makes_the_demo_fail_and_is_shown(capsys):
    assert demo.main([*SHORT, "--spoil"]) == 1
    output = capsys.readouterr().out
    assert "orders in the copy in Delta: " in output
    assert "only in the target: 1 rows\n    ('2000000', '1'," in output
