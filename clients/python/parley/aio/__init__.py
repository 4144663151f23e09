"""The calls and the workers of parley for asyncio, under the same names; errors and messages are those of parley."""

from .calls import (
    begin_and_send, begin_conversation_timer, begin_dialog, cancel, claim, complete, done, end_conversation, fail,
    fail_conversation, give_back, put, put_batch, put_each, put_group, put_unique, receive, receive_reply, record_failure, renew,
    reply, request, retry, retry_conversation, send, send_and_end, send_batch, take,
)
from .workers import ClaimConsumer, Consumer, SimpleConsumer, Work

__all__ = [
    "ClaimConsumer", "Consumer", "SimpleConsumer", "Work", "begin_and_send", "begin_conversation_timer", "begin_dialog",
    "cancel", "claim", "complete", "done", "end_conversation", "fail", "fail_conversation", "give_back", "put", "put_batch",
    "put_each", "put_group", "put_unique", "receive", "receive_reply", "record_failure", "renew", "reply", "request", "retry",
    "retry_conversation", "send", "send_and_end", "send_batch", "take",
]
