"""The examples with an emulated cluster run as they are."""

import runpy
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_feed_of_an_emulated_cluster(capsys):
    runpy.run_path(str(EXAMPLES / "emulated.py"), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [
        "insert {'id': 1, 'total': Decimal('9.99')}",
        "update {'id': 1, 'total': Decimal('9.99')} {'id': 1, 'total': Decimal('19.99')}",
    ]


def test_changes_as_arrow_batches(capsys):
    runpy.run_path(str(EXAMPLES / "arrow_batches.py"), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [
        "2 rows of 10.00",
        "['delete', 'update'] [{'id': 2, 'total': Decimal('0.01')}, {'id': 1, 'total': Decimal('9.99')}]",
    ]
