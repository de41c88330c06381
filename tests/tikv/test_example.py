"""The example that docs/tikv.md names runs as it is."""

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "emulated.py"


def test_the_example_runs(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [
        "insert {'id': 1, 'total': Decimal('9.99')}",
        "update {'id': 1, 'total': Decimal('9.99')} {'id': 1, 'total': Decimal('19.99')}",
    ]
