-- The trace context of a message, so that one trace shows the send, the wait and the work of the reader.
--
-- A trace context is what W3C Trace Context calls traceparent, and behind a blank the tracestate if there is
-- one. It travels in a column of its own beside the message: a send without it writes a null, which takes no
-- room, and runs none of this. A trace is never worth a message: what is no trace context, or too long, is left
-- out, and the message is sent.

create function parley._p_trace_context(trace_context text) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when octet_length(trace_context) <= 600
      and trace_context ~ '^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}( [ -~]*)?$'
      then trace_context
  end
$$;

comment on function parley._p_trace_context(text) is
'Gives a trace context that is well-formed and of at most 600 characters as it is, and null for any other.';
