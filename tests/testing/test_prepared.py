"""Commands that are forked do what processes of their own do."""

import os
import signal
import subprocess
import sys

import pytest

from tidemill.testing.prepared import CLI, FAILPOINT, Prepared, start

FEED = """\
name = "f"
[source]
url = "mysql://127.0.0.1:1/"
tables = ["a.*"]
retry_longest_seconds = 0.01
[[sink]]
url = "sqlite:///copy.db"
"""


def output_of(command, path, **options):
    with path.open("w+") as output:
        process = start(command, stdout=output, stderr=subprocess.STDOUT, **options)
        assert isinstance(process, Prepared)
        status = process.wait(120)
        output.seek(0)
        return status, output.read()


def test_it_prints_and_ends_as_a_process_does(tmp_path):
    command = [*CLI, "status", "nowhere.toml"]
    real = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert output_of(command, tmp_path / "out") == (real.returncode, real.stdout)
    assert real.returncode == 2


def test_any_module_of_tidemill_may_be_run(tmp_path):
    command = [sys.executable, "-m", "tidemill.benchmarks.demo", "--help"]
    real = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    assert output_of(command, tmp_path / "out") == (0, real.stdout)


def test_it_runs_where_it_is_told_to(tmp_path):
    (tmp_path / "feed.toml").write_text(FEED)
    _, said = output_of([*CLI, "status", "feed.toml"], tmp_path / "out", cwd=tmp_path)
    assert "no feed has run here" in said


def test_its_environment_is_that_of_the_moment(tmp_path, monkeypatch):
    (tmp_path / "feed.toml").write_text('data_dir = "${TIDEMILL_COPY}"\n' + FEED)
    command = [*CLI, "status", "feed.toml"]
    assert "TIDEMILL_COPY" in output_of(command, tmp_path / "out", cwd=tmp_path)[1]
    monkeypatch.setenv("TIDEMILL_COPY", "state")
    assert "no feed has run here" in output_of(command, tmp_path / "out", cwd=tmp_path)[1]
    monkeypatch.delenv("TIDEMILL_COPY")
    assert "TIDEMILL_COPY" in output_of(command, tmp_path / "out", cwd=tmp_path)[1]


def test_a_signal_is_its_exit_status(tmp_path):
    (tmp_path / "feed.toml").write_text(FEED.replace("0.01", "1"))
    with (tmp_path / "log").open("w") as log:
        process = start([*CLI, "run", "feed.toml"], stdout=log, stderr=log, cwd=tmp_path)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0)
    process.kill()
    assert process.wait() == process.poll() == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_a_failpoint_is_that_of_one_process(tmp_path):
    env = os.environ | {FAILPOINT: "no.point"}
    status, said = output_of([*CLI, "--help"], tmp_path / "out", env=env)
    assert status == 1
    assert "no point 'no.point'" in said
    assert output_of([*CLI, "--help"], tmp_path / "out")[0] == 0


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ([sys.executable, "-c", "pass"], {}),
        ([*CLI, "--help"], {"env": os.environ | {"TZ": "Asia/Tokyo"}}),
        ([*CLI, "--help"], {"stdout": subprocess.PIPE}),
        ([*CLI, "--help"], {"start_new_session": True}),
    ],
)
def test_what_a_fork_can_not_be_given_is_a_process_of_its_own(command, options):
    with start(command, **{"stdout": subprocess.DEVNULL, **options}) as process:
        assert isinstance(process, subprocess.Popen)
        process.communicate()
    assert process.returncode == 0


def test_the_process_of_forks_is_ended_by_who_asked():
    asks = "from tidemill.testing.prepared import *; assert start([*CLI, '--version']).wait(100) == 0"
    done = subprocess.run([sys.executable, "-X", "dev", "-c", asks], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
