"""Wake-ups of the readers of a worker in threads: by notifications, and once each poll interval.

Each wakes one reader; a reader that finds messages wakes another one. So a burst wakes all of them, and a single message
only one.
"""

from __future__ import annotations

import queue
import threading
import time
from typing import Any, Optional

import psycopg

from . import calls, statements
from .decisions import Settings, pause_after

LONGEST_WAIT = 1.0  # so many seconds at most the listener looks away from a stop


class WakeUps:
    def __init__(self, settings: Settings, stopping: threading.Event) -> None:
        self._settings, self._stopping = settings, stopping
        self._next: queue.Queue[None] = queue.Queue(1)
        self._lock = threading.Lock()
        self._sleepers = 0
        self._is_listening = False
        self._asked_until = 0.0
        self._payload: Optional[str] = None

    def notify(self) -> None:
        """Wakes one reader, or the next one that sleeps."""
        try:
            self._next.put_nowait(None)
        except queue.Full:
            pass

    def notify_others(self) -> None:
        """Wakes one reader if any sleeps now."""
        if self._sleepers:
            self.notify()

    def wait(self) -> None:
        """Sleeps until the next wake-up; the listener gives one each poll interval."""
        with self._lock:
            self._sleepers += 1
        try:
            self._next.get(timeout=2 * self._settings.poll_interval)
        except queue.Empty:
            pass
        finally:
            with self._lock:
                self._sleepers -= 1

    def ask(self, connection: psycopg.Connection[Any]) -> bool:
        """Asks senders to notify unless they do. True when they did not: then the queue has to be read once more."""
        with self._lock:
            now = time.monotonic()
            if not self._is_listening or self._asked_until > now + self._settings.poll_interval:
                return False
            was_asked = self._asked_until > now
            seconds = self._settings.asked_seconds()
            payload = calls.run(connection, statements.listen_for_messages(self._settings.queue, seconds))
            is_known, self._payload, self._asked_until = payload == self._payload, payload, now + seconds
            return not (was_asked and is_known)

    def listen(self) -> None:
        """Wakes readers until the worker stops."""
        failures, is_possible = 0, True
        while not self._stopping.is_set():
            try:
                if is_possible:
                    is_possible = self._listen_once()
                failures = 0
            except psycopg.Error as failure:
                failures += 1
                if failures == 1:
                    self._settings.logger.warning("not notified of messages for now; polling: %s", failure)
            self._stopping.wait(max(pause_after(failures), self._settings.poll_interval) if failures else
                                self._settings.poll_interval)
            self.notify()

    def _listen_once(self) -> bool:
        """Wakes readers for as long as the connection lasts; False when no notification can come."""
        settings = self._settings
        with psycopg.connect(settings.listen_conninfo or settings.conninfo, autocommit=True, prepare_threshold=None) as connection:
            # Through a pooler each transaction may have another session, and notifications go to none of the clients.
            if not settings.listen_conninfo and (
                calls.run(connection, statements.backend_pid()) != connection.info.backend_pid
            ):
                settings.logger.info("connected through a pooler: polling; give listen_conninfo to be notified")
                return False
            connection.execute("set idle_session_timeout = 0")
            connection.execute("listen parley")
            with self._lock:
                self._asked_until, self._is_listening = 0.0, True
            try:
                self.notify()  # a reader has to ask
                polled = time.monotonic()
                while not self._stopping.is_set():
                    left = polled + settings.poll_interval - time.monotonic()
                    if left <= 0:
                        self.notify()
                        polled = time.monotonic()
                        continue
                    for note in connection.notifies(timeout=min(left, LONGEST_WAIT), stop_after=1):
                        if note.channel == "parley" and note.payload == self._payload:
                            self.notify()
            finally:
                with self._lock:
                    self._is_listening = False
        return True
