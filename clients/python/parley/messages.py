"""What comes out of a queue, as values."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Optional, Union
from uuid import UUID

from .errors import ConversationError

END_DIALOG = "http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog"
ERROR = "http://schemas.microsoft.com/SQL/ServiceBroker/Error"
DIALOG_TIMER = "http://schemas.microsoft.com/SQL/ServiceBroker/DialogTimer"

#: A body: text, bytes, nothing, or else a value that goes as JSON.
Body = Union[str, bytes, None, dict[str, Any], list[Any]]


class _WithBody:
    body: Optional[bytes]

    @property
    def text(self) -> str:
        """The body as text; an empty one when the message has none."""
        return (self.body or b"").decode("utf-8")

    def json(self) -> Any:
        """The body read as JSON."""
        return json.loads(self.body or b"null")


@dataclass(frozen=True)
class TakenMessage(_WithBody):
    """A message of a simple queue."""

    message_id: int
    key: Optional[str]
    priority: int
    body: Optional[bytes]
    enqueued_at: datetime
    trace_context: Optional[str]
    attempt: int

    COLUMNS = "message_id, key, priority, body, enqueued_at, trace_context, coalesce(attempt, 1)"


@dataclass(frozen=True)
class Message(_WithBody):
    """A message of a conversation, with Service Broker's names."""

    priority: int
    queuing_order: int
    conversation_group_id: UUID
    conversation_handle: UUID
    message_sequence_number: int
    service_name: str
    service_contract_name: str
    message_type_name: str
    body: Optional[bytes]
    message_enqueue_time: datetime
    trace_context: Optional[str]

    COLUMNS = (
        "priority, queuing_order, conversation_group_id, conversation_handle, message_sequence_number, service_name,"
        " service_contract_name, message_type_name, message_body, message_enqueue_time, trace_context"
    )

    @property
    def is_end_dialog(self) -> bool:
        """Whether the far side has ended the conversation."""
        return self.message_type_name == END_DIALOG

    @property
    def is_error(self) -> bool:
        """Whether the conversation has ended with an error."""
        return self.message_type_name == ERROR

    @property
    def is_dialog_timer(self) -> bool:
        """Whether the timer of the conversation is due."""
        return self.message_type_name == DIALOG_TIMER

    def error(self) -> ConversationError:
        """Reads the body of an Error message: XML in UTF-16 with a byte-order mark, or in UTF-8."""
        body = self.body or b""
        text = body.decode("utf-16" if body[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
        if re.search("<!(DOCTYPE|ENTITY)", text, re.IGNORECASE):
            raise ValueError("an Error message has no document type")
        # The text is decoded by now, whatever its declaration says.
        root = ElementTree.fromstring(re.sub(r"^\s*<\?xml[^>]*\?>", "", text))
        space = "{http://schemas.microsoft.com/SQL/ServiceBroker/Error}"
        return ConversationError(int(root.findtext(space + "Code") or 0), root.findtext(space + "Description") or "")


@dataclass(frozen=True)
class SentMessage:
    """What came of a message: where it is, or, of a duplicate, where the first one is."""

    is_duplicate: bool
    conversation_handle: Optional[UUID]
    message_id: Optional[int]
    delayed_id: Optional[int]
    sent_at: Optional[datetime]

    COLUMNS = "is_duplicate, conversation_handle, message_id, delayed_id, sent_at"


@dataclass(frozen=True)
class Retried:
    """What came of a failure that was reported; both are None when the message is gone or in the hands of others."""

    retry_at: Optional[datetime]
    is_set_aside: Optional[bool]


@dataclass(frozen=True)
class Claim:
    """Messages that were claimed for long work, until their lease is over."""

    queue: str
    claim: UUID
    messages: list[TakenMessage]
