"""Parley: simple queues and conversations in PostgreSQL.

The calls take a connection of psycopg and are part of its transaction. Consumer, SimpleConsumer and ClaimConsumer are
workers. The package parley.aio has the same names for asyncio.
"""

from .calls import (
    begin_and_send, begin_conversation_timer, begin_dialog, cancel, claim, complete, done, end_conversation, fail,
    fail_conversation, give_back, put, put_batch, put_each, put_group, put_unique, receive, receive_reply, record_failure, renew,
    reply, request, retry, retry_conversation, send, send_and_end, send_batch, take,
)
from .claims import ClaimConsumer, Work
from .decisions import Turn
from .errors import (
    BrokerUnusable, ClaimLost, ConversationError, ConversationGroupNotFound, ConversationNotFound, EndNotAllowed, Error,
    Final, HandlersCutOff, MessageTooLarge, NoBroker, NoReply, PermissionDenied, QueueDisabled, QueueFull, QueueNotFound,
    RequestTimeout, RetryAfter, SendNotAllowed, StillUsed, TimerNotAllowed, WrongArgument,
)
from .messages import Claim, Message, Retried, SentMessage, TakenMessage
from .tracing import carried_trace_context, trace_puts, trace_sends
from .workers import Consumer, SimpleConsumer

__all__ = [
    "BrokerUnusable", "Claim", "ClaimConsumer", "ClaimLost", "Consumer", "ConversationError", "ConversationGroupNotFound",
    "ConversationNotFound", "EndNotAllowed", "Error", "Final", "HandlersCutOff", "Message", "MessageTooLarge", "NoBroker",
    "NoReply", "PermissionDenied", "QueueDisabled", "QueueFull", "QueueNotFound", "RequestTimeout", "Retried", "RetryAfter",
    "SendNotAllowed", "SentMessage", "SimpleConsumer", "StillUsed", "TakenMessage", "TimerNotAllowed", "Turn", "Work",
    "WrongArgument", "begin_and_send", "begin_conversation_timer", "begin_dialog", "cancel", "carried_trace_context",
    "claim", "complete", "done", "end_conversation", "fail", "fail_conversation", "give_back", "put", "put_batch",
    "put_each", "put_group", "put_unique", "receive", "receive_reply", "record_failure", "renew", "reply", "request", "retry",
    "retry_conversation", "send", "send_and_end", "send_batch", "take", "trace_puts", "trace_sends",
]
