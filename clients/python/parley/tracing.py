"""Trace contexts: what a worker sends while it handles a message carries the trace context of that message."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Callable, Optional, Protocol

#: Gives the trace context that a message is to carry, as W3C Trace Context writes it, or None for none.
Tracer = Callable[[str], Optional[str]]

_carried: ContextVar[Optional[str]] = ContextVar("parley_trace_context", default=None)
_tracers: dict[str, Optional[Tracer]] = {"send": None, "put": None}


class _Traced(Protocol):
    @property
    def trace_context(self) -> Optional[str]: ...


def trace_sends(tracer: Optional[Tracer]) -> None:
    """Sets the tracer of all sends of this process; it gets the conversation handle, or the names of both services."""
    _tracers["send"] = tracer


def trace_puts(tracer: Optional[Tracer]) -> None:
    """Sets the tracer of all puts of this process; it gets the name of the queue."""
    _tracers["put"] = tracer


def carried_trace_context() -> Optional[str]:
    """The trace context of the messages that are being handled; None outside of a handler, or when they have several."""
    return _carried.get()


def context_for(action: str, target: str, given: Optional[str]) -> Optional[str]:
    """What a message carries: what was given, what the tracer says, or what is being handled."""
    if given is not None:
        return given
    tracer = _tracers[action]
    return tracer(target) if tracer else _carried.get()


@contextlib.contextmanager
def handling(messages: Sequence[_Traced]) -> Iterator[None]:
    """Has what is sent meanwhile carry the trace context of these messages, if they have the same one."""
    contexts = {message.trace_context or None for message in messages}
    token = _carried.set(contexts.pop() if len(contexts) == 1 else None)
    try:
        yield
    finally:
        _carried.reset(token)
