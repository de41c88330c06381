"""Options of sinks: the `[[sink]]` sections of a feed.toml."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from .. import config
from ..chain.selection.rule import Rule
from ..chain.selection.sections import OmissionOptions, row_rules, share_rules, sink_tables
from ..chain.selection.tables import TablePatterns
from ..dialects.options import RowOptions
from ..errors import ConfigError
from ..sink.registry import GivenSink, given_sink
from ..sink.relay.options import RelayOptions

NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Names of feeds and sinks, which are part of file names."""
_TABLES: Final = ("tables", "regex", "black_regex")
_SHARED: Final = ("urls", "split_by")
_OMISSIONS: Final = tuple(config.keys(OmissionOptions))


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """Options of one sink."""

    name: str
    url: str = field(repr=False)
    tables: TablePatterns | None = None
    """Patterns of the feed's tables for this sink; None: all."""
    rows: tuple[Rule, ...] = ()
    """Rules about rows and changes that aren't for this sink."""
    relay: RelayOptions | None = None
    """Durable copy of what the sink is about to apply; None: none."""
    omissions: OmissionOptions = field(default_factory=OmissionOptions)
    """Transactions and schema changes that the sink isn't to get."""
    section: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The rest of its section, unparsed."""
    given: GivenSink
    """Its kind, with the section as options of that kind."""

    @property
    def copies_definitions(self) -> bool:
        """True if the target has indexes and the like, too."""
        options = self.given.options
        return isinstance(options, RowOptions) and options.copies_definitions


def sinks_of(sections: Any) -> list[SinkOptions]:
    found = [
        sink
        for number, section in enumerate(sections_of("sink", sections), 1)
        for sink in _shared(number, section)
    ]
    names = [sink.name for sink in found]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"sink.name: two sinks are called {name!r}; each needs a name of its own")
    return found


def _shared(number: int, section: Mapping[str, Any]) -> Iterator[SinkOptions]:
    """Yield the sink of a section, or one for each of its `urls`."""
    if "urls" not in section:
        yield _sink(number, section)
        return
    name = section.get("name", f"sink-{number}")
    if "relay" in section:
        raise ConfigError(f"sink {name}: relay: not with urls, which would share its directory")
    rest = {key: value for key, value in section.items() if key not in _SHARED}
    for part, (url, share) in enumerate(share_rules(f"sink {name}", section)):
        one = _sink(number, {**rest, "name": f"{name}-{part}", "url": url})
        yield replace(one, rows=(share, *one.rows))


def _sink(number: int, section: Mapping[str, Any]) -> SinkOptions:
    url = section.get("url")
    if url is None:
        known = ("name", "url", *_SHARED, *_TABLES, "rows", "relay", *_OMISSIONS)
        config.reject_unknown(section, known, f"sink {number}")
    if not isinstance(url, str) or not url:
        raise ConfigError(f'sink {number}: url: missing; for instance "sqlite:///copy.db"')
    if "split_by" in section:
        raise ConfigError(f"sink {number}: split_by: only with urls, among which rows are divided")
    name = section.get("name", f"sink-{number}")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ConfigError(f"sink {number}: name: expected up to 64 letters, digits, - and _")
    tables = sink_tables(f"sink {name}", section)
    relay = _relay(f"sink {name}: relay", section["relay"]) if "relay" in section else None
    omitted = {key: section[key] for key in _OMISSIONS if key in section}
    omissions = config.build(OmissionOptions, omitted, f"sink {name}")
    own = {"url", "name", *_TABLES, "rows", "relay", *_OMISSIONS} - ({"loopback_channel"} & section.keys())
    rest = {key: value for key, value in section.items() if key not in own}
    return SinkOptions(
        name=name,
        url=url,
        tables=tables,
        rows=row_rules(f"sink {name}", section.get("rows", [])),
        relay=relay,
        omissions=omissions,
        section=rest,
        given=given_sink(name, url, rest),
    )


def _relay(where: str, section: Any) -> RelayOptions:
    """Return the options of a relay, or those of a directory. Raises ConfigError."""
    if isinstance(section, str):
        section = {"directory": section}
    if not isinstance(section, dict):
        raise ConfigError(f'{where}: expected a directory, or a table such as {{ directory = "relay" }}')
    try:
        return config.build(RelayOptions, section, where)
    except ConfigError as error:
        said = str(error)
        raise ConfigError(said if said.startswith(where) else f"{where}: {said}") from None


def sections_of(name: str, sections: Any) -> list[dict[str, Any]]:
    """Return sections that may be given more than once. Raises ConfigError for anything else."""
    if not isinstance(sections, list) or not all(isinstance(section, dict) for section in sections):
        raise ConfigError(f"{name}: expected [[{name}]] tables")
    return sections
