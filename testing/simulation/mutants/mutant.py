"""A planted bug: passages of modules, replaced."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

WorldSource: TypeAlias = Literal["tikv", "binlog"]
"""Source of a simulated world."""


class Patch(Struct, frozen=True):
    """One passage of a module, replaced."""

    file: str
    """Path below the package."""
    before: str
    after: str

    @property
    def module(self) -> str:
        return "tidemill." + self.file.removesuffix(".py").replace("/", ".")

    def apply(self, text: str) -> str:
        """Return the module's text with the bug. Raises ValueError unless it has the passage once."""
        if (count := text.count(self.before)) != 1:
            raise ValueError(f"{self.file} has the passage {count} times, renew it: {self.before}")
        return text.replace(self.before, self.after)


class Mutant(Struct, frozen=True):
    """A bug that must be found: by a seed, by a test, or it is explained why it does no harm."""

    name: str
    what: str
    """Effect, and where such a bug was seen in practice if it was."""
    patches: tuple[Patch, ...]
    within: int = 100
    """Number of seeds of which one must fail."""
    source: str = ""
    """The issue of another project that had it, as "ticdc#2943"."""
    killed_by: str = ""
    """Test that must fail in place of a seed: the simulation hasn't this part."""
    survives: str = ""
    """Why no seed can find it."""
    world: WorldSource = "tikv"
    """The source of the seeds' worlds."""

    @property
    def modules(self) -> list[str]:
        return [patch.module for patch in self.patches]


def mutant(
    name: str,
    file: str,
    before: str,
    after: str,
    what: str,
    *more: Patch,
    within: int = 100,
    source: str = "",
    killed_by: str = "",
    survives: str = "",
    world: WorldSource = "tikv",
) -> Mutant:
    """Return a bug in one module, and in those of `more`."""
    patches = Patch(file, before, after), *more
    return Mutant(name, what, patches, within, source, killed_by, survives, world)
