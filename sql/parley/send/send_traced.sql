-- SEND with the sender's trace context, so that one trace shows the send, the wait and the work of the reader.
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

create function parley.send_traced(
  conversation_handle uuid, message_type text, body bytea, trace_context text
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley._p_outgoing (conversation_handle, message_type, body, trace_context) values ($1, $2, $3, $4);
end
$$;

comment on function parley.send_traced(uuid, text, bytea, text) is
'Sends a message as send does, and with it the trace that it belongs to: RECEIVE gives it back as trace_context.
Arguments: conversation_handle; message_type; body, null or empty for none; trace_context, a W3C traceparent,
a blank and a tracestate or the first alone. A trace context that is malformed or longer than 600 characters
is left out, without an error.
Errors: those of send.
Source: ours; OpenTelemetry.';

create function parley.send_batch_traced(
  conversation_handle uuid, message_type text, bodies bytea[], trace_context text
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley._p_outgoing_batch (conversation_handle, message_type, bodies, trace_context) select $1, $2, $3, $4;
end
$$;

comment on function parley.send_batch_traced(uuid, text, bytea[], text) is
'Sends many messages as send_batch does, and with each of them the trace that all belong to: RECEIVE
gives it back as trace_context.
Arguments: conversation_handle; message_type; bodies, null or empty ones stand for messages without body;
trace_context, as of send_traced.
Errors: those of send_batch_binary.
Source: ours; OpenTelemetry.';
