from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from tidemill import config
from tidemill.config.reference import reference
from tidemill.config.schema import section_schema
from tidemill.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    url: str = ""
    memory_bytes: int = 1 << 20
    workers: int = 2
    snapshot: bool = True
    order: Literal["commit", "arrival"] = "commit"


def test_a_section_fills_its_options():
    table = {"url": "x", "memory_bytes": "64MiB", "snapshot": False}
    assert config.build(Options, table, "sorter") == Options(url="x", memory_bytes=64 << 20, snapshot=False)


def test_an_unknown_key_names_the_nearest_and_all_that_are_accepted():
    with pytest.raises(ConfigError) as caught:
        config.build(Options, {"memory_byte": 1}, "sorter")
    message = str(caught.value)
    assert message.startswith("sorter.memory_byte: no such key; did you mean 'memory_bytes'?")
    assert all(name in message for name in ("url", "memory_bytes", "workers", "snapshot"))


def test_a_key_that_resembles_nothing_still_lists_what_there_is():
    with pytest.raises(
        ConfigError, match=r"^sorter\.zzz: no such key \(accepted: memory_bytes, order, snapshot"
    ):
        config.build(Options, {"zzz": 1}, "sorter")


def test_a_wrong_type_is_named_with_its_key_and_the_type_that_is_wanted():
    with pytest.raises(ConfigError, match=r"^sorter\.workers: expected `int`, got `str`"):
        config.build(Options, {"workers": "two"}, "sorter")


def test_a_value_that_is_none_of_several_lists_them():
    with pytest.raises(ConfigError, match=r"^sorter\.order: 'any' is none of 'commit', 'arrival'"):
        config.build(Options, {"order": "any"}, "sorter")
    assert config.build(Options, {"order": "arrival"}, "sorter").order == "arrival"


@pytest.mark.parametrize(
    ("text", "count"), [(0, 0), (4096, 4096), ("4096", 4096), ("512KiB", 512 << 10), ("2 GiB", 2 << 30)]
)
def test_sizes(text, count):
    assert config.parse_bytes(text, "x") == count


@pytest.mark.parametrize("text", ["64MB", "-1", -1, "MiB", True, 1.5, None])
def test_what_is_no_size_is_refused_with_an_example(text):
    with pytest.raises(ConfigError, match=r'^sorter\.memory_bytes: .* for instance "64MiB"'):
        config.parse_bytes(text, "sorter.memory_bytes")


def test_variables_come_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("REPL_PASSWORD", "secret")
    path = tmp_path / "feed.toml"
    path.write_text('[source]\nurl = "mysql://repl:${REPL_PASSWORD}@db"\ntables = ["a.${REPL_PASSWORD}"]')
    assert config.read(path) == {"source": {"url": "mysql://repl:secret@db", "tables": ["a.secret"]}}


def test_an_unset_variable_is_named_with_the_key_that_wants_it(tmp_path, monkeypatch):
    monkeypatch.delenv("REPL_PASSWORD", raising=False)
    path = tmp_path / "feed.toml"
    path.write_text('[source]\nurl = "mysql://repl:${REPL_PASSWORD}@db"')
    with pytest.raises(ConfigError, match=r"^source\.url: the environment has no variable REPL_PASSWORD"):
        config.read(path)


def test_a_file_that_is_not_toml_or_not_there_is_named(tmp_path):
    path = tmp_path / "feed.toml"
    with pytest.raises(ConfigError, match=r"feed\.toml: No such file"):
        config.read(path)
    path.write_text("a = 1\nname = \nb = 2")
    with pytest.raises(ConfigError, match=r"feed\.toml: not TOML: .*line 2"):
        config.read(path)


TEXT = config.Form(is_text=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    most_rows: Annotated[int, config.text(int, "maxRows")]
    path: Annotated[Path | None, config.text(Path, "path")] = None
    inner: Annotated[int, config.INTERNAL] = 7


def test_text_becomes_values_of_the_fields_types():
    given = {"URL": "x", "memory_bytes": "1MiB", "workers": "3", "snapshot": "false"}
    expected = Options(url="x", memory_bytes=1 << 20, workers=3, snapshot=False)
    assert config.build(Options, given, "source", TEXT) == expected
    with pytest.raises(ConfigError, match=r"^source\.workers: accepted: a whole number"):
        config.build(Options, {"workers": "two"}, "source", TEXT)


def test_a_field_may_have_another_name_and_a_parser_of_its_own():
    found = config.build(Texts, {"MAXROWS": "5", "path": "/a"}, "", TEXT)
    assert found == Texts(most_rows=5, path=Path("/a"))
    with pytest.raises(ConfigError, match=r"^x\.inner: no such key"):  # which isn't given as text
        config.build(Texts, {"maxRows": "5", "inner": "5"}, "x", TEXT)
    with pytest.raises(ConfigError, match=r"^x\.maxRows: invalid literal"):
        config.build(Texts, {"maxRows": "many"}, "x", TEXT)


def test_a_field_without_a_default_must_be_given():
    with pytest.raises(ConfigError, match=r"^x\.maxRows: missing$"):
        config.build(Texts, {}, "x")
    assert config.build(Texts, {}, "x", known={"most_rows": 1}) == Texts(most_rows=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule."""

    kinds: tuple[Literal["add", "drop"], ...] = ()
    """Kinds | of changes."""
    least: int = 0
    most: int = 9

    def __post_init__(self) -> None:
        if self.least > self.most:
            raise ConfigError(f"least = {self.least}: at most {self.most}")
        if self.most > 99:
            raise ConfigError("it is never true")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place."""

    depth: int
    """Depth in metres."""


def _variants() -> list[config.Variant]:
    return [config.Variant(("sea", "lake"), Place)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    name: Annotated[str, config.Given(numbered="target-{}")]
    url: str
    rest: Annotated[Mapping[str, Any], config.Rest(_variants)]


def _both(written: str | Options, where: str) -> Options:
    return Options(url=f"{where}={written}") if isinstance(written, str) else written


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    rules: Annotated[tuple[Rule, ...], config.Given(name="rule")] = ()
    """Rules."""
    targets: Annotated[tuple[Target, ...], config.Given(name="target")] = ()
    options: Options | None = None
    both: Annotated[Options | None, config.Given(kind=str | Options, parse=_both)] = None


def file(**tables: Any) -> File:
    return config.build(File, tables, "")


def test_sections_are_built_wherever_they_are():
    found = file(options={"workers": 3}, rule=[{"kinds": ["add"]}, {"least": 4}])
    assert found == File(options=Options(workers=3), rules=(Rule(kinds=("add",)), Rule(least=4)))


def test_options_that_a_program_made_are_checked_as_those_of_a_file():
    assert file(options=Options(memory_bytes="2MiB")).options == Options(memory_bytes=2 << 20)
    with pytest.raises(ConfigError, match=r"^options\.workers: expected `int`, got `str`"):
        file(options=Options(workers="two"))


def test_a_field_may_be_written_in_several_forms():
    assert file(both={"url": "x"}).both == Options(url="x")
    assert file(both="x").both == Options(url="both=x")


def test_a_section_has_a_name_or_its_number_and_keys_of_its_own():
    found = file(target=[{"url": "sea:x", "depth": 1}, {"name": "b", "url": "lake:x"}]).targets
    assert [(one.name, one.rest) for one in found] == [("target-1", {"depth": 1}), ("b", {})]


@pytest.mark.parametrize(
    ("tables", "sentence"),
    [
        ({"rule": {}}, r"^rule: expected \[\[rule\]\] tables$"),
        ({"rule": [1]}, r"^rule: expected \[\[rule\]\] tables$"),
        ({"options": 1}, r"^options: expected a table$"),
        ({"both": 1}, r"^both: expected a string, or a table$"),
        ({"rules": []}, r"^rules: no such key; did you mean 'rule'\?"),
        ({"rule": [{}, {"kind": 1}]}, r"^rule 2\.kind: no such key; did you mean 'kinds'\?"),
        ({"rule": [{"kinds": ["alter"]}]}, r"^rule 1\.kinds: 'alter' is none of 'add', 'drop'$"),
        ({"rule": [{"kinds": "add"}]}, r"^rule 1\.kinds: expected a list of 'add', 'drop', not 'add'$"),
        ({"rule": [{"least": 10}]}, r"^rule 1\.least = 10: at most 9$"),
        ({"rule": [{"most": 100}]}, r"^rule 1: it is never true$"),
        ({"target": [{"url": "sea:x"}, {"depth": 2}]}, r"^target target-2\.url: missing$"),
        ({"target": [{"name": "b", "url": 1}]}, r"^target b\.url: expected `str`, got `int`$"),
    ],
)
def test_an_error_in_a_section_names_it(tables, sentence):
    with pytest.raises(ConfigError, match=sentence):
        file(**tables)


def test_a_schema_has_the_sections_and_a_form_for_each_kind():
    found = section_schema(File)["properties"]
    assert found["rule"]["items"]["properties"]["kinds"]["items"] == {"enum": ["add", "drop"]}
    (kind,) = found["target"]["items"]["anyOf"]
    assert kind["properties"]["depth"] == {"type": "integer", "description": "Depth in metres."}
    assert kind["required"] == ["depth", "url"]
    assert kind["properties"]["url"]["pattern"] == r"^(\$\{|(sea|lake)(\+\w+)?:)"


def test_a_reference_has_a_table_of_each_section_and_kind():
    lines = reference(File, "Keys").splitlines()
    assert lines[0] == "# Keys"
    assert [line for line in lines if line.startswith("#")][1:] == [
        "## `[[rule]]`", "## `[[target]]`", "### `sea:`, `lake:`", "## `[options]`", "## `[both]`",
    ]  # fmt: skip
    assert '| `kinds` | list of "add", "drop" |  | Kinds \\| of changes. |' in lines
    assert "| `depth` | integer | required | Depth in metres. |" in lines
    assert '| `memory_bytes` | size | "1MiB" |  |' in lines
