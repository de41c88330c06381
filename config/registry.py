"""Kinds of sources or of sinks, by URL scheme: the built-in ones, and those of installed packages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Kind(Protocol):
    """The part common to all entries of a registry."""

    @property
    def name(self) -> str: ...

    @property
    def schemes(self) -> tuple[str, ...]: ...


K = TypeVar("K", bound=Kind)


class Registry(Generic[K]):
    """Built-in kinds, and those that packages add by entry points of one group.

    The packages are imported at the first scheme that isn't built in, or when all kinds are listed.
    """

    def __init__(
        self,
        group: str,
        kind: type[K],
        built_in: Sequence[K],
        more: Callable[[], Iterable[K]] = tuple,
    ) -> None:
        """`more` returns kinds that packages add in another way; called when the packages are imported."""
        self.built_in = tuple(built_in)
        self._more = more
        self._group = group
        self._kind = kind
        self._kinds = list(built_in)
        self._problems: list[str] = []
        self._has_packages = False

    def find(self, scheme: str) -> K | None:
        """Return the entry for a scheme; None if there is none, and then `problems` may say why."""
        entry = self._known(scheme)
        if entry is None:
            self._load_packages()
            entry = self._known(scheme)
        return entry

    def __iter__(self) -> Iterator[K]:
        """Return all entries, the built-in ones first."""
        self._load_packages()
        return iter(self._kinds)

    @property
    def problems(self) -> str:
        """Return the problems of installed packages as an addition to an error; empty if there are none."""
        return "".join(f"; {problem}" for problem in self._problems)

    def _known(self, scheme: str) -> K | None:
        return next((kind for kind in self._kinds if scheme in kind.schemes), None)

    def _load_packages(self) -> None:
        if self._has_packages:
            return
        from importlib.metadata import entry_points  # the import is slow, and most feeds don't need it

        self._has_packages = True
        known = {kind.name for kind in self._kinds}
        self._kinds += [kind for kind in self._more() if kind.name not in known]
        for entry in entry_points(group=self._group):
            if problem := self._load(entry):
                name = entry.dist.name if entry.dist is not None else "a package"
                self._problems.append(f"{name} ({self._group}: {entry.name}) {problem}")

    def _load(self, entry: EntryPoint) -> str:
        """Add one kind; return its problem, or an empty text."""
        try:
            kind = entry.load()
        except Exception as error:  # foreign code: after any error the other kinds remain usable
            return f"can't be loaded: {type(error).__name__}: {error}"
        if not isinstance(kind, self._kind):
            return f"can't be used: {entry.value} is no {self._kind.__name__}"
        if taken := [scheme for scheme in kind.schemes if self._known(scheme)]:
            return f"can't be used: {taken[0]}: is taken by another"
        self._kinds.append(kind)
        return ""
