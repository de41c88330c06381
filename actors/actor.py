"""The class that actors derive from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Generic, NoReturn, Protocol, TypeVar

import pykka

from .future import PooledFuture
from .ref import PooledRef
from .timer import Timer

if TYPE_CHECKING:
    from .clock import Clock
    from .mailbox import Mailbox
    from .process import Process
    from .system import ActorSystem

T = TypeVar("T")
M = TypeVar("M", contravariant=True)


class Target(Protocol[M]):
    """A target of messages M: a PooledRef, a Stream, or a bare mailbox."""

    @property
    def actor_inbox(self) -> Mailbox: ...

    def offer(self, message: M) -> bool: ...


class PooledActor(pykka.Actor, Generic[M]):
    """An actor of messages M that shares its system's worker threads; made by `ActorSystem.spawn`.

    `__init__` runs in the thread that spawns it, everything else in its turns: one at a time, on any
    worker. A turn must not block, except on a driver in a system meant for blocking work.

    Override `on_receive`, or `on_receive_batch` where handling a batch is cheaper; asks always come to
    `on_receive`. `on_start` runs before the first message, also after a restart; `on_stop` after the
    last; `on_failure` replaces it when the actor fails, even if it is restarted.
    """

    takes_all: ClassVar[bool] = False
    """True if a batch has all waiting messages, up to MAX_BATCH, however long the last ones took: for actors
    that wait for a driver once a batch."""

    _process: Process

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        # spawn() has set what pykka's own __init__ makes, without a uuid and an event for each actor.
        pass

    @classmethod
    def start(cls, *_args: object, **_kwargs: object) -> NoReturn:
        raise TypeError(f"{cls.__name__} needs a system: ActorSystem.spawn({cls.__name__}, ...)")

    # --- for the actor itself, in its turn -------------------------------------------------------

    @property
    def actor_ref(self) -> PooledRef[M]:
        return self._process.ref

    @property
    def name(self) -> str:
        return self._process.name

    @property
    def system(self) -> ActorSystem:
        return self._process.system

    @property
    def clock(self) -> Clock:
        return self._process.system.clock

    def send(self, target: Target[T], message: T) -> None:
        """Send without blocking.

        While the target is full, this message and later ones stay in the actor's outbox, and the actor gets
        no messages. A message to a stopped target is dropped and counted.

        Actors that wait for each other in a circle are detected: the one that closes the circle fails with
        a DeadlockError, as does an actor that sends to its own full mailbox. `after(0, ...)` never waits.
        """
        self._process.send(target.actor_inbox, message)

    def post(self, message: M) -> None:
        """Receive `message` after those that wait, also with a full mailbox: one such message at a time."""
        self._process.post(message)

    def after(self, seconds: float, message: M) -> Timer:
        """Receive `message` once, in `seconds`; not if the actor is stopped or fails before."""
        return self._process.add_timer(seconds, message, periodic=False)

    def every(self, seconds: float, message: M) -> Timer:
        """Receive `message` every `seconds`; at most one of them waits in the mailbox."""
        return self._process.add_timer(seconds, message, periodic=True)

    def stop(self) -> None:
        """Refuse new messages; stop once those accepted are delivered."""
        self._process.stop()

    # --- to override -----------------------------------------------------------------------------

    def on_receive_batch(self, messages: Sequence[M]) -> None:
        """Handle told messages, in order. If this raises, none of them comes again."""
        for message in messages:
            self.on_receive(message)

    # --- what pykka asks of an actor type --------------------------------------------------------

    @property
    def actor_inbox(self) -> Process:  # type: ignore[override]
        return self._process

    @property
    def actor_urn(self) -> str:  # type: ignore[override]
        return self._process.ref.actor_urn

    @property
    def actor_stopped(self) -> object:  # type: ignore[override]
        return self._process.ref.actor_stopped

    @staticmethod
    def _create_actor_inbox() -> NoReturn:
        raise TypeError("a pooled actor's mailbox is made by ActorSystem.spawn")

    @staticmethod
    def _create_future() -> PooledFuture[object]:
        return PooledFuture()

    def _start_actor_loop(self) -> None:
        self._process.schedule()
