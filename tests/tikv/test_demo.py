"""The demo, shortened: it says identical only where that is so."""

import os
import re
import subprocess

import pytest

from tidemill.benchmarks import demo
from tidemill.testing.child import CLI

from ..test_extras import MODULES

pytestmark = pytest.mark.long

SHORT = ["--seconds", "3", "--large", "2000", "--pause", "0.03"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_demo_ends_identical_and_leaves_nothing_behind(tmp_path, capsys):
    assert demo.main(SHORT) == 0
    output = capsys.readouterr().out
    found = re.search(r"identical: ([\d,]+) rows in 6 tables", output)
    assert found, output
    assert int(found[1].replace(",", "")) > 2000 + 1000
    assert re.search(r"the sum of the balances was right at [1-9][\d,]* commit ts", output)
    assert len(re.findall(r"identical: [\d,]+ rows in 6 tables", output)) == 2, "Spark's copy too"
    assert [path.name for path in (tmp_path / ".demo").iterdir()] == ["archive.html"]


def test_the_command_needs_no_extra_and_finds_one_row_changed_by_hand(tmp_path):
    # Also in the processes that it starts.
    missing = {name: None for modules in MODULES.values() for name in modules}
    (tmp_path / "sitecustomize.py").write_text(f"import sys\nsys.modules.update({missing})\n")
    done = subprocess.run(
        [*CLI, "demo", "--seconds", "3", "--spoil"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "bank.accounts: 1,000 rows in the source, 1,000 in the target" in done.stdout
    assert "only in the source: 1 rows\n    ('471'," in done.stdout
    assert "only in the target: 1 rows\n    ('471'," in done.stdout
    assert " event=normal feed=demo " in done.stderr, "the feed is shown while it runs"
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith("__")] == [
        "sitecustomize.py"
    ]
