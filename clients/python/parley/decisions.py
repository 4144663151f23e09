"""What workers decide, whether they run in threads or in tasks: nothing here waits or speaks to the database."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Callable, Optional, Union
from uuid import UUID

import psycopg

from . import statements
from .errors import BrokerUnusable, Error, Final, QueueDisabled, RetryAfter
from .messages import Claim, Message, TakenMessage
from .statements import Statement

#: The version of the schema that this package works with.
SCHEMA_VERSION = 1
#: After a failure a reader pauses, from the first to the longest, in seconds, twice as long each time.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
#: A disabled queue is tried again after so many poll intervals: somebody has to enable it by hand.
DISABLED_POLLS = 5
#: For so many seconds beyond a poll interval senders are asked to notify. It costs them throughput, so it is short.
ASKED_BEYOND = 3
#: Messages are renewed so many times in the time of their lease.
BEATS_PER_LEASE = 3

log = logging.getLogger("parley")


@dataclass(frozen=True)
class Turn:
    """One call of a handler, for metrics: how many messages it got, how long it took, and the error it ended with."""

    queue: str
    messages: int
    seconds: float
    error: Optional[BaseException]


Observer = Callable[[Turn], None]


@dataclass
class Settings:
    """The settings that all workers have; times are in seconds."""

    queue: str
    conninfo: str
    readers: int
    handler_timeout: Optional[float]
    grace_time: float
    poll_interval: float
    listen_conninfo: Optional[str]
    logger: Union[logging.Logger, logging.LoggerAdapter[Any]]
    observer: Optional[Observer]

    def __post_init__(self) -> None:
        self.conninfo = self.conninfo or os.environ.get("DATABASE_URL", "")
        if not self.conninfo:
            raise ValueError("the worker does not know its database: give conninfo, or set DATABASE_URL")
        if not self.queue:
            raise ValueError("the worker does not know its queue: give its name")
        if self.readers < 1 or self.poll_interval <= 0 or self.grace_time < 0:
            raise ValueError("readers must be at least 1, poll_interval above zero, and grace_time not negative")
        self.logger = logging.LoggerAdapter(self.logger, {"queue": self.queue})

    def observe(self, turn: Turn) -> None:
        """Gives a turn to the observer. Its errors are its own: the work is done."""
        if self.observer is None:
            return
        try:
            self.observer(turn)
        except Exception:
            self.logger.exception("queue %s: the observer failed", self.queue)

    def asked_seconds(self) -> int:
        """For how many seconds senders are asked to notify."""
        return int(self.poll_interval) + 1 + ASKED_BEYOND


class HandlerFailed(Exception):
    """A failure to handle messages, as opposed to one of the broker or of the connection."""

    def __init__(self, reports: list[Statement[Any]], messages: int, subject: str, cause: BaseException) -> None:
        self.reports, self.messages, self.subject, self.cause = reports, messages, subject, cause
        super().__init__(str(cause))


class HandlerTimeout(Exception):
    """The handler took longer than handler_timeout."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the handler took longer than its time-out of {seconds} s and was rolled back")


def require_sound(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Raises when the transaction can only be rolled back: psycopg's commit of such a one raises nothing."""
    if connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR:
        raise psycopg.errors.InFailedSqlTransaction("a statement of the handler has failed, though it raised nothing")


def pause_after(failures: int) -> float:
    """For how many seconds a reader pauses after so many failures in a row."""
    pause = min(LONGEST_PAUSE, FIRST_PAUSE * float(2 ** min(failures - 1, 16)))
    return pause * random.uniform(0.5, 1)


def delay_of(failure: BaseException) -> Any:
    """The wait that a failure asks for; None leaves it to the policy of the queue."""
    return failure.delay if isinstance(failure, RetryAfter) else None


def failed_to_take(queue: str, messages: Sequence[TakenMessage], cause: BaseException) -> HandlerFailed:
    """Of several messages nobody knows which was bad: none is reported, and each comes alone after that."""
    reports: list[Statement[Any]] = []
    ids = [message.message_id for message in messages]
    if len(ids) == 1:
        verdict = statements.fail if isinstance(cause, Final) else None
        reports.append(
            verdict(queue, ids[0], cause) if verdict else statements.retry(queue, ids[0], cause, delay=delay_of(cause))
        )
    return HandlerFailed(reports, len(ids), f"messages {ids}", cause)


def failed_to_receive(messages: Sequence[Message], cause: BaseException) -> HandlerFailed:
    """Reports the conversations whose messages came together."""
    reports: list[Statement[Any]] = []
    handles = list(dict.fromkeys(message.conversation_handle for message in messages))
    for handle in handles:
        if isinstance(cause, Final):
            reports.append(statements.fail_conversation(handle, cause))
        elif isinstance(cause, RetryAfter):
            reports.append(statements.retry_conversation(handle, cause, delay=cause.delay))
        else:
            reports.append(statements.record_failure(handle, cause))
    subject = f"conversation group {messages[0].conversation_group_id}"
    return HandlerFailed(reports, len(messages), subject, cause)


def failed_claim(claimed: Claim, cause: BaseException) -> list[Statement[Any]]:
    """What is to be said, in one transaction, of claimed work that failed."""
    return [statements.give_back(claimed, cause, delay=delay_of(cause), is_final=isinstance(cause, Final))]


def separate(messages: Iterable[Message]) -> tuple[list[Message], list[UUID]]:
    """Takes the messages apart that say that a conversation is over, and gives the handles of those conversations."""
    others: list[Message] = []
    ended: dict[UUID, None] = {}
    for message in messages:
        if message.is_end_dialog or message.is_error:
            ended[message.conversation_handle] = None
        else:
            others.append(message)
    return others, list(ended)


def log_conversation_errors(settings: Settings, messages: Iterable[Message]) -> None:
    for message in messages:
        if not message.is_error:
            continue
        try:
            found: object = message.error()
        except Exception as unreadable:
            found = f"ended with an error that cannot be read: {unreadable}"
        settings.logger.warning("service %s, conversation %s: %s", message.service_name, message.conversation_handle, found)


def judge(settings: Settings, failure: BaseException, failures: int) -> float:
    """Logs why nothing was committed, and says for how many seconds to pause."""
    pause = pause_after(failures)
    queue = settings.queue
    if isinstance(failure, HandlerFailed):
        settings.logger.warning(
            "queue %s: the handler failed with %s, which are in the queue again: %s", queue, failure.subject,
            failure.cause, exc_info=failure.cause if not isinstance(failure.cause, Error) else None,
        )
    elif isinstance(failure, QueueDisabled):
        pause = DISABLED_POLLS * settings.poll_interval
        settings.logger.error("queue %s is disabled; trying again in %.1f s: %s", queue, pause, failure)
    else:
        settings.logger.error("queue %s: nothing could be received; trying again in %.1f s: %s", queue, pause, failure)
    return pause


def require_usable(answer: tuple[int, int, str, str]) -> None:
    """Refuses a copy of a database before somebody has said that it may work, and a schema that does not fit."""
    version, oldest_client, state, advice = answer
    if version < SCHEMA_VERSION:
        raise BrokerUnusable("the schema parley is older than this package: run parley upgrade")
    if oldest_client > SCHEMA_VERSION:
        raise BrokerUnusable("the schema parley is newer than this package: install a newer parley-broker")
    if state == "ELSEWHERE":
        raise BrokerUnusable(f"the broker is not where it was enabled last. {advice}")
