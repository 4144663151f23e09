"""Each call of the broker as a statement: what it sends, and how its answer is read.

The calls of the package and those of parley.aio are both made of these, so that they cannot come to differ.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Callable, Generic, Optional, TypeVar
from uuid import UUID

from .errors import describe
from .messages import Body, Claim, Message, Retried, SentMessage, TakenMessage
from .tracing import context_for

T = TypeVar("T")
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Statement(Generic[T]):
    """A statement with its parameters; read makes the answer of its rows."""

    sql: str
    parameters: dict[str, Any]
    read: Callable[[list[Row]], T]


def _nothing(rows: list[Row]) -> None:
    return None


def _value(rows: list[Row]) -> Any:
    return rows[0][0]


def _sent(rows: list[Row]) -> Optional[SentMessage]:
    return SentMessage(*rows[0]) if rows and rows[0][0] is not None else None


def _one_sent(rows: list[Row]) -> SentMessage:
    return SentMessage(*rows[0])


def as_bytes(body: Body) -> Optional[bytes]:
    """The body as it travels: a text as UTF-8, and what is neither a text nor bytes as JSON."""
    if body is None or isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode("utf-8")
    if isinstance(body, (bytearray, memoryview)):
        return bytes(body)
    return json.dumps(body, ensure_ascii=False).encode("utf-8")


def _as_text(body: Body) -> Optional[str]:
    encoded = as_bytes(body)
    return None if encoded is None else encoded.decode("utf-8")


def _all_as_bytes(bodies: Sequence[Body]) -> list[Optional[bytes]]:
    if isinstance(bodies, (str, bytes)):
        raise TypeError("a batch takes a list of bodies, not one body: give [body], or call put or send")
    return [as_bytes(body) for body in bodies]


def put(
    queue: str, body: Body = None, *, key: Optional[str] = None, priority: int = 5, deliver_at: Optional[datetime] = None,
    trace_context: Optional[str] = None, deduplication_key: Optional[str] = None,
) -> Statement[SentMessage]:
    """Puts a message into a simple queue, and gives what came of it: its message_id, or its delayed_id while it is not due."""
    return Statement(
        f"select {SentMessage.COLUMNS} from parley.put(queue => %(queue)s::text, body => %(body)s::bytea, key => %(key)s::text,"
        " priority => %(priority)s::integer, deliver_at => %(due)s::timestamptz, trace_context => %(trace)s::text,"
        " deduplication_key => %(once)s::text)",
        {"queue": queue, "body": as_bytes(body), "key": key, "priority": priority, "due": deliver_at,
         "trace": context_for("put", queue, trace_context), "once": deduplication_key},
        _one_sent,
    )


def put_batch(
    queue: str, bodies: Sequence[Body], *, key: Optional[str] = None, priority: int = 5,
    deliver_at: Optional[datetime] = None, trace_context: Optional[str] = None,
) -> Statement[None]:
    """Puts a message for each body, in their order."""
    return Statement(
        "select parley.put_batch_binary(queue => %(queue)s::text, bodies => %(bodies)s::bytea[], key => %(key)s::text,"
        " priority => %(priority)s::integer, deliver_at => %(due)s::timestamptz, trace_context => %(trace)s::text)",
        {"queue": queue, "bodies": _all_as_bytes(bodies), "key": key, "priority": priority, "due": deliver_at,
         "trace": context_for("put", queue, trace_context)},
        _nothing,
    )


def put_each(
    queue: str, bodies: Sequence[Body], *, keys: Optional[Sequence[Optional[str]]] = None,
    deduplication_keys: Optional[Sequence[Optional[str]]] = None, priority: int = 5,
    deliver_at: Optional[datetime] = None, trace_context: Optional[str] = None,
) -> Statement[list[SentMessage]]:
    """Puts a message for each body and says what came of each: its number, or that its key was used before."""
    return Statement(
        f"select {SentMessage.COLUMNS} from parley.put_each(queue => %(queue)s::text, bodies => %(bodies)s::text[],"
        " keys => %(keys)s::text[], deduplication_keys => %(once)s::text[], priority => %(priority)s::integer,"
        " deliver_at => %(due)s::timestamptz, trace_context => %(trace)s::text)",
        {"queue": queue, "bodies": [_as_text(body) for body in bodies], "keys": keys and list(keys),
         "once": deduplication_keys and list(deduplication_keys), "priority": priority, "due": deliver_at,
         "trace": context_for("put", queue, trace_context)},
        lambda rows: [SentMessage(*row) for row in rows],
    )


def put_unique(
    queue: str, body: Body, unique_key: str, *, key: Optional[str] = None, priority: int = 5,
    deliver_at: Optional[datetime] = None, trace_context: Optional[str] = None,
) -> Statement[SentMessage]:
    """Puts a message unless one with the same unique key waits or is being worked on, and says which one is there."""
    return Statement(
        f"select {SentMessage.COLUMNS} from parley.put_unique(queue => %(queue)s::text, body => %(body)s::text,"
        " unique_key => %(unique)s::text, key => %(key)s::text, priority => %(priority)s::integer,"
        " deliver_at => %(due)s::timestamptz, trace_context => %(trace)s::text)",
        {"queue": queue, "body": _as_text(body), "unique": unique_key, "key": key, "priority": priority,
         "due": deliver_at, "trace": context_for("put", queue, trace_context)},
        _one_sent,
    )


def put_group(
    queue: str, bodies: Sequence[Body], then_queue: str, then_body: Body, *,
    keys: Optional[Sequence[Optional[str]]] = None, priority: int = 5, trace_context: Optional[str] = None,
) -> Statement[int]:
    """Puts a message for each body, and has the daemon put another one when all of them are done. Gives the batch's number."""
    return Statement(
        "select parley.put_group(queue => %(queue)s::text, bodies => %(bodies)s::text[], then_queue => %(then_queue)s::text,"
        " then_body => %(then_body)s::text, keys => %(keys)s::text[], priority => %(priority)s::integer,"
        " trace_context => %(trace)s::text)",
        {"queue": queue, "bodies": [_as_text(body) for body in bodies], "then_queue": then_queue,
         "then_body": _as_text(then_body), "keys": keys and list(keys), "priority": priority,
         "trace": context_for("put", queue, trace_context)},
        _value,
    )


# What a worker calls says in the same statement that it is a reader, which pause_readers holds back.
_READS = "(select %(queue)s::text as reads, set_config('parley.reader', %(reader)s, true)) as x cross join lateral"


def take(queue: str, count: int = 1, *, timeout: int = 0, as_reader: bool = False) -> Statement[list[TakenMessage]]:
    """Takes up to count messages of a simple queue, in this transaction; timeout, in milliseconds, waits for one."""
    source = _READS if as_reader else "(select %(queue)s::text as reads) as x cross join lateral"
    return Statement(
        f"select {TakenMessage.COLUMNS} from {source} parley.take(queue => x.reads, count => %(count)s::integer,"
        " timeout => %(timeout)s::integer)",
        {"queue": queue, "count": count, "timeout": timeout, "reader": "on"},
        lambda rows: [TakenMessage(*row) for row in rows],
    )


def retry(
    queue: str, message_id: int, failure: object = None, *, delay: Optional[timedelta] = None
) -> Statement[Retried]:
    """Reports that the work on a message failed; it waits by the queue's policy or for delay. Call it after the rollback."""
    state, text = _described(failure)
    return Statement(
        "select retry_at, is_set_aside from parley.retry(queue => %(queue)s::text, message_id => %(id)s::bigint,"
        " error => %(error)s::text, sqlstate => %(state)s::text, delay => %(delay)s::interval)",
        {"queue": queue, "id": message_id, "error": text, "state": state, "delay": delay},
        lambda rows: Retried(*rows[0]),
    )


def fail(queue: str, message_id: int, failure: object = None) -> Statement[bool]:
    """Sets a message aside at once, because another attempt would be in vain. Call it after the rollback."""
    state, text = _described(failure)
    return Statement(
        "select parley.fail(queue => %(queue)s::text, message_id => %(id)s::bigint, error => %(error)s::text,"
        " sqlstate => %(state)s::text)",
        {"queue": queue, "id": message_id, "error": text, "state": state}, _value,
    )


def cancel(queue: str, message_id: int, *, running: bool = False) -> Statement[bool]:
    """Withdraws a message that waits; with running, also one from under the worker that has claimed it."""
    return Statement(
        "select parley.cancel(queue => %(queue)s::text, message_id => %(id)s::bigint, running => %(running)s::boolean)",
        {"queue": queue, "id": message_id, "running": running}, _value,
    )


def done(queue: str, message_id: int, result: Any = None) -> Statement[bool]:
    """Says what came of a message, in the transaction that took it, where the queue keeps what is finished."""
    return Statement(
        "select parley.done(queue => %(queue)s::text, message_id => %(id)s::bigint, result => %(result)s::jsonb)",
        {"queue": queue, "id": message_id, "result": _json(result)}, _value,
    )


def claim(queue: str, count: int = 1, *, lease: timedelta = timedelta(minutes=1)) -> Statement[Optional[Claim]]:
    """Claims messages for long work: commit, work, renew in time, then complete or give_back. None when there is none."""
    return Statement(
        "select claim, message_id, key, priority, body, enqueued_at, trace_context, attempt"
        f" from {_READS} parley.claim(queue => x.reads, count => %(count)s::integer, lease => %(lease)s::interval)",
        {"queue": queue, "count": count, "lease": lease, "reader": "on"},
        lambda rows: Claim(queue, rows[0][0], [TakenMessage(*row[1:]) for row in rows]) if rows else None,
    )


def renew(claimed: Claim, *, lease: timedelta = timedelta(minutes=1), progress: Any = None) -> Statement[bool]:
    """Renews a claim, and says whether to go on: not when it was cancelled, or others have the messages."""
    return Statement(
        "select parley.renew(queue => %(queue)s::text, claim => %(claim)s::uuid, lease => %(lease)s::interval,"
        " progress => %(progress)s::jsonb)",
        {"queue": claimed.queue, "claim": claimed.claim, "lease": lease, "progress": _json(progress)}, _value,
    )


def complete(claimed: Claim, result: Any = None) -> Statement[bool]:
    """Takes what was claimed, in the transaction of the results; when it gives False the claim was lost: roll back."""
    return Statement(
        "select parley.complete(queue => %(queue)s::text, claim => %(claim)s::uuid, result => %(result)s::jsonb)",
        {"queue": claimed.queue, "claim": claimed.claim, "result": _json(result)}, _value,
    )


def give_back(
    claimed: Claim, failure: object = None, *, delay: Optional[timedelta] = None, is_final: bool = False
) -> Statement[Retried]:
    """Gives back what was claimed, because the work failed; it waits by the queue's policy or for delay, or is set aside."""
    state, text = _described(failure)
    return Statement(
        "select retry_at, is_set_aside from parley.give_back(queue => %(queue)s::text, claim => %(claim)s::uuid,"
        " error => %(error)s::text, sqlstate => %(state)s::text, delay => %(delay)s::interval,"
        " is_final => %(final)s::boolean)",
        {"queue": claimed.queue, "claim": claimed.claim, "error": text, "state": state, "delay": delay, "final": is_final},
        lambda rows: Retried(*rows[0]),
    )


def begin_dialog(
    from_service: str, to_service: str, *, contract: str = "DEFAULT", lifetime: Optional[int] = None,
    encryption: bool = True, related_conversation: Optional[UUID] = None,
    related_conversation_group: Optional[UUID] = None, deduplication_key: Optional[str] = None,
) -> Statement[UUID]:
    """Begins a dialog and gives the handle of its conversation; lifetime in seconds."""
    return Statement(
        "select parley.begin_dialog(from_service => %(from)s::text, to_service => %(to)s::text, contract => %(contract)s::text,"
        " lifetime => coalesce(%(lifetime)s::integer, 2147483647), encryption => %(encryption)s::boolean,"
        " related_conversation => %(related)s::uuid, related_conversation_group => %(group)s::uuid,"
        " deduplication_key => %(once)s::text)",
        {"from": from_service, "to": to_service, "contract": contract, "lifetime": lifetime, "encryption": encryption,
         "related": related_conversation, "group": related_conversation_group, "once": deduplication_key},
        _value,
    )


def send(
    handle: UUID, body: Body = None, *, message_type: str = "DEFAULT", deliver_at: Optional[datetime] = None,
    trace_context: Optional[str] = None, deduplication_key: Optional[str] = None,
) -> Statement[Optional[SentMessage]]:
    """Sends a message on a conversation. Gives what came of it when it has a time or a deduplication key, else None."""
    return Statement(
        f"select {SentMessage.COLUMNS} from parley.send(conversation_handle => %(handle)s::uuid,"
        " message_type => %(type)s::text, body => %(body)s::bytea, trace_context => %(trace)s::text,"
        " deliver_at => %(due)s::timestamptz, deduplication_key => %(once)s::text)",
        {"handle": handle, "type": message_type, "body": as_bytes(body), "due": deliver_at,
         "trace": context_for("send", str(handle), trace_context), "once": deduplication_key},
        _sent,
    )


def send_batch(
    handle: UUID, bodies: Sequence[Body], *, message_type: str = "DEFAULT", trace_context: Optional[str] = None
) -> Statement[None]:
    """Sends a message for each body on one conversation, in their order."""
    return Statement(
        "select parley.send_batch_binary(conversation_handle => %(handle)s::uuid, message_type => %(type)s::text,"
        " bodies => %(bodies)s::bytea[], trace_context => %(trace)s::text)",
        {"handle": handle, "type": message_type, "bodies": _all_as_bytes(bodies),
         "trace": context_for("send", str(handle), trace_context)},
        _nothing,
    )


def begin_and_send(
    from_service: str, to_service: str, body: Body = None, *, message_type: str = "DEFAULT", contract: str = "DEFAULT",
    lifetime: Optional[int] = None, encryption: bool = True, deliver_at: Optional[datetime] = None,
    deduplication_key: Optional[str] = None,
) -> Statement[UUID]:
    """Begins a dialog and sends its first message, in one call."""
    return Statement(
        "select parley.begin_and_send(from_service => %(from)s::text, to_service => %(to)s::text,"
        " message_type => %(type)s::text, body => %(body)s::bytea, contract => %(contract)s::text,"
        " encryption => %(encryption)s::boolean, lifetime => coalesce(%(lifetime)s::integer, 2147483647),"
        " deliver_at => %(due)s::timestamptz, deduplication_key => %(once)s::text)",
        {"from": from_service, "to": to_service, "type": message_type, "body": as_bytes(body), "contract": contract,
         "encryption": encryption, "lifetime": lifetime, "due": deliver_at, "once": deduplication_key},
        _value,
    )


def send_and_end(
    from_service: str, to_service: str, body: Body = None, *, message_type: str = "DEFAULT", contract: str = "DEFAULT",
    encryption: bool = True, deliver_at: Optional[datetime] = None, deduplication_key: Optional[str] = None,
) -> Statement[UUID]:
    """Sends one message that needs no answer: begins a dialog, sends and ends it in one call."""
    return Statement(
        "select parley.send_and_end(from_service => %(from)s::text, to_service => %(to)s::text,"
        " message_type => %(type)s::text, body => %(body)s::bytea, contract => %(contract)s::text,"
        " encryption => %(encryption)s::boolean, deliver_at => %(due)s::timestamptz, deduplication_key => %(once)s::text)",
        {"from": from_service, "to": to_service, "type": message_type, "body": as_bytes(body), "contract": contract,
         "encryption": encryption, "due": deliver_at, "once": deduplication_key},
        _value,
    )


def receive(
    queue: str, top: Optional[int] = None, *, timeout: int = 0, as_reader: bool = False
) -> Statement[list[Message]]:
    """Receives messages of one conversation group, in this transaction; timeout, in milliseconds, waits for one."""
    source = _READS if as_reader else "(select %(queue)s::text as reads) as x cross join lateral"
    return Statement(
        f"select {Message.COLUMNS} from {source} parley.receive(queue => x.reads, top => %(top)s::integer,"
        " timeout => %(timeout)s::integer) order by queuing_order",
        {"queue": queue, "top": top, "timeout": timeout, "reader": "on"},
        lambda rows: [Message(*row) for row in rows],
    )


def receive_reply(handle: UUID, *, timeout: int = 0) -> Statement[Optional[Message]]:
    """Takes the first message that came back on a conversation, and ends that; timeout, in milliseconds, waits for it."""
    return Statement(
        f"select {Message.COLUMNS} from parley.receive_reply(%(handle)s::uuid, timeout => %(timeout)s::integer)",
        {"handle": handle, "timeout": timeout},
        lambda rows: Message(*rows[0]) if rows else None,
    )


def end_conversation(handle: UUID, *, error_code: Optional[int] = None, description: str = "") -> Statement[None]:
    """Ends this side of a conversation; with error_code, above zero, the far side gets an Error message."""
    if error_code is None:
        return Statement("select parley.end_conversation(%(handle)s::uuid)", {"handle": handle}, _nothing)
    return Statement(
        "select parley.end_conversation(conversation_handle => %(handle)s::uuid, error_code => %(code)s::integer,"
        " description => %(description)s::text)",
        {"handle": handle, "code": error_code, "description": description}, _nothing,
    )


def begin_conversation_timer(handle: UUID, seconds: int) -> Statement[None]:
    """Makes a DialogTimer message appear in this side's queue after so many seconds."""
    return Statement(
        "select parley.begin_conversation_timer(%(handle)s::uuid, %(seconds)s::integer)",
        {"handle": handle, "seconds": seconds}, _nothing,
    )


def record_failure(handle: UUID, failure: object) -> Statement[bool]:
    """Reports that a transaction that had received from a conversation failed, and why. Call it after the rollback."""
    state, text = _described(failure)
    return Statement(
        "select parley.record_failure(conversation_handle => %(handle)s::uuid, sqlstate => %(state)s::text,"
        " message => %(error)s::text)",
        {"handle": handle, "state": state, "error": text}, _value,
    )


def retry_conversation(
    handle: UUID, failure: object = None, *, delay: Optional[timedelta] = None
) -> Statement[Retried]:
    """Reports a failure and has the conversation wait, by the queue's policy or for delay. Call it after the rollback."""
    state, text = _described(failure)
    return Statement(
        "select retry_at, is_set_aside from parley.retry_conversation(conversation_handle => %(handle)s::uuid,"
        " error => %(error)s::text, sqlstate => %(state)s::text, delay => %(delay)s::interval)",
        {"handle": handle, "error": text, "state": state, "delay": delay},
        lambda rows: Retried(*rows[0]),
    )


def fail_conversation(handle: UUID, failure: object = None) -> Statement[bool]:
    """Sets a conversation aside at once. Call it after the rollback."""
    state, text = _described(failure)
    return Statement(
        "select parley.fail_conversation(conversation_handle => %(handle)s::uuid, error => %(error)s::text,"
        " sqlstate => %(state)s::text)",
        {"handle": handle, "error": text, "state": state}, _value,
    )


def listen_for_messages(queue: str, seconds: int) -> Statement[str]:
    """Asks senders to notify for so many seconds, and gives the payload that stands for the queue."""
    return Statement(
        "select parley.listen_for_messages(%(queue)s::text, %(seconds)s::integer)",
        {"queue": queue, "seconds": seconds}, _value,
    )


def attach_broker() -> Statement[tuple[int, int, str, str]]:
    """Gives schema version, oldest client version, state and advice."""
    return Statement(
        "select schema_version, oldest_client_version, broker_state, coalesce(advice, '') from parley.attach_broker()",
        {}, lambda rows: (rows[0][0], rows[0][1], rows[0][2], rows[0][3]),
    )


def backend_pid() -> Statement[int]:
    """The process of the server that runs this statement: through a pooler another one than that of the connection."""
    return Statement("select pg_backend_pid()", {}, _value)


def _described(failure: object) -> tuple[Optional[str], Optional[str]]:
    if failure is None or isinstance(failure, str):
        return None, failure
    return describe(failure) if isinstance(failure, BaseException) else (None, str(failure))


def _json(value: Any) -> Optional[str]:
    return None if value is None else json.dumps(value, ensure_ascii=False)
