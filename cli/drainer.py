"""The commands about drainers as nodes of a TiDB-Binlog cluster: list, pause, close."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console
from rich.table import Table

from .. import config
from ..actors import SystemClock
from ..errors import ConfigError
from ..events import physical_ms
from .flags import Json

if TYPE_CHECKING:
    from ..puller.pump.registry.node import NodeStatus
    from ..puller.pump.registry.registry import NodeRegistry
    from ..puller.pump.service.options import DrainerOptions

_REGISTRIES: Final = "a registry is binlog://pd1:2379,pd2:2379 or sqlite:///file"

drainer = typer.Typer(
    help="List, pause or close drainers of a TiDB-Binlog cluster.\n\n    tidemill drainer list feed.toml",
    no_args_is_help=True,
)

Feed = Annotated[
    Path | None, typer.Argument(metavar="FEED.TOML", help="Feed file of the drainer; or use --registry")
]
Id = Annotated[str | None, typer.Option("--id", help="Node id of the drainer; default: from the feed file")]
RegistryUrl = Annotated[
    str | None,
    typer.Option(
        "--registry", help="URL of the cluster's registry: binlog://pd1:2379,pd2:2379 or sqlite:///file"
    ),
]


@drainer.command("list")
def list_(feed: Feed = None, registry: RegistryUrl = None, as_json: Json = False) -> None:
    """List pumps and drainers.

    Prints state, address, maximum commit ts and age of the last heartbeat of each.

        tidemill drainer list --registry binlog://etcd1:2379
    """
    from ..puller.pump.registry.node import DRAINERS, PUMPS
    from ..puller.pump.registry.registry import nodes

    now = SystemClock.time()
    table = Table("kind", "id", "state", "address", "max commit ts", "heartbeat", box=None)
    with _opened(_options(feed, registry, None)) as opened:
        for kind in (PUMPS, DRAINERS):
            for node in nodes(opened, kind):
                age = now - physical_ms(node.update_ts) / 1000
                if as_json:
                    typer.echo(json.dumps(_described(kind, node, age)))
                seen = f"{age:.0f} s ago" if node.update_ts else "unknown"
                name = kind.removesuffix("s")
                table.add_row(name, node.node_id, node.state, node.host, str(node.max_commit_ts), seen)
    if not as_json:
        Console(width=None if sys.stdout.isatty() else 160).print(table)


@drainer.command()
def pause(feed: Feed = None, id_: Id = None, registry: RegistryUrl = None) -> None:
    """Stop a drainer and mark it paused.

    It continues when it is started again.

        tidemill drainer pause feed.toml
    """
    _act("pause", feed, id_, registry)


@drainer.command()
def close(feed: Feed = None, id_: Id = None, registry: RegistryUrl = None) -> None:
    """Stop a drainer for good and mark it offline.

    tidemill drainer close feed.toml
    """
    _act("close", feed, id_, registry)


def _act(action: str, feed: Path | None, id_: str | None, registry: str | None) -> None:
    from ..puller.pump.service.client import send_action
    from ..puller.pump.service.options import node_id

    if feed is None and id_ is None:
        raise ConfigError(f"drainer {action}: give the drainer's feed.toml, or --registry and --id")
    options = _options(feed, registry, id_)
    with _opened(options) as opened:
        typer.echo(send_action(opened, node_id(options), action, options.security))


def _options(feed: Path | None, registry: str | None, id_: str | None) -> DrainerOptions:
    """Return the options in the file's [source], overridden by flags. Raises ConfigError."""
    from ..engine.options import feed_options
    from ..puller.pump.options import PumpOptions
    from ..puller.pump.service.options import DrainerOptions

    if feed is None:
        if registry is None:
            raise ConfigError(f"--registry is missing: {_REGISTRIES}")
        return DrainerOptions(registry=registry, node_id=id_ or "")
    source = feed_options(config.read(feed)).source.options
    if not isinstance(source, PumpOptions) or (source.pumps and registry is None):
        raise ConfigError(f"{feed}: source.url is not binlog://pd1:2379: {_REGISTRIES}")
    options = source.drainer
    return replace(options, registry=registry or options.registry, node_id=id_ or options.node_id)


@contextmanager
def _opened(options: DrainerOptions) -> Iterator[NodeRegistry]:
    from ..puller.pump.registry.location import open_registry

    opened = open_registry(options.registry, options.security, options.registry_timeout_seconds)
    try:
        yield opened
    finally:
        opened.close()


def _described(kind: str, node: NodeStatus, age: float) -> dict[str, object]:
    return {
        "kind": kind.removesuffix("s"),
        "id": node.node_id,
        "state": node.state,
        "address": node.host,
        "max_commit_ts": node.max_commit_ts,
        "heartbeat_age_seconds": round(age, 3) if node.update_ts else None,
    }
