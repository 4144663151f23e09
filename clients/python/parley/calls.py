"""The calls of the broker on a connection of psycopg, in its transaction."""

from __future__ import annotations

import math
import time
from typing import Any, Callable, Concatenate, Optional, ParamSpec, TypeVar
from uuid import UUID

import psycopg
from psycopg import rows

from . import errors, statements
from .messages import Body, Message
from .statements import Statement

P = ParamSpec("P")
T = TypeVar("T")


def run(connection: psycopg.Connection[Any], statement: Statement[T]) -> T:
    """Sends a statement and reads its answer; an error of the broker becomes an exception of its number."""
    try:
        with connection.cursor(row_factory=rows.tuple_row) as cursor:
            cursor.execute(statement.sql, statement.parameters)
            return statement.read(cursor.fetchall())
    except psycopg.Error as failure:
        found = errors.translate(failure)
        if found is failure:
            raise
        raise found from failure


def _call(statement: Callable[P, Statement[T]]) -> Callable[Concatenate[psycopg.Connection[Any], P], T]:
    def call(connection: psycopg.Connection[Any], /, *arguments: P.args, **named: P.kwargs) -> T:
        return run(connection, statement(*arguments, **named))

    call.__name__ = call.__qualname__ = statement.__name__
    call.__doc__ = statement.__doc__
    return call


put = _call(statements.put)
put_batch = _call(statements.put_batch)
put_each = _call(statements.put_each)
put_unique = _call(statements.put_unique)
put_group = _call(statements.put_group)
take = _call(statements.take)
retry = _call(statements.retry)
fail = _call(statements.fail)
cancel = _call(statements.cancel)
done = _call(statements.done)
claim = _call(statements.claim)
renew = _call(statements.renew)
complete = _call(statements.complete)
give_back = _call(statements.give_back)
begin_dialog = _call(statements.begin_dialog)
send = _call(statements.send)
send_batch = _call(statements.send_batch)
begin_and_send = _call(statements.begin_and_send)
send_and_end = _call(statements.send_and_end)
receive = _call(statements.receive)
receive_reply = _call(statements.receive_reply)
end_conversation = _call(statements.end_conversation)
begin_conversation_timer = _call(statements.begin_conversation_timer)
record_failure = _call(statements.record_failure)
retry_conversation = _call(statements.retry_conversation)
fail_conversation = _call(statements.fail_conversation)


def reply(
    connection: psycopg.Connection[Any], message: Message, body: Body = None, *, message_type: Optional[str] = None
) -> None:
    """Answers a message on its conversation and ends this side."""
    send(connection, message.conversation_handle, body, message_type=message_type or "DEFAULT")
    end_conversation(connection, message.conversation_handle)


#: For so many milliseconds one statement waits for a reply: while it runs the server removes no dead row.
REPLY_WAIT = 500
#: The code of the Error that a target receives when nobody waits for its reply any more.
REQUEST_GIVEN_UP = 408
#: For so many seconds longer than its time-out the dialog of a request lives when nobody ends it, as after a crash.
LIFETIME_BEYOND = 5


def request(
    connection: psycopg.Connection[Any], from_service: str, to_service: str, body: Body = None, *, timeout: float,
    message_type: str = "DEFAULT", contract: str = "DEFAULT",
) -> Message:
    """Begins a dialog, sends, commits, waits for the reply, takes it and ends the conversation; timeout in seconds.

    The connection must not be in a transaction: a request has to be committed before it can be answered. Raises
    ConversationError, NoReply or RequestTimeout.
    """
    requester = Request(from_service, to_service, timeout)
    require_no_transaction(connection)
    with connection.transaction():
        handle = begin_dialog(
            connection, from_service, to_service, contract=contract, lifetime=requester.lifetime
        )
        send(connection, handle, body, message_type=message_type)
    while True:
        wait = requester.wait()
        with connection.transaction():
            found = receive_reply(connection, handle, timeout=wait)
        if found and not found.is_dialog_timer:
            return judge_reply(found)
        if not wait:
            break
    try:
        with connection.transaction():
            end_conversation(connection, handle, error_code=REQUEST_GIVEN_UP, description=GIVEN_UP)
    except errors.ConversationNotFound:
        pass  # its lifetime is over, and somebody has ended it
    raise requester.timed_out(handle)


GIVEN_UP = "The request was given up: nobody waits for the reply any more."


class Request:
    """The time that a request has."""

    def __init__(self, from_service: str, to_service: str, timeout: float) -> None:
        if timeout <= 0:
            raise ValueError("the time-out of a request must be positive: give seconds")
        self._clock = time.monotonic
        self._names = f"{from_service} to {to_service}"
        self._timeout, self._end = timeout, time.monotonic() + timeout
        self.lifetime = math.ceil(timeout) + LIFETIME_BEYOND

    def wait(self) -> int:
        """For how many milliseconds to wait now; 0 when the time is over."""
        return max(0, min(REPLY_WAIT, int((self._end - self._clock()) * 1000)))

    def timed_out(self, handle: UUID) -> errors.RequestTimeout:
        return errors.RequestTimeout(
            f"request from {self._names}: no reply within {self._timeout} s on conversation {handle}."
            " Give it more time, or see whether the target's readers run: parley diagnose."
        )


def judge_reply(found: Message) -> Message:
    """Gives the reply, or raises what came in its place."""
    if found.is_error:
        raise found.error()
    if found.is_end_dialog:
        raise errors.NoReply(f"conversation {found.conversation_handle}: the other side has ended it without a reply")
    return found


def require_no_transaction(connection: Any) -> None:
    if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE or not connection.autocommit:
        raise psycopg.ProgrammingError(
            "a request has to be committed before it can be answered: connect with autocommit=True and call it outside"
            " of a transaction"
        )
