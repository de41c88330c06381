"""The members of PD and their leader."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final, TypeVar

from ....actors import Backoff, Clock
from ....codec.proto import PD, pdpb
from ....errors import Retryable, SourceError
from ...grpc.channel import Channels
from ..options import TikvOptions, address_of

log = logging.getLogger("tidemill.puller")

T = TypeVar("T")

ANSWER_SECONDS: Final = 3.0
"""Timeout for a member's answer about the leader; all members are asked at once."""


class WrongCluster(SourceError):
    """A PD belongs to another cluster."""


class Members:
    """Finds the leader of PD, again after each failure. To be used in the loop's thread only."""

    def __init__(self, options: TikvOptions, channels: Channels, clock: Clock, random: Random) -> None:
        self._options = options
        self._channels = channels
        self._clock = clock
        self._random = random
        self._search: asyncio.Task[None] | None = None
        self.addresses = options.pd
        """Addresses from the options and those discovered from PD."""
        self.leader: str | None = None
        """Address of the leader; None until it is found, and after a call to it failed."""
        self.cluster_id = options.cluster_id
        """Id of the cluster; 0 before the first answer, unless the options set it."""
        self.versions: dict[str, str] = {}
        """Version of each member by name; "" if it doesn't report one."""

    def header(self) -> pdpb.RequestHeader:
        """Return the header of a request."""
        return pdpb.RequestHeader(cluster_id=self.cluster_id)

    async def at_leader(self, work: Callable[[str], Awaitable[T]]) -> T:
        """Return the result of `work` for the leader's address; retried with the next leader on Retryable.

        Raises Retryable, naming all members, after `pd_retry_seconds`.
        """
        total = self._options.pd_retry_seconds
        backoff = Backoff(self._clock, self._random, first=0.05, longest=1.0, total=total)
        while True:
            address = self.leader
            try:
                address = address or await self.find_leader()
                return await work(address)
            except Retryable as error:
                if self.leader == address:  # otherwise another caller has found a new one meanwhile
                    self.leader = None
                pause = backoff.next(error.wait or 0.0)
                if pause is None:
                    raise Retryable(f"no answer from PD ({', '.join(self.addresses)}): {error}") from error
                log.info("PD doesn't answer, looking for its leader: %s", error)
            await asyncio.sleep(pause)

    async def find_leader(self) -> str:
        """Ask all members at once for the leader; concurrent callers share one search."""
        if self._search is None:
            self._search = asyncio.create_task(self._find(), name="find the leader of PD")
            self._search.add_done_callback(self._found)
        await asyncio.shield(self._search)
        if self.leader is None:
            raise Retryable("PD has no leader at the moment")
        return self.leader

    async def close(self) -> None:
        if self._search is not None:
            self._search.cancel()
            await asyncio.wait([self._search])

    def check_cluster(self, address: str, header: pdpb.ResponseHeader) -> None:
        """Raise WrongCluster if an answer is from another cluster than before, or than the options name."""
        cluster_id = header.cluster_id
        if self.cluster_id and cluster_id and cluster_id != self.cluster_id:
            raise WrongCluster(
                f"PD at {address} belongs to cluster {cluster_id}, not {self.cluster_id}: "
                "check the addresses of PD and cluster_id"
            )

    def _found(self, search: asyncio.Task[None]) -> None:
        self._search = None
        if not search.cancelled():
            search.exception()  # its caller may have been cancelled

    async def _find(self) -> None:
        """Use the first answer; but the first time wait for all, as they must be of one cluster."""
        believe, has_answer = bool(self.cluster_id), False
        asked = [asyncio.create_task(self._ask(address)) for address in self.addresses]
        errors: list[Exception] = []
        try:
            for answer in asyncio.as_completed(asked):
                try:
                    self._take(*(await answer))
                    has_answer = True
                except (Retryable, SourceError) as error:
                    if isinstance(error, WrongCluster) and not believe:
                        raise
                    errors.append(error)
                if has_answer and believe:
                    break
        finally:
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
        if not has_answer:
            raise _worst(errors)

    async def _ask(self, address: str) -> tuple[str, pdpb.GetMembersResponse]:
        request = pdpb.GetMembersRequest(header=self.header())
        seconds = min(ANSWER_SECONDS, self._options.timeout_seconds)
        return address, await self._channels.call(address, PD["GetMembers"], request, seconds)

    def _take(self, address: str, answer: pdpb.GetMembersResponse) -> None:
        self.check_cluster(address, answer.header)
        if answer.header.error.type != pdpb.ErrorType.OK:
            raise Retryable(f"{address}: GetMembers: {answer.header.error.message}")
        urls = [url for member in answer.members for url in member.client_urls]
        if not answer.leader.client_urls:
            raise Retryable(f"{address}: PD has no leader at the moment")
        self.cluster_id = answer.header.cluster_id or self.cluster_id
        self.addresses = tuple(dict.fromkeys([*self._options.pd, *map(address_of, urls)]))
        self.versions = {member.name: member.binary_version for member in answer.members}
        self.leader = address_of(answer.leader.client_urls[0])


def _worst(errors: list[Exception]) -> Exception:
    """Choose among all members' errors: a fatal one only if all are fatal."""
    if all(isinstance(error, SourceError) for error in errors):
        return errors[0]
    return Retryable("; ".join(map(str, errors)))
