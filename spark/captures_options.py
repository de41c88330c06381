"""Options of captures that tasks try before the source: of the data source, and of `[spark]`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from ..config import Given, camel_case, declaration, keys
from ..errors import ConfigError
from .option_values import addresses, as_text


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturesOptions:
    """Captures that tasks try before the source."""

    capture: Annotated[tuple[str, ...], Given(parse=addresses)] = ()
    """Addresses of the captures, host:port, which a stream's tasks try one after the other."""
    capture_token_file: Path | None = None
    """File on the driver's machine with the token for the captures, which is sent over TLS or on one
    machine."""
    capture_tls: bool = False
    """Require a certificate that the system trusts; a CA file implies TLS."""
    capture_ca_file: Path | None = None
    """PEM file on the driver's machine: the authority that signed the captures' certificates."""
    capture_wait_seconds: Annotated[float, Meta(ge=0, lt=1e9)] = 20.0
    """Maximum time that a task waits for a capture's changes, before it reads the source."""

    def __post_init__(self) -> None:
        own = keys(CapturesOptions)
        for option in declaration(type(self)).options.values():
            is_given = option.field in own and getattr(self, option.field) != option.default
            if is_given and not self.capture:
                raise ConfigError(f"{option.name}: it is for captures; give their addresses as capture")

    @property
    def captures(self) -> dict[str, str]:
        """The options of the data source that say the same."""
        values = {name: getattr(self, name) for name in keys(CapturesOptions)} if self.capture else {}
        return {camel_case(name): as_text(value) for name, value in values.items() if value is not None}
