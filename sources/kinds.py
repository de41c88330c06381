"""Registry entries for MariaDB servers, TiKV clusters and their pumps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from ..config import Finding
from ..config.url import PERCENT_ENCODE, port_problem
from ..errors import ConfigError
from ..puller.mysql.options import MysqlOptions
from ..puller.pump.options import PumpOptions, pump_addresses
from ..puller.tikv.options import TikvOptions, endpoints
from .kind import SourceContext, SourceKind

if TYPE_CHECKING:
    from .source import Source


def _address(url: str) -> dict[str, object]:
    """Return host, port, user and password, as far as they are given."""
    try:
        parts = urlsplit(url)
    except ValueError:  # a bracket that is not of an IPv6 address
        raise ConfigError(f"source.url: {PERCENT_ENCODE}") from None
    try:
        port = parts.port
    except ValueError:  # its own text could contain a part of the password
        raise ConfigError(f"source.url: {port_problem(url)}") from None
    rest = parts.path.strip("/") + parts.query + parts.fragment
    if "@" in rest:
        raise ConfigError(f"source.url: {PERCENT_ENCODE}")
    if rest:
        raise ConfigError("source.url: ends after host and port; the tables are chosen by source.tables")
    login: dict[str, object] = {"host": parts.hostname, "port": port}
    login |= {
        "user": unquote(parts.username) if parts.username else None,
        "password": unquote(parts.password) if parts.password else None,
    }
    return {key: value for key, value in login.items() if value is not None}


def _open_mysql(options: MysqlOptions, context: SourceContext) -> Source:
    from .mysql import MysqlSource

    return MysqlSource(
        options,
        context.tables,
        context.lane,
        feed=context.feed,
        on_ddl=context.on_ddl,
        details=context.details,
        names_source=bool(context.routes),
    )


def _survey_mysql(options: MysqlOptions, context: SourceContext) -> Iterator[Finding]:
    from .mysql_survey import survey_mysql

    return survey_mysql(options, context)


def _open_tikv(options: TikvOptions, context: SourceContext) -> Source:
    from .tikv import TikvSource

    where = context.feed, context.directory, context.clock
    return TikvSource(options, context.tables, *where, details=context.tells_details)


def _survey_tikv(options: TikvOptions, context: SourceContext) -> Iterator[Finding]:
    from .tikv import TikvSource

    source = TikvSource(options, context.tables, context.feed, context.directory, context.clock)
    return source.survey(context.note, is_new=context.is_new)


def _pumps(url: str) -> dict[str, object]:
    """Return the pumps' addresses, or those of PD, through which they are found."""
    if url.startswith("binlog:"):
        return {"pd": endpoints(url.removeprefix("binlog://"))}
    return {"pumps": pump_addresses(url)}


def _open_pump(options: PumpOptions, context: SourceContext) -> Source:
    from .pump import PumpSource

    where = context.feed, context.directory, context.clock
    return PumpSource(options, context.tables, *where, details=context.tells_details)


def _survey_pump(options: PumpOptions, context: SourceContext) -> Iterator[Finding]:
    from .pump import PumpSource

    source = PumpSource(options, context.tables, context.feed, context.directory, context.clock)
    return source.survey(context.note, is_new=context.is_new)


MYSQL: Final = SourceKind(
    name="mysql",
    schemes=("mysql", "mariadb"),
    example="mysql://user:password@host:3306",
    options=MysqlOptions,
    read_url=_address,
    open=_open_mysql,
    survey=_survey_mysql,
    extra="mysql",
    start_option="position",
    first_options=("server_id", "snapshot", "position"),
    ddl_policies=True,
    routable=True,
    combines=True,
    renews=True,
)

TIKV: Final = SourceKind(
    name="tikv",
    schemes=("tikv",),
    example="tikv://pd1:2379,pd2:2379",
    options=TikvOptions,
    read_url=lambda url: {"pd": endpoints(url)},
    start_option="start_ts",
    first_options=("snapshot", "start_ts"),
    open=_open_tikv,
    survey=_survey_tikv,
    url_only=frozenset({"pd"}),
)

PUMP: Final = SourceKind(
    name="pump",
    schemes=("pump", "binlog"),
    example="pump://host:8250,host:8250",
    options=PumpOptions,
    read_url=_pumps,
    start_option="start_ts",
    first_options=("snapshot", "start_ts"),
    open=_open_pump,
    survey=_survey_pump,
    url_only=frozenset({"pumps"}),
)
