"""Workers in tasks: each reader has a connection and does one transaction after the other until the worker stops."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Callable, Generic, Optional, TypeVar

import psycopg

from .. import decisions, statements
from ..decisions import HandlerFailed, HandlerTimeout, Observer, Settings, Turn
from ..errors import BrokerUnusable, ClaimLost, ConversationNotFound, EndNotAllowed, HandlersCutOff, translate
from ..messages import Claim, Message, TakenMessage
from ..tracing import handling
from . import calls
from .calls import Connection
from .wakeups import WakeUps

M = TypeVar("M")
#: Works on messages in the transaction of the connection, which it neither commits nor rolls back.
Handler = Callable[[Connection, Sequence[M]], Awaitable[Any]]


class Worker(Generic[M]):
    """What all workers have in common, as parley.workers.Worker; handlers are coroutines."""

    def __init__(
        self, queue: str, handler: Callable[..., Awaitable[Any]], *, conninfo: str = "", readers: int = 1,
        handler_timeout: Optional[float] = None, grace_time: float = 30.0, poll_interval: float = 1.0,
        listen_conninfo: Optional[str] = None, logger: Optional[logging.Logger] = None,
        observer: Optional[Observer] = None,
    ) -> None:
        self.settings = Settings(
            queue, conninfo, readers, handler_timeout, grace_time, poll_interval, listen_conninfo,
            logger or decisions.log, observer,
        )
        self._handler = handler
        self._stopping = asyncio.Event()
        self._wake_ups = WakeUps(self.settings, self._stopping)

    def stop(self) -> None:
        """Has run take nothing more and return when running handlers have finished, after grace_time at the latest."""
        self._stopping.set()

    async def run(self) -> None:
        """Works until stop is called, or SIGTERM or SIGINT comes in the main thread; a task that is cancelled stops too.

        Raises BrokerUnusable for a schema that does not fit or a copy of a database, HandlersCutOff when handlers did not
        finish in time and were rolled back.
        """
        await self._attach()
        with self._signals():
            parts = [asyncio.create_task(part) for part in self._parts()]
            readers = [asyncio.create_task(self._read()) for _ in range(self.settings.readers)]
            try:
                await self._stopping.wait()
            finally:
                self.stop()
                _, late = await asyncio.wait(readers, timeout=self.settings.grace_time)
                for task in [*late, *parts]:
                    task.cancel()
                await asyncio.gather(*readers, *parts, return_exceptions=True)
        if late:
            raise HandlersCutOff(
                f"queue {self.settings.queue}: {len(late)} handlers did not finish within {self.settings.grace_time} s and"
                " were rolled back"
            )

    def _parts(self) -> list[Any]:
        return [self._wake_ups.listen()]

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        numbers = [signal.SIGTERM, signal.SIGINT]
        try:
            for number in numbers:
                loop.add_signal_handler(number, self.stop)
        except (NotImplementedError, RuntimeError, ValueError):
            numbers = []  # not in the main thread, or on Windows
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    async def _connect(self) -> Connection:
        connection: Connection = await psycopg.AsyncConnection.connect(
            self.settings.conninfo, autocommit=True, prepare_threshold=None
        )
        # A reader has to see what others committed after its transaction began.
        await connection.set_isolation_level(psycopg.IsolationLevel.READ_COMMITTED)
        return connection

    async def _attach(self) -> None:
        """That the database cannot be reached just now is no reason to refuse: readers try again by themselves."""
        try:
            async with await self._connect() as connection:
                decisions.require_usable(await calls.run(connection, statements.attach_broker()))
        except psycopg.OperationalError as failure:
            self.settings.logger.warning("queue %s: the database is away: %s", self.settings.queue, failure)
        except psycopg.Error as failure:
            raise BrokerUnusable(str(translate(failure))) from failure

    async def _read(self) -> None:
        """The life of one reader."""
        connection: Optional[Connection] = None
        failures = 0
        try:
            while not self._stopping.is_set():
                try:
                    if connection is None or connection.closed:
                        connection = await self._connect()
                    if await self._work_once(connection):
                        failures = 0
                    elif not await self._wake_ups.ask(connection):
                        failures = 0
                        await self._sleep()
                except Exception as failure:
                    failures += 1
                    if isinstance(failure, HandlerFailed) and connection is not None:
                        await self._report(connection, failure)
                    await self._wake_ups.pause(decisions.judge(self.settings, failure, failures))
        finally:
            if connection is not None:
                await connection.close()

    async def _sleep(self) -> None:
        """Until the next wake-up, or until the worker stops."""
        waits = [asyncio.create_task(self._wake_ups.wait()), asyncio.create_task(self._stopping.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _work_once(self, connection: Connection) -> bool:
        """Does one transaction, and says whether there was anything to do."""
        raise NotImplementedError

    async def _report(self, connection: Connection, failure: HandlerFailed) -> None:
        """Says why messages could not be handled. A failure that is not reported is still counted, without its reason."""
        try:
            if connection.closed:
                connection = await self._connect()
            async with connection.transaction():
                for statement in failure.reports:
                    await calls.run(connection, statement)
        except psycopg.Error as refusal:
            self.settings.logger.warning("the failure could not be reported to the broker: %s", refusal)

    async def _call(self, messages: Sequence[Any], call: Callable[[], Awaitable[Any]]) -> Any:
        """Calls the handler, within its time, and observes it."""
        began = time.monotonic()
        failure: Optional[BaseException] = None
        try:
            with handling(messages):
                seconds = self.settings.handler_timeout
                if not seconds:
                    return await call()
                task = asyncio.ensure_future(call())
                done, _ = await _wait_or_cancel(task, seconds)
                if not done:
                    raise HandlerTimeout(seconds)
                return task.result()
        except BaseException as error:
            failure = error
            raise
        finally:
            self.settings.observe(Turn(self.settings.queue, len(messages), time.monotonic() - began, failure))


async def _wait_or_cancel(task: asyncio.Future[Any], seconds: float) -> tuple[set[Any], set[Any]]:
    """Waits so long, and cancels the task when it has not ended by then, or when this one is cancelled."""
    try:
        done, left = await asyncio.wait([task], timeout=seconds)
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait([task])
        raise
    if left:
        task.cancel()
        await asyncio.wait([task])
    return done, left


class SimpleConsumer(Worker[TakenMessage]):
    """Takes from a simple queue and awaits handler(connection, messages), as parley.SimpleConsumer."""

    def __init__(self, queue: str, handler: Handler[TakenMessage], *, count: int = 1, **settings: Any) -> None:
        super().__init__(queue, handler, **settings)
        self.count = count

    async def _work_once(self, connection: Connection) -> bool:
        messages: list[TakenMessage] = []
        try:
            async with connection.transaction():
                messages = await calls.take(connection, self.settings.queue, self.count, as_reader=True)
                if messages:
                    self._wake_ups.notify_others()
                    await self._call(messages, lambda: self._handler(connection, messages))
                    decisions.require_sound(connection)
        except Exception as failure:
            # When the connection is lost that is not the message's fault, and the broker counts it.
            if not messages or connection.closed:
                raise
            raise decisions.failed_to_take(self.settings.queue, messages, failure) from failure
        return bool(messages)


class Consumer(Worker[Message]):
    """Receives from a queue of conversations and awaits handler(connection, messages), as parley.Consumer."""

    def __init__(
        self, queue: str, handler: Handler[Message], *, top: int = 100, handle_system_messages: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__(queue, handler, **settings)
        self.top, self.handle_system_messages = top, handle_system_messages
        self._singles = 0  # so many messages are received alone, after a failure

    async def _work_once(self, connection: Connection) -> bool:
        messages: list[Message] = []
        top = 1 if self._singles > 0 else self.top
        try:
            async with connection.transaction():
                messages = await calls.receive(connection, self.settings.queue, top, as_reader=True)
                if messages:
                    self._wake_ups.notify_others()
                    await self._handle(connection, messages)
        except Exception as failure:
            if not messages or connection.closed:
                raise
            self._singles = max(self._singles, len(messages))
            raise decisions.failed_to_receive(messages, failure) from failure
        self._singles = max(0, self._singles - len(messages))
        return bool(messages)

    async def _handle(self, connection: Connection, messages: list[Message]) -> None:
        if self.handle_system_messages:
            await self._call(messages, lambda: self._handler(connection, messages))
            decisions.require_sound(connection)
            return
        others, ended = decisions.separate(messages)
        decisions.log_conversation_errors(self.settings, messages)
        if others:
            await self._call(others, lambda: self._handler(connection, others))
            decisions.require_sound(connection)
        for handle in ended:
            # The handler may have ended it already.
            with contextlib.suppress(ConversationNotFound, EndNotAllowed):
                async with connection.transaction():
                    await calls.end_conversation(connection, handle)


class Work:
    """Claimed messages in the hands of a handler, as parley.Work."""

    def __init__(self, claimed: Claim, connect: Callable[[], Awaitable[Connection]]) -> None:
        self._claimed, self._connect = claimed, connect
        self._progress: Any = None
        self._connection: Optional[Connection] = None
        self.is_lost = False
        self.is_complete = False

    @property
    def messages(self) -> Sequence[TakenMessage]:
        return self._claimed.messages

    def progress(self, value: Any) -> None:
        """Shows those who wait how far the work is, with the next heartbeat. Raises ClaimLost when it has to break off."""
        self.require()
        self._progress = value

    def require(self) -> None:
        """Raises ClaimLost when the work has to break off."""
        if self.is_lost:
            raise ClaimLost(f"claim {self._claimed.claim} of queue {self._claimed.queue} was lost or cancelled: break off")

    async def beat(self, connection: Connection, lease: timedelta) -> None:
        """Renews the claim and shows the progress."""
        if not await calls.renew(connection, self._claimed, lease=lease, progress=self._progress) and not self.is_complete:
            self.is_lost = True

    @contextlib.asynccontextmanager
    async def transaction(self, result: Any = None) -> AsyncIterator[Connection]:
        """A transaction for the results, at whose end the messages are taken. Raises ClaimLost, and rolls back."""
        connection = self._connection = await self._connect()
        async with connection.transaction():
            yield connection
            if not await calls.complete(connection, self._claimed, result):
                self.is_lost = True
                self.require()
        self.is_complete = True

    async def close(self, kept: Connection) -> None:
        """Closes a connection that was opened for the results."""
        if self._connection is not None and self._connection is not kept:
            await self._connection.close()


class ClaimConsumer(Worker[TakenMessage]):
    """Claims messages for long work and awaits handler(work) while no transaction is open, as parley.ClaimConsumer."""

    def __init__(
        self, queue: str, handler: Callable[[Work], Awaitable[Any]], *, count: int = 1, lease: float = 60.0,
        **settings: Any,
    ) -> None:
        super().__init__(queue, handler, **settings)
        if lease <= 0:
            raise ValueError("lease must be above zero: give seconds")
        self.count, self.lease = count, timedelta(seconds=lease)
        self._held: dict[int, Work] = {}

    def _parts(self) -> list[Any]:
        return [self._beat(), *super()._parts()]

    async def _work_once(self, connection: Connection) -> bool:
        claimed = await calls.claim(connection, self.settings.queue, self.count, lease=self.lease)
        if claimed is None:
            return False
        self._wake_ups.notify_others()
        work = Work(claimed, lambda: self._alive(connection))
        self._held[id(work)] = work
        try:
            result = await self._call(claimed.messages, lambda: self._handler(work))
            if not work.is_complete:
                async with work.transaction(result):
                    pass
        except ClaimLost as lost:
            self.settings.logger.warning("queue %s: %s", self.settings.queue, lost)
        except Exception as failure:
            if work.is_complete:
                self.settings.logger.exception("queue %s: the handler failed after its work was complete", self.settings.queue)
                return True
            subject = f"messages {[message.message_id for message in claimed.messages]}"
            raise HandlerFailed(decisions.failed_claim(claimed, failure), len(claimed.messages), subject, failure) from failure
        finally:
            self._held.pop(id(work), None)
            await work.close(connection)
        return True

    async def _alive(self, connection: Connection) -> Connection:
        """The connection, or another one where the server was started again while nothing was asked of it."""
        with contextlib.suppress(psycopg.Error):
            await calls.run(connection, statements.backend_pid())
            return connection
        return await self._connect()

    async def _beat(self) -> None:
        """Renews all claims, and lets their handlers know which are lost."""
        connection: Optional[Connection] = None
        try:
            while True:
                await asyncio.sleep(self.lease.total_seconds() / decisions.BEATS_PER_LEASE)
                for work in list(self._held.values()):
                    try:
                        if connection is None or connection.closed:
                            connection = await self._connect()
                        await work.beat(connection, self.lease)
                    except psycopg.Error as failure:
                        self.settings.logger.warning(
                            "queue %s: a claim could not be renewed: %s", self.settings.queue, failure
                        )
                        if connection is not None:
                            await connection.close()
        finally:
            if connection is not None:
                await connection.close()
