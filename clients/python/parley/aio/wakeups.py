"""Wake-ups of the readers of a worker in tasks, as parley.wakeups has them for threads."""

from __future__ import annotations

import asyncio
import time
from typing import Optional

import psycopg

from .. import statements
from ..decisions import Settings, pause_after
from . import calls


class WakeUps:
    def __init__(self, settings: Settings, stopping: asyncio.Event) -> None:
        self._settings, self._stopping = settings, stopping
        self._next: asyncio.Queue[None] = asyncio.Queue(1)
        self._lock = asyncio.Lock()
        self._sleepers = 0
        self._is_listening = False
        self._asked_until = 0.0
        self._payload: Optional[str] = None

    def notify(self) -> None:
        """Wakes one reader, or the next one that sleeps."""
        if not self._next.full():
            self._next.put_nowait(None)

    def notify_others(self) -> None:
        """Wakes one reader if any sleeps now."""
        if self._sleepers:
            self.notify()

    async def wait(self) -> None:
        """Sleeps until the next wake-up; the listener gives one each poll interval."""
        self._sleepers += 1
        try:
            await asyncio.wait_for(self._next.get(), 2 * self._settings.poll_interval)
        except asyncio.TimeoutError:
            pass
        finally:
            self._sleepers -= 1

    async def pause(self, seconds: float) -> None:
        """Waits so long, or until the worker stops."""
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except asyncio.TimeoutError:
            pass

    async def ask(self, connection: calls.Connection) -> bool:
        """Asks senders to notify unless they do. True when they did not: then the queue has to be read once more."""
        async with self._lock:
            now = time.monotonic()
            if not self._is_listening or self._asked_until > now + self._settings.poll_interval:
                return False
            was_asked = self._asked_until > now
            seconds = self._settings.asked_seconds()
            payload = await calls.run(connection, statements.listen_for_messages(self._settings.queue, seconds))
            is_known, self._payload, self._asked_until = payload == self._payload, payload, now + seconds
            return not (was_asked and is_known)

    async def listen(self) -> None:
        """Wakes readers until the worker stops."""
        failures, is_possible = 0, True
        while not self._stopping.is_set():
            try:
                if is_possible:
                    is_possible = await self._listen_once()
                failures = 0
            except psycopg.Error as failure:
                failures += 1
                if failures == 1:
                    self._settings.logger.warning("not notified of messages for now; polling: %s", failure)
            interval = self._settings.poll_interval
            await self.pause(max(pause_after(failures), interval) if failures else interval)
            self.notify()

    async def _listen_once(self) -> bool:
        """Wakes readers for as long as the connection lasts; False when no notification can come."""
        settings = self._settings
        connection = await psycopg.AsyncConnection.connect(
            settings.listen_conninfo or settings.conninfo, autocommit=True, prepare_threshold=None
        )
        async with connection:
            # Through a pooler each transaction may have another session, and notifications go to none of the clients.
            if not settings.listen_conninfo and (
                await calls.run(connection, statements.backend_pid()) != connection.info.backend_pid
            ):
                settings.logger.info("connected through a pooler: polling; give listen_conninfo to be notified")
                return False
            await connection.execute("set idle_session_timeout = 0")
            await connection.execute("listen parley")
            self._asked_until, self._is_listening = 0.0, True
            try:
                self.notify()  # a reader has to ask
                while not self._stopping.is_set():
                    async for note in connection.notifies(timeout=settings.poll_interval, stop_after=1):
                        if note.channel == "parley" and note.payload == self._payload:
                            self.notify()
                            break
                    else:
                        self.notify()
            finally:
                self._is_listening = False
        return True
