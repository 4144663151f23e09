"""Workers in threads: each reader has a connection and does one transaction after the other until the worker stops."""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, Callable, Generic, Optional, TypeVar

import psycopg

from . import calls, decisions, statements
from .decisions import HandlerFailed, HandlerTimeout, Observer, Settings, Turn
from .errors import BrokerUnusable, ConversationNotFound, EndNotAllowed, HandlersCutOff, translate
from .messages import Message, TakenMessage
from .tracing import handling
from .wakeups import WakeUps

Connection = psycopg.Connection[Any]
M = TypeVar("M")
#: Works on messages in the transaction of the connection, which it neither commits nor rolls back.
Handler = Callable[[Connection, Sequence[M]], Any]


class Worker(Generic[M]):
    """What all workers have in common. Times are in seconds.

    Any number of workers may work on one queue, in any number of processes. Failures while it runs are logged and tried
    again. Readers are woken by notifications; where none can come, because the connection leads through a pooler, they
    read the queue once each poll_interval.
    """

    def __init__(
        self, queue: str, handler: Callable[..., Any], *, conninfo: str = "", readers: int = 1,
        handler_timeout: Optional[float] = None, grace_time: float = 30.0, poll_interval: float = 1.0,
        listen_conninfo: Optional[str] = None, logger: Optional[logging.Logger] = None,
        observer: Optional[Observer] = None,
    ) -> None:
        self.settings = Settings(
            queue, conninfo, readers, handler_timeout, grace_time, poll_interval, listen_conninfo,
            logger or decisions.log, observer,
        )
        self._handler = handler
        self._stopping = threading.Event()
        self._is_cut_off = False
        self._wake_ups = WakeUps(self.settings, self._stopping)
        self._busy: dict[int, Connection] = {}

    def stop(self) -> None:
        """Has run take nothing more and return when running handlers have finished, after grace_time at the latest."""
        self._stopping.set()
        for _ in range(self.settings.readers):
            self._wake_ups.notify()

    def run(self) -> None:
        """Works until stop is called; in the main thread SIGTERM and SIGINT call it.

        Raises BrokerUnusable for a schema that does not fit or a copy of a database, HandlersCutOff when handlers did not
        finish in time.
        """
        self._attach()
        with self._signals():
            threads = [threading.Thread(target=part, daemon=True, name=f"parley {self.settings.queue} {number}")
                       for number, part in enumerate(self._parts())]
            for thread in threads:
                thread.start()
            while not self._stopping.wait(1):
                pass
            self._finish(threads)

    def _parts(self) -> list[Callable[[], None]]:
        return [self._wake_ups.listen] + [self._read] * self.settings.readers

    def _finish(self, threads: list[threading.Thread]) -> None:
        self.stop()
        end = time.monotonic() + self.settings.grace_time
        readers = threads[-self.settings.readers:]
        while any(thread.is_alive() for thread in readers) and time.monotonic() < end:
            self._wake_ups.notify()
            next(thread for thread in readers if thread.is_alive() or thread is readers[-1]).join(0.05)
        left = sum(thread.is_alive() for thread in readers)
        if not left:
            return
        self._is_cut_off = True
        for connection in list(self._busy.values()):
            with contextlib.suppress(psycopg.Error):
                connection.cancel_safe(timeout=1)
        for thread in readers:
            thread.join(1)
        raise HandlersCutOff(
            f"queue {self.settings.queue}: {left} handlers did not finish within {self.settings.grace_time} s; their work"
            " is rolled back at the latest when this process ends"
        )

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, lambda *_: self.stop()) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _connect(self) -> Connection:
        connection: Connection = psycopg.connect(self.settings.conninfo, autocommit=True, prepare_threshold=None)
        # A reader has to see what others committed after its transaction began.
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        return connection

    def _attach(self) -> None:
        """That the database cannot be reached just now is no reason to refuse: readers try again by themselves."""
        try:
            with self._connect() as connection:
                decisions.require_usable(calls.run(connection, statements.attach_broker()))
        except psycopg.OperationalError as failure:
            self.settings.logger.warning("queue %s: the database is away: %s", self.settings.queue, failure)
        except psycopg.Error as failure:
            raise BrokerUnusable(str(translate(failure))) from failure

    def _read(self) -> None:
        """The life of one reader."""
        connection: Optional[Connection] = None
        failures = 0
        while not self._stopping.is_set():
            try:
                if connection is None or connection.closed:
                    connection = self._connect()
                if self._work_once(connection):
                    failures = 0
                elif not self._wake_ups.ask(connection):
                    failures = 0
                    self._wake_ups.wait()
            except Exception as failure:
                failures += 1
                if isinstance(failure, HandlerFailed) and connection is not None:
                    self._report(connection, failure)
                self._stopping.wait(decisions.judge(self.settings, failure, failures))
        if connection is not None:
            connection.close()

    def _work_once(self, connection: Connection) -> bool:
        """Does one transaction, and says whether there was anything to do."""
        raise NotImplementedError

    def _report(self, connection: Connection, failure: HandlerFailed) -> None:
        """Says why messages could not be handled. A failure that is not reported is still counted, without its reason."""
        try:
            if connection.closed:
                connection = self._connect()
            with connection.transaction():
                for statement in failure.reports:
                    calls.run(connection, statement)
        except psycopg.Error as refusal:
            self.settings.logger.warning("the failure could not be reported to the broker: %s", refusal)

    def _call(self, connection: Optional[Connection], messages: Sequence[Any], call: Callable[[], Any]) -> Any:
        """Calls the handler, within its time, and observes it."""
        began = time.monotonic()
        failure: Optional[BaseException] = None
        if connection is not None:
            self._busy[threading.get_ident()] = connection
        try:
            with handling(messages), self._bounded(connection):
                result = call()
            if self._is_cut_off:
                raise HandlersCutOff("the worker stopped")
            if connection is not None:
                decisions.require_sound(connection)
            return result
        except BaseException as error:
            failure = error
            raise
        finally:
            self._busy.pop(threading.get_ident(), None)
            self.settings.observe(Turn(self.settings.queue, len(messages), time.monotonic() - began, failure))

    @contextlib.contextmanager
    def _bounded(self, connection: Optional[Connection]) -> Iterator[None]:
        seconds = self.settings.handler_timeout
        if not seconds:
            yield
            return
        is_over = threading.Event()

        def end() -> None:
            is_over.set()
            if connection is not None:
                with contextlib.suppress(psycopg.Error):
                    connection.cancel_safe(timeout=1)

        timer = threading.Timer(seconds, end)
        timer.start()
        try:
            yield
        except Exception as failure:
            if is_over.is_set():
                raise HandlerTimeout(seconds) from failure
            raise
        finally:
            timer.cancel()
            timer.join()
        if is_over.is_set():
            raise HandlerTimeout(seconds)


class SimpleConsumer(Worker[TakenMessage]):
    """Takes from a simple queue and calls handler(connection, messages) in the transaction that took them.

    count bounds the messages of one call. An exception rolls back, and the messages come again, each in a call of its
    own; each waits by the retry policy of the queue, or as RetryAfter and Final say.
    """

    def __init__(self, queue: str, handler: Handler[TakenMessage], *, count: int = 1, **settings: Any) -> None:
        super().__init__(queue, handler, **settings)
        self.count = count

    def _work_once(self, connection: Connection) -> bool:
        messages: list[TakenMessage] = []
        try:
            with connection.transaction():
                messages = calls.take(connection, self.settings.queue, self.count, as_reader=True)
                if messages:
                    self._wake_ups.notify_others()
                    self._call(connection, messages, lambda: self._handler(connection, messages))
        except Exception as failure:
            # When the connection is lost that is not the message's fault, and the broker counts it.
            if not messages or connection.closed:
                raise
            raise decisions.failed_to_take(self.settings.queue, messages, failure) from failure
        return bool(messages)


class Consumer(Worker[Message]):
    """Receives from a queue of conversations and calls handler(connection, messages) in that transaction.

    The messages are of one conversation group, at most top of them. An exception rolls back, and they come again, one in
    each call, so that those in front of a bad one are handled and it fails alone; then it waits, or is set aside with its
    conversation. Unless handle_system_messages is set, EndDialog and Error messages end this side after the handler has
    seen the others.
    """

    def __init__(
        self, queue: str, handler: Handler[Message], *, top: int = 100, handle_system_messages: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__(queue, handler, **settings)
        self.top, self.handle_system_messages = top, handle_system_messages
        self._singles = 0  # so many messages are received alone, after a failure

    def _work_once(self, connection: Connection) -> bool:
        messages: list[Message] = []
        top = 1 if self._singles > 0 else self.top
        try:
            with connection.transaction():
                messages = calls.receive(connection, self.settings.queue, top, as_reader=True)
                if messages:
                    self._wake_ups.notify_others()
                    self._handle(connection, messages)
        except Exception as failure:
            if not messages or connection.closed:
                raise
            self._singles = max(self._singles, len(messages))
            raise decisions.failed_to_receive(messages, failure) from failure
        self._singles = max(0, self._singles - len(messages))
        return bool(messages)

    def _handle(self, connection: Connection, messages: list[Message]) -> None:
        if self.handle_system_messages:
            self._call(connection, messages, lambda: self._handler(connection, messages))
            return
        others, ended = decisions.separate(messages)
        decisions.log_conversation_errors(self.settings, messages)
        if others:
            self._call(connection, others, lambda: self._handler(connection, others))
        for handle in ended:
            # The handler may have ended it already.
            with contextlib.suppress(ConversationNotFound, EndNotAllowed), connection.transaction():
                calls.end_conversation(connection, handle)
