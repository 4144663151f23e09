"""Errors of the broker as exceptions: the SQLSTATE of class SB is Service Broker's number, and the number is the class."""

from __future__ import annotations

from datetime import timedelta
from typing import Optional, Union

import psycopg


class Error(psycopg.DatabaseError):
    """An error of the broker: message states the fact, detail the values, hint the remedy."""

    number = 0

    def __init__(self, number: int, message: str, detail: Optional[str] = None, hint: Optional[str] = None) -> None:
        # An instance keeps its own number: most numbers have no class of their own.
        self.number = number
        self.message, self.detail, self.hint = message, detail, hint
        super().__init__(" ".join(part for part in (f"{message} (error {number}).", detail, hint) if part))


class ConversationNotFound(Error):
    """The handle is unknown, or its conversation has ended."""

    number = 8426


class EndNotAllowed(Error):
    """This side has ended already."""

    number = 8427


class SendNotAllowed(Error):
    """The state of this side allows no send."""

    number = 8429


class ConversationGroupNotFound(Error):
    """There is no such conversation group."""

    number = 8436


class TimerNotAllowed(Error):
    """The state of this side allows no timer."""

    number = 8458


class MessageTooLarge(Error):
    """The body is longer than the broker takes."""

    number = 8459


class NoBroker(Error):
    """Nobody has installed the schema parley in this database."""

    number = 8442


class QueueDisabled(Error):
    """The queue is disabled, as it may be after too many rollbacks."""

    number = 9617


class QueueFull(Error):
    """The quota of the queue is used up."""

    number = 10928


class PermissionDenied(Error):
    """The role may not do this."""

    number = 229


class QueueNotFound(Error):
    """There is no such queue."""

    number = 208


class WrongArgument(Error):
    """An argument that cannot be, or a queue of the other kind."""

    number = 8402


class StillUsed(Error):
    """Somebody uses it, or a queue holds messages."""

    number = 3716


_BY_NUMBER = {kind.number: kind for kind in Error.__subclasses__()}


def translate(failure: psycopg.Error) -> psycopg.Error:
    """Gives the exception for an error of the server; one that is not the broker's stays as it is."""
    state, diagnosis = failure.sqlstate, failure.diag
    if isinstance(failure, Error):
        return failure
    if state == "3F000" and '"parley"' in str(failure):
        return NoBroker(
            NoBroker.number, "there is no broker in this database", diagnosis.message_primary,
            "Connect to the database of the broker, or install one: parley install.",
        )
    if not state or len(state) != 5 or not state.startswith("SB"):
        return failure
    number = int(state[2:], 36)
    kind = _BY_NUMBER.get(number, Error)
    found = kind(number, diagnosis.message_primary or str(failure), diagnosis.message_detail, diagnosis.message_hint)
    found.sqlstate = state
    return found


class ConversationError(Exception):
    """The conversation ended with an error: the code of the far side, or the negative of a number of the broker."""

    def __init__(self, code: int, description: str) -> None:
        self.code, self.description = code, description
        super().__init__(f"the conversation ended with error {code}: {description}")


class NoReply(Exception):
    """The other side has ended the conversation without a reply."""


class RequestTimeout(Exception):
    """No reply came in time. The target receives an Error message with code 408."""


class ClaimLost(Exception):
    """Somebody else has the messages by now, or they were cancelled: what was done with them has to be rolled back."""


class BrokerUnusable(Exception):
    """A worker cannot work with this database: its schema does not fit this release, or the broker is elsewhere."""


class HandlersCutOff(Exception):
    """Handlers did not finish within the time of grace, and their work was rolled back."""


class Judgment(Exception):
    """A failure that says what is to become of the work; raise RetryAfter or Final."""


class RetryAfter(Judgment):
    """Raised by a handler, has the work wait for so long, up to 7 days, whatever the retry policy of the queue."""

    def __init__(self, delay: Union[timedelta, float], reason: object = "") -> None:
        self.delay = delay if isinstance(delay, timedelta) else timedelta(seconds=delay)
        super().__init__(str(reason))


class Final(Judgment):
    """Raised by a handler, sets the work aside at once: another attempt would be in vain."""


def describe(failure: BaseException) -> tuple[Optional[str], str]:
    """Gives the SQLSTATE of a failure, if it has one, and its text as PostgreSQL takes it."""
    state = getattr(failure, "sqlstate", None)
    text = str(failure) or type(failure).__name__
    if isinstance(failure, Judgment) and failure.__cause__ is not None and not str(failure):
        return describe(failure.__cause__)
    if isinstance(failure, psycopg.Error) and not isinstance(failure, Error) and failure.diag.message_primary:
        text = failure.diag.message_primary
    return state, text.replace("\x00", "?").encode("utf-8", "replace").decode("utf-8")
