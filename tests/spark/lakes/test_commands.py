"""`tidemill analyze` and `tidemill compact` on a lake."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tidemill.errors import ConfigError
from tidemill.spark.lakes import LakePlan, decode_lake_plan, encode_lake_plan

from .test_upkeep import Fed


def tidemill(*arguments: str | Path) -> tuple[int, str]:
    """Run a command; return its exit status and what it said."""
    done = subprocess.run(
        [sys.executable, "-m", "tidemill.cli", *arguments], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.soak
def test_a_lake_is_analyzed_and_compacted_while_its_feed_is_there(
    delta_jars: list[str], tmp_path: Path
) -> None:
    fed = Fed(tmp_path / "lake")
    fed.run(6)
    plan, page, after = tmp_path / "plan.json", tmp_path / "lake.html", tmp_path / "after.html"
    jars = f"spark.jars={','.join(delta_jars)}"
    status, said = tidemill("analyze", fed.url, "--plan", plan, "--page", page, "--config", jars)
    assert (status, "wrote" in said) == (0, True), said
    assert "tidemill compact" in page.read_text()
    assert decode_lake_plan(plan.read_bytes(), "plan").lake == fed.url
    status, said = tidemill("compact", fed.url, "--plan", plan, "--page", after, "--config", jars)
    assert status == 0, said
    assert "sort shop.item" in said
    assert "reading everything, measured: " in said
    assert "Before and after" in after.read_text()
    fed.run(2)
    fed.check()
    fed.sink.close()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["analyze", "delta://{0}/none"], "has no Delta table"),
        (
            ["analyze", "s3://bucket/lake"],
            "s3://bucket/lake: no lake that can be analyzed; accepted: delta:///",
        ),
        (["analyze", "delta://{0}", "--archive", "{0}"], "--archive: not with the lake delta://"),
        (["analyze", "--archive", "{0}", "--keep-hours", "9"], "--keep-hours: only with the URL of a lake"),
        (["compact", "delta://{0}"], "compact: give --plan, by tidemill analyze delta://"),
        (["compact", "delta://{0}", "--plan", "{0}/plan", "--up-to", "7"], "--up-to: not with the lake"),
        (["compact", "delta://{0}", "--plan", "{0}/none"], "none: No such file"),
        (["compact", "delta://{0}", "--plan", "{0}/plan"], "is for delta:///elsewhere"),
    ],
)
def test_mistakes_are_one_sentence(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    (tmp_path / "plan").write_text(encode_lake_plan(LakePlan(1, "delta:///elsewhere", 168, 1, [])))
    status, said = tidemill(*[one.format(tmp_path) for one in arguments])
    assert status != 0
    assert sentence in " ".join(said.split())
    assert "Traceback" not in said


def test_a_plan_of_another_version_is_refused() -> None:
    text = encode_lake_plan(LakePlan(2, "delta:///lake", 168, 1, []))
    with pytest.raises(ConfigError, match="plan has version 2; accepted: 1"):
        decode_lake_plan(text, "plan")
