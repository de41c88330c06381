"""The demo, shortened: it says identical only where that is so."""

import pytest

from tidemill.benchmarks import demo_kafka as demo

pytestmark = pytest.mark.long

SHORT = ["--seconds", "3", "--rows", "400", "--large", "3000", "--pause", "0.03"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(mariadb_template, private_kafka, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_demo_ends_identical_although_the_broker_is_killed(tmp_path, capsys):
    assert demo.main(SHORT) == 0
    assert "identical: " in capsys.readouterr().out
    assert list((tmp_path / ".demo").iterdir()) == []
