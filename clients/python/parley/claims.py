"""Long work in threads: messages are claimed, no transaction is open, and a heartbeat renews the claim."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, Callable, Optional

import psycopg

from . import calls, decisions, statements
from .decisions import HandlerFailed
from .errors import ClaimLost
from .messages import Claim, TakenMessage
from .workers import Connection, Worker


class Work:
    """Claimed messages in the hands of a handler."""

    def __init__(self, claimed: Claim, connect: Callable[[], Connection]) -> None:
        self._claimed, self._connect = claimed, connect
        self._progress: Any = None
        self._lost = threading.Event()
        self._connection: Optional[Connection] = None
        self.is_complete = False

    @property
    def messages(self) -> Sequence[TakenMessage]:
        return self._claimed.messages

    @property
    def is_lost(self) -> bool:
        """Whether others have the messages by now, or they were cancelled: then break off."""
        return self._lost.is_set()

    def progress(self, value: Any) -> None:
        """Shows those who wait how far the work is, with the next heartbeat. Raises ClaimLost when it has to break off."""
        self.require()
        self._progress = value

    def require(self) -> None:
        """Raises ClaimLost when the work has to break off."""
        if self.is_lost:
            raise ClaimLost(f"claim {self._claimed.claim} of queue {self._claimed.queue} was lost or cancelled: break off")

    def beat(self, connection: Connection, lease: timedelta) -> None:
        """Renews the claim and shows the progress."""
        if not calls.renew(connection, self._claimed, lease=lease, progress=self._progress) and not self.is_complete:
            self._lost.set()

    @contextlib.contextmanager
    def transaction(self, result: Any = None) -> Iterator[Connection]:
        """A transaction for the results, at whose end the messages are taken. Raises ClaimLost, and rolls back."""
        connection = self._connection = self._connect()
        with connection.transaction():
            yield connection
            if not calls.complete(connection, self._claimed, result):
                self._lost.set()
                self.require()
        self.is_complete = True

    def close(self, kept: Connection) -> None:
        """Closes a connection that was opened for the results."""
        if self._connection is not None and self._connection is not kept:
            self._connection.close()


class ClaimConsumer(Worker[TakenMessage]):
    """Claims messages of a simple queue for long work and calls handler(work), while no transaction is open.

    lease is for how long, in seconds, the messages are out of reach when this process dies; a heartbeat renews it. The
    handler writes its results in work.transaction(). When it returns without one, the messages are taken then, with what
    it returns as the result. An exception gives them back: they wait by the retry policy of the queue, or as RetryAfter
    and Final say. handler_timeout reports work that took too long; it cannot interrupt it.
    """

    def __init__(
        self, queue: str, handler: Callable[[Work], Any], *, count: int = 1, lease: float = 60.0, **settings: Any
    ) -> None:
        super().__init__(queue, handler, **settings)
        if lease <= 0:
            raise ValueError("lease must be above zero: give seconds")
        self.count, self.lease = count, timedelta(seconds=lease)
        self._held: dict[int, Work] = {}
        self._finished = threading.Event()

    def run(self) -> None:
        self._finished.clear()
        try:
            super().run()
        finally:
            self._finished.set()

    def _parts(self) -> list[Callable[[], None]]:
        return [self._beat, *super()._parts()]

    def _work_once(self, connection: Connection) -> bool:
        claimed = calls.claim(connection, self.settings.queue, self.count, lease=self.lease)
        if claimed is None:
            return False
        self._wake_ups.notify_others()
        work = Work(claimed, lambda: self._alive(connection))
        self._held[id(work)] = work
        try:
            result = self._call(None, claimed.messages, lambda: self._handler(work))
            if not work.is_complete:
                with work.transaction(result):
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
            work.close(connection)
        return True

    def _alive(self, connection: Connection) -> Connection:
        """The connection, or another one where the server was started again while nothing was asked of it."""
        with contextlib.suppress(psycopg.Error):
            calls.run(connection, statements.backend_pid())
            return connection
        return self._connect()

    def _beat(self) -> None:
        """Renews all claims, and lets their handlers know which are lost."""
        connection: Optional[Connection] = None
        interval = self.lease.total_seconds() / decisions.BEATS_PER_LEASE
        while not self._finished.wait(interval):
            for work in list(self._held.values()):
                try:
                    if connection is None or connection.closed:
                        connection = self._connect()
                    work.beat(connection, self.lease)
                except psycopg.Error as failure:
                    self.settings.logger.warning("queue %s: a claim could not be renewed: %s", self.settings.queue, failure)
                    if connection is not None:
                        connection.close()
        if connection is not None:
            connection.close()
