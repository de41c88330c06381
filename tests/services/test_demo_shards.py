"""The demo of shards, shortened: it says identical only where that is so."""

import pytest

from tidemill.benchmarks import demo_shards as demo

SHORT = ["--seconds", "1", "--rows", "40", "--large", "100", "--pause", "0.3"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(mariadb_template, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.soak
def test_the_demo_of_shards_ends_identical_and_leaves_nothing_behind(tmp_path, capsys):
    assert demo.main(SHORT) == 0
    output = capsys.readouterr().out
    assert "identical: " in output
    assert "\n6 schema changes were executed in the merged table:\n" in output
    assert list((tmp_path / ".demo").iterdir()) == []


@pytest.mark.soak
def test_one_row_changed_by_hand_makes_the_demo_of_shards_fail(capsys):
    assert demo.main([*SHORT, "--spoil"]) == 1
    assert "only in the target: 1 rows" in capsys.readouterr().out


def test_a_schema_change_that_is_executed_again_is_counted(tmp_path):
    log = tmp_path / "statements.log"
    change = "\t4 Query\tALTER TABLE `whole`.`orders` ADD COLUMN `a` int, COMMENT='tidemill: altered at 7'"
    log.write_text("\n".join([change, "\t4 Query\tALTER TABLE `whole`.`orders` COMMENT=''", change]))
    assert demo.statements(log) == ["`whole`.`orders` ADD COLUMN `a` int"] * 2
