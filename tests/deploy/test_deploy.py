"""Files of deploy/: their metrics are those of a real feed, they are read, and their commands run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import promql_parser
import pymysql
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tidemill import config
from tidemill.engine.declared_metrics import METRICS
from tidemill.engine.options import feed_options
from tidemill.testing.child import CLI, Child
from tidemill.testing.mariadb import PASSWORD, MariaDb
from tidemill.testing.progress import completed, eventually

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = yaml.safe_load((DEPLOY / "prometheus" / "tidemill.rules.yml").read_text())
DASHBOARD = json.loads((DEPLOY / "grafana" / "tidemill.json").read_text())
COMPOSE = yaml.safe_load((DEPLOY / "compose" / "compose.yml").read_text())
EXPRESSIONS = {
    **{rule["alert"]: rule["expr"] for group in RULES["groups"] for rule in group["rules"]},
    **{
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in DASHBOARD["panels"]
        for target in panel["targets"]
    },
}
CONTAINERFILE = (DEPLOY / "Containerfile").read_text()
FEED = "/etc/tidemill/feed.toml"
"""Where a container has its feed's file."""
KUBERNETES = {
    one["kind"]: one for one in yaml.safe_load_all((DEPLOY / "kubernetes" / "tidemill.yaml").read_text())
}
POD = KUBERNETES["StatefulSet"]["spec"]["template"]["spec"]


def instruction(name: str) -> list[str]:
    """Return the last instruction of this name in the Containerfile, as its list of arguments."""
    found: list[str] = json.loads(re.findall(rf"^\s*{name} (\[.*\])$", CONTAINERFILE, re.M)[-1])
    return found


PROBES = {
    "HEALTHCHECK": json.loads(re.findall(r"HEALTHCHECK.*\\\n\s*CMD (\[.*\])", CONTAINERFILE)[0]),
    **{name: POD["containers"][0][name]["exec"]["command"] for name in ("livenessProbe", "readinessProbe")},
}
SOMETIMES = {"tidemill_wait_seconds", "tidemill_log_hours_left", "tidemill_table_lag_seconds"}
"""Metrics that a feed has only while something waits, if its source purges its log, or while tables lag."""


def selectors(node: Any) -> Iterator[tuple[str, set[str]]]:
    """Yield the names of metrics and of their labels in an expression."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node.name, {matcher.name for matcher in node.matchers.matchers}
    for part in ("lhs", "rhs", "expr", "param", "vector_selector", "vs"):
        if (child := getattr(node, part, None)) is not None:
            yield from selectors(child)
    for child in getattr(node, "args", None) or ():
        yield from selectors(child)


class Compose:
    """The compose file without containers: databases with its options, and the feed's file."""

    def __init__(self, directory: Path, template: Path) -> None:
        services = COMPOSE["services"]
        self.source = MariaDb(directory / "source", *services["source"]["command"][1:], template=template)
        self.copy = MariaDb(directory / "copy", *services["copy"]["command"], template=template)
        self.directory = directory

    def feed_file(self) -> Path:
        text = (DEPLOY / "compose" / "feed.toml").read_text()
        for name, server in (("source", self.source), ("copy", self.copy)):
            assert f"@{name}:3306" in text
            text = text.replace(f"@{name}:3306", f"@127.0.0.1:{server.port}")
        text = text.replace("/var/lib/tidemill", str(self.directory))
        path = self.directory / "feed.toml"
        path.write_text(text)
        return path


@pytest.fixture(scope="module")
def composed(
    tmp_path_factory: pytest.TempPathFactory, mariadb_template: Path
) -> Iterator[dict[str, set[str]]]:
    """The compose file's feed runs; return its metrics with their labels, as the command prints them."""
    compose = Compose(tmp_path_factory.mktemp("compose"), mariadb_template)
    with compose.source, compose.copy:
        with compose.source.connect() as connection, connection.cursor() as cursor:
            for statement in (DEPLOY / "compose" / "shop.sql").read_text().split(";"):
                if statement.strip():
                    cursor.execute(statement)
        file = compose.feed_file()
        os.environ["MARIADB_PASSWORD"] = PASSWORD
        command = [str(file) if one == FEED else one.replace(":8300", ":0") for one in instruction("CMD")]
        with Child([*CLI, *command], compose.directory / "run.log") as feed:

            def is_copied() -> bool:
                try:
                    with closing(compose.copy.connect()) as copy, copy.cursor() as cursor:
                        cursor.execute("SELECT name FROM shop.item ORDER BY id")
                        return [row[0] for row in cursor.fetchall()] == ["apple", "pear", "plum"]
                except pymysql.err.Error:
                    return False

            eventually(is_copied, sign=lambda: feed.output())

            def printed() -> dict[str, set[str]]:
                done = completed([*CLI, "status", str(file), "--prometheus"])
                assert done.returncode == 0, done.stderr
                return {
                    sample.name: {*sample.labels}
                    for family in text_string_to_metric_families(done.stdout)
                    for sample in family.samples
                }

            yield eventually(
                lambda: found if "tidemill_head_timestamp_seconds" in (found := printed()) else None
            )
            url = feed.wait_until(lambda: re.search(r"http://127.0.0.1:\d+", feed.output()))[0]
            for name, probe in PROBES.items():
                (python, flag, program) = probe
                assert (python, flag) == ("python", "-c")
                program = program.replace("http://127.0.0.1:8300", url)
                assert completed([sys.executable, flag, program]).returncode == 0, name
                missing = program.replace(url, "http://127.0.0.1:1")
                assert completed([sys.executable, flag, missing]).returncode != 0, name
        os.environ.pop("MARIADB_PASSWORD")


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_an_expression_names_metrics_and_labels_of_a_real_feed(
    expression: str, composed: dict[str, set[str]]
) -> None:
    named = list(selectors(promql_parser.parse(expression.replace("$feed", "shop"))))
    assert named, expression
    assert {name for name, _ in named} == set(re.findall(r"\btidemill_\w+", expression))
    for name, labels in named:
        if name in SOMETIMES:
            assert any(metric.series == name for metric in METRICS)
            continue
        assert name in composed
        assert labels <= composed[name]


def test_every_alert_says_what_is_wrong_and_where() -> None:
    for group in RULES["groups"]:
        for rule in group["rules"]:
            assert rule["labels"]["severity"] in ("page", "ticket")
            assert re.search(r"\$labels\.(feed|sink)", rule["annotations"]["summary"])


def test_every_alert_is_in_the_document() -> None:
    document = (DEPLOY.parent / "docs" / "reference" / "monitoring.md").read_text()
    missing = [rule["alert"] for rule in RULES["groups"][0]["rules"] if rule["alert"] not in document]
    assert missing == []


def test_panels_have_places_of_their_own() -> None:
    places = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in DASHBOARD["panels"]]
    assert len({*places}) == len(places) == len({panel["id"] for panel in DASHBOARD["panels"]})


def test_the_compose_file_is_whole() -> None:
    services, volumes = COMPOSE["services"], COMPOSE["volumes"]
    for service in services.values():
        assert {*service.get("depends_on", {})} <= services.keys()
        assert "image" in service or "build" in service
        for mount in service.get("volumes", ()):
            origin = mount.split(":")[0]
            assert origin in volumes or (DEPLOY / "compose" / origin).exists(), mount
    build = services["feed"]["build"]
    assert (DEPLOY / "compose" / build["context"] / build["dockerfile"]).resolve() == DEPLOY / "Containerfile"


def test_the_container_runs_as_a_user_of_its_own() -> None:
    text = CONTAINERFILE
    user = re.findall(r"^USER (\S+)$", text, re.M)
    assert user == ["tidemill"]
    assert text.index("useradd") < text.index("USER tidemill") < text.index("ENTRYPOINT")
    extras = {*re.findall(r"tidemill\[([\w,]+)\]|/src\[([\w,]+)\]", text)}
    assert len({"".join(pair) for pair in extras}) == 1, "what is built is what is installed"


def test_the_containers_write_to_their_volumes_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kubernetes and compose mount the folders that the feed's file and the image name."""
    (container,) = POD["containers"]
    assert container["args"] == instruction("CMD")
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert COMPOSE["services"]["feed"]["read_only"]
    assert POD["securityContext"]["runAsUser"] == int(re.findall(r"--uid (\d+)", CONTAINERFILE)[0])
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    home = re.findall(r"^VOLUME (\S+)$", CONTAINERFILE, re.M)[0]
    assert mounts == {str(Path(FEED).parent), home, "/tmp"}
    volumes = {one["name"] for one in POD["volumes"]} | {
        one["metadata"]["name"] for one in KUBERNETES["StatefulSet"]["spec"]["volumeClaimTemplates"]
    }
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    text = KUBERNETES["ConfigMap"]["data"]["feed.toml"]
    given = KUBERNETES["Secret"]["stringData"]
    assert set(re.findall(r"\$\{(\w+)\}", text)) == set(given)
    for name in given:
        monkeypatch.setenv(name, "secret")
    options = feed_options(config.expand(tomllib.loads(text)))
    assert str(options.data_dir).startswith(f"{home}/")


def test_the_unit_is_valid(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("THE UNIT IS NOT VERIFIED: there is no systemd-analyze")
    unit = shutil.copy(DEPLOY / "systemd" / "tidemill@.service", tmp_path / "tidemill@shop.service")
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    said = [line for line in done.stderr.splitlines() if "tidemill" in line]
    assert (done.returncode, said) == (0, [])
