"""The commands of the case files, over real gRPC."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
from google.protobuf.text_format import MessageToString

from tidemill.codec.proto import cdcpb, kvrpcpb
from tidemill.codec.tidb.key import decode_bytes
from tidemill.emulator.faults.words import key_of
from tidemill.testing.progress import eventually

from .client import Client, Feed

KINDS = {
    "put": 0,
    "delete": 1,
    "lock": 2,
    "insert": 4,
    "pessimistic": 5,
    "absent": 6,
    "shared": 7,
    "shared_pessimistic": 8,
}


class Script:
    """Runs lines against one cluster and says what came of each."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._pending: set[tuple[Any, int]] = set()

    def run(self, line: str) -> list[str]:
        word, *words = line.split()
        options = dict(each.split("=", 1) for each in words if "=" in each)
        plain = [each for each in words if "=" not in each]
        command = getattr(self, f"_{word}", None)
        if command is not None:
            return list(command(plain, options))
        return [f"{line}: {self._client.cluster.play(line)}"]

    # --- transactions

    def _call(self, name: str, near: bytes, /, **fields: Any) -> Any:
        return self._client.kv(name, self._client.context(near), **fields)

    def _prewrite(self, plain: list[str], options: dict[str, str]) -> list[str]:
        """prewrite put:a:1 delete:b start=5 [primary=a] [ttl=3000] [min_commit=0] [max_commit=0]

        Asynchronously with secondaries=b,c, or as one of those with secondaries=; in one step with one_pc.
        """
        mutations = []
        asynchronous, one_pc = "secondaries" in options, "one_pc" in plain
        for each in plain:
            if each == "one_pc":
                continue
            kind, key, *value = each.split(":")
            mutations.append({"op": KINDS[kind], "key": key_of(key), "value": "".join(value).encode()})
        answer = self._call(
            "KvPrewrite",
            mutations[0]["key"],
            mutations=mutations,
            start_version=int(options["start"]),
            primary_lock=key_of(options.get("primary", plain[0].split(":")[1])),
            lock_ttl=int(options.get("ttl", 3000)),
            min_commit_ts=int(options.get("min_commit", 0)),
            max_commit_ts=int(options.get("max_commit", 0)),
            use_async_commit=asynchronous,
            secondaries=[key_of(each) for each in options.get("secondaries", "").split(",") if each],
            try_one_pc=one_pc,
        )
        said = "locked"
        if asynchronous or one_pc:
            said += f", min commit {answer.min_commit_ts}, 1PC commit {answer.one_pc_commit_ts}"
        return _refusals(answer, answer.errors) or [said]

    def _commit(self, plain: list[str], options: dict[str, str]) -> list[str]:
        keys = [key_of(each) for each in plain]
        start, commit = int(options["start"]), int(options["commit"])
        answer = self._call("KvCommit", keys[0], keys=keys, start_version=start, commit_version=commit)
        return _refusals(answer) or [f"committed at {answer.commit_version}"]

    def _rollback(self, plain: list[str], options: dict[str, str]) -> list[str]:
        keys = [key_of(each) for each in plain]
        answer = self._call("KvBatchRollback", keys[0], keys=keys, start_version=int(options["start"]))
        return _refusals(answer) or ["rolled back"]

    def _resolve(self, plain: list[str], options: dict[str, str]) -> list[str]:
        """resolve a [b] start=5 commit=0 [all]: these keys, or the region of the first"""
        keys = [key_of(each) for each in plain if each != "all"]
        answer = self._call(
            "KvResolveLock",
            keys[0],
            keys=[] if "all" in plain else keys,
            start_version=int(options["start"]),
            commit_version=int(options["commit"]),
        )
        return _refusals(answer) or ["resolved"]

    def _status(self, plain: list[str], options: dict[str, str]) -> list[str]:
        """status a start=5 [caller=0] [now=0] [rollback] [verify] [force] [resolving]"""
        answer = self._call(
            "KvCheckTxnStatus",
            key_of(plain[0]),
            primary_key=key_of(plain[0]),
            lock_ts=int(options["start"]),
            caller_start_ts=int(options.get("caller", 0)),
            current_ts=int(options.get("now", 0)),
            rollback_if_not_exist="rollback" in plain,
            verify_is_primary="verify" in plain,
            force_sync_commit="force" in plain,
            resolving_pessimistic_lock="resolving" in plain,
        )
        names = {number: name for name, number in vars(kvrpcpb.Action).items()}
        said = f"ttl {answer.lock_ttl}, commit {answer.commit_version}, {names[answer.action]}"
        return _refusals(answer) or [said]

    def _secondaries(self, plain: list[str], options: dict[str, str]) -> list[str]:
        """secondaries b c start=5"""
        keys = [key_of(each) for each in plain]
        answer = self._call("KvCheckSecondaryLocks", keys[0], keys=keys, start_version=int(options["start"]))
        decided = [] if len(answer.locks) == len(keys) else [f"commit {answer.commit_ts}"]
        return _refusals(answer) or [_lock(lock) for lock in answer.locks] + decided

    def _get(self, plain: list[str], options: dict[str, str]) -> list[str]:
        key = key_of(plain[0])
        answer = self._call("KvGet", key, key=key, version=int(options["at"]))
        found = "nothing" if answer.not_found else answer.value.decode()
        return _refusals(answer) or [found]

    def _scan(self, plain: list[str], options: dict[str, str]) -> list[str]:
        """scan a d at=9 [limit=10]; of the region of the first key"""
        start, end = (key_of(each) for each in plain[:2])
        limit = int(options.get("limit", 10))
        answer = self._call(
            "KvScan", start, start_key=start, end_key=end, version=int(options["at"]), limit=limit
        )
        pairs = [
            _error(pair.error) if pair.HasField("error") else f"{_key(pair.key)} = {pair.value.decode()}"
            for pair in answer.pairs
        ]
        return _refusals(answer) or pairs or ["nothing"]

    def _locks(self, plain: list[str], options: dict[str, str]) -> list[str]:
        """locks a max=9 [limit=0]: of the region of that key"""
        limit = int(options.get("limit", 0))
        answer = self._call("KvScanLock", key_of(plain[0]), max_version=int(options["max"]), limit=limit)
        return _refusals(answer) or [_lock(lock) for lock in answer.locks] or ["none"]

    def _write(self, plain: list[str], options: dict[str, str]) -> list[str]:
        """write put:a:1 delete:b: a whole transaction, in-process"""
        split = [each.split(":") for each in plain]
        mutations = [(kind, key_of(key), "".join(value).encode()) for kind, key, *value in split]
        return [f"committed at {self._client.cluster.write(mutations)}"]

    def _regions(self, plain: list[str], options: dict[str, str]) -> list[str]:
        """As PD lists them."""
        return [
            f"{_span(each.region)} conf {each.region.region_epoch.conf_ver}"
            f" stores {[peer.store_id for peer in each.region.peers]}, {each.leader.store_id} leads"
            for each in self._client.pd("ScanRegions", limit=0).regions
        ]

    # --- the change feed

    def _register(self, plain: list[str], options: dict[str, str]) -> list[str]:
        """register 2 [from=0] [id=7] [store=1] [stream=] [old] [v1]; the region as PD knows it"""
        found = self._client.pd("GetRegionByID", region_id=int(plain[0]))
        store = int(options.get("store", found.leader.store_id))
        feed = self._client.feed(store, name=options.get("stream", ""), multiplexing="v1" not in plain)
        request = int(options.get("id", 7))
        extra = {"extra_op": 1} if "old" in plain else {}
        found.region.id = int(plain[0])
        if "version" in options:
            found.region.region_epoch.version = int(options["version"])
        scans = self._client.cluster.stores[store].change_data.scans
        stood = scans.standing + len(scans)
        feed.send(found.region, request_id=request, checkpoint_ts=int(options.get("from", 0)), **extra)
        if "held" in plain:  # the fence behind it is no wait for a scan that has yet to begin
            eventually(lambda: scans.standing + len(scans) > stood)
        else:
            self._pending.add((feed, request))
        return []

    def _deregister(self, plain: list[str], options: dict[str, str]) -> list[str]:
        """deregister 2|0 id=7 store=1"""
        feed = self._client.feed(int(options.get("store", 1)))
        region = cdcpb.ChangeDataRequest(region_id=int(plain[0]))
        request = cdcpb.ChangeDataRequest.Deregister()
        feed.send(_Region(region.region_id), request_id=int(options["id"]), register=None, deregister=request)
        return []

    def _tick(self, plain: list[str], options: dict[str, str]) -> list[str]:
        self._client.cluster.tick()
        return []

    def _hear(self, plain: list[str], options: dict[str, str]) -> list[str]:
        """Return what every stream has sent since the last call; waits for the running scans."""
        said = []
        for key, feed in sorted(self._client.feeds.items()):
            name = f"store {key[0]}{' ' + key[1] if key[1] else ''}: "
            said += [name + line for line in self._hear_one(key, feed)]
        return said or ["nothing"]

    def _hear_one(self, key: Any, feed: Feed) -> Iterator[str]:
        try:
            while any(each is feed for each, _ in self._pending):
                yield from self._told(feed, feed.read())
            for message in feed.fence():
                yield from self._told(feed, message)
        except grpc.RpcError as error:
            details = error.details() or ""
            if not details.startswith("the stream "):
                details = "disconnected"  # gRPC's own words depend on which side notices it first
            yield f"ended, {error.code().name}: {details}"
            del self._client.feeds[key]
            self._pending = {pending for pending in self._pending if pending[0] is not feed}

    def _told(self, feed: Feed, message: Any) -> list[str]:
        for event in message.events:
            ends = event.WhichOneof("event") == "error" or any(
                row.type == cdcpb.Event.LogType.INITIALIZED for row in event.entries.entries
            )
            if ends:
                self._pending.discard((feed, event.request_id))
        return told(message)


class _Region:
    """No region at all, with an id."""

    region_epoch = None
    start_key = end_key = b""

    def __init__(self, number: int) -> None:
        self.id = number


def told(message: Any) -> list[str]:
    """A cdcpb.ChangeDataEvent in words."""
    said = []
    for event in message.events:
        head = f"{event.request_id}/{event.region_id}"
        match event.WhichOneof("event"):
            case "entries":
                said += [f"{head} {_row(row)}" for row in event.entries.entries]
            case "error":
                said.append(f"{head} error {_feed_error(event.error)}")
            case "resolved_ts":
                said.append(f"{head} resolved {event.resolved_ts}")
    if message.HasField("resolved_ts"):
        resolved = message.resolved_ts
        said.append(f"{resolved.request_id}/{sorted(resolved.regions)} resolved {resolved.ts}")
    return said


def _row(row: Any) -> str:
    kind = cdcpb.Event.LogType.Name(row.type)
    if kind == "INITIALIZED":
        return kind
    said = f"{kind} {_key(row.key)} start={row.start_ts}"
    if row.commit_ts:
        said += f" commit={row.commit_ts}"
    said += {0: "", 1: f" put {row.value.decode()!r}", 2: " delete"}[row.op_type]
    if row.old_value:
        said += f" old {row.old_value.decode()!r}"
    return said + (f" generation={row.generation}" if row.generation else "")


def _feed_error(error: Any) -> str:
    for field, value in error.ListFields():
        said = str(field.name)
        if field.name == "not_leader":
            said += f", store {value.leader.store_id} leads"
        if field.name == "epoch_not_match":
            said += "".join(f", {_span(region)}" for region in value.current_regions)
        return said
    return "of no kind"


def _span(region: Any) -> str:
    start, end = (_key(decode_bytes(key)[0]) if key else "" for key in (region.start_key, region.end_key))
    return f"{region.id} v{region.region_epoch.version} [{start}, {end})"


def _refusals(answer: Any, errors: Any = None) -> list[str]:
    if answer.HasField("region_error"):
        error = answer.region_error
        (found,) = (each for each in error.ListFields() if each[0].name != "message")
        said = f"region error {found[0].name}"
        if found[0].name == "not_leader":
            said += f", store {error.not_leader.leader.store_id} leads"
        if found[0].name == "epoch_not_match":
            said += "".join(f", {_span(region)}" for region in error.epoch_not_match.current_regions)
        return [said]
    if errors is None:
        errors = [answer.error] if answer.HasField("error") else []
    return [_error(error) for error in errors]


def _error(error: Any) -> str:
    if error.HasField("locked"):
        return f"locked: {_lock(error.locked)}"
    if error.HasField("conflict"):
        conflict = error.conflict
        reason = kvrpcpb.WriteConflict.Reason.Name(conflict.reason)
        return f"conflict with {conflict.conflict_ts}-{conflict.conflict_commit_ts}: {reason}"
    if error.HasField("already_exist"):
        return f"{_key(error.already_exist.key)} exists"
    if error.HasField("txn_not_found"):
        return f"no transaction {error.txn_not_found.start_ts} on {_key(error.txn_not_found.primary_key)}"
    if error.retryable or error.abort:
        return f"refused: {error.retryable or error.abort}"
    return f"refused: {MessageToString(error, as_one_line=True)}"


def _lock(lock: Any) -> str:
    if lock.shared_lock_infos:
        names = {2: "", 5: ", pessimistic"}
        inner = "; ".join(f"{_lock(each)}{names[each.lock_type]}" for each in lock.shared_lock_infos)
        return f"shared {_key(lock.key)} by {lock.lock_version}, primary {lock.primary_lock!r} [{inner}]"
    said = f"{_key(lock.key)} by {lock.lock_version}, primary {_key(lock.primary_lock)}, ttl {lock.lock_ttl}"
    if lock.use_async_commit:
        said += f", min commit {lock.min_commit_ts}, secondaries {[_key(key) for key in lock.secondaries]}"
    return said


def _key(key: bytes) -> str:
    return key.decode() if key.isascii() and key.decode().isprintable() else f"x:{key.hex()}"
