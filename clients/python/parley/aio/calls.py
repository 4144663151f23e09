"""The calls of the broker on a connection of psycopg for asyncio, in its transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Callable, Concatenate, Optional, ParamSpec, TypeVar

import psycopg
from psycopg import rows

from .. import errors, statements
from ..calls import GIVEN_UP, REQUEST_GIVEN_UP, Request, judge_reply, require_no_transaction
from ..messages import Body, Message
from ..statements import Statement

P = ParamSpec("P")
T = TypeVar("T")
Connection = psycopg.AsyncConnection[Any]


async def run(connection: Connection, statement: Statement[T]) -> T:
    """Sends a statement and reads its answer; an error of the broker becomes an exception of its number."""
    try:
        async with connection.cursor(row_factory=rows.tuple_row) as cursor:
            await cursor.execute(statement.sql, statement.parameters)
            return statement.read(await cursor.fetchall())
    except psycopg.Error as failure:
        found = errors.translate(failure)
        if found is failure:
            raise
        raise found from failure


def _call(statement: Callable[P, Statement[T]]) -> Callable[Concatenate[Connection, P], Awaitable[T]]:
    async def call(connection: Connection, /, *arguments: P.args, **named: P.kwargs) -> T:
        return await run(connection, statement(*arguments, **named))

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


async def reply(
    connection: Connection, message: Message, body: Body = None, *, message_type: Optional[str] = None
) -> None:
    """Answers a message on its conversation and ends this side."""
    await send(connection, message.conversation_handle, body, message_type=message_type or "DEFAULT")
    await end_conversation(connection, message.conversation_handle)


async def request(
    connection: Connection, from_service: str, to_service: str, body: Body = None, *, timeout: float,
    message_type: str = "DEFAULT", contract: str = "DEFAULT",
) -> Message:
    """Begins a dialog, sends, commits, waits for the reply, takes it and ends the conversation; timeout in seconds.

    As parley.request; a task that is cancelled gives the request up.
    """
    requester = Request(from_service, to_service, timeout)
    require_no_transaction(connection)
    async with connection.transaction():
        handle = await begin_dialog(
            connection, from_service, to_service, contract=contract, lifetime=requester.lifetime
        )
        await send(connection, handle, body, message_type=message_type)
    try:
        while True:
            wait = requester.wait()
            async with connection.transaction():
                found = await receive_reply(connection, handle, timeout=wait)
            if found and not found.is_dialog_timer:
                return judge_reply(found)
            if not wait:
                raise requester.timed_out(handle)
    except (errors.RequestTimeout, asyncio.CancelledError):
        await _give_up(connection, handle)
        raise


async def _give_up(connection: Connection, handle: Any) -> None:
    try:
        async with connection.transaction():
            await end_conversation(connection, handle, error_code=REQUEST_GIVEN_UP, description=GIVEN_UP)
    except errors.ConversationNotFound:
        pass  # its lifetime is over, and somebody has ended it
