-- PUT with a trace context, as SEND takes it (send/send_traced.sql): taken_message gives it back. A malformed one is
-- left out, because a trace must never keep a message from being put.
-- Cost: as put.

create function parley.put_traced(
  queue text, body bytea, trace_context text, key text default null, priority integer default 5,
  deliver_at timestamptz default null
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley._p_outgoing_put (queue, body, message_key, priority, deliver_at, trace_context)
  values ($1, $2, $4, $5, $6, $3);
end
$$;

comment on function parley.put_traced(text, bytea, text, text, integer, timestamptz) is
'PUT of a message that carries a trace context: a W3C traceparent, or one with a blank and a tracestate behind it, 600
bytes at most. What is malformed or longer is left out. TAKE gives it back in trace_context.
Arguments: as put with a bytea body; trace_context.
Errors: those of put.
Source: spec P32.';

create function parley.put_batch_traced(
  queue text, bodies bytea[], trace_context text, key text default null, priority integer default 5,
  deliver_at timestamptz default null
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley._p_outgoing_put (queue, bodies, message_key, priority, deliver_at, trace_context)
  values ($1, coalesce($2, '{}'), $4, $5, $6, $3);
end
$$;

comment on function parley.put_batch_traced(text, bytea[], text, text, integer, timestamptz) is
'PUT of a message for each body; each carries the trace context.
Arguments: as put_batch_binary; trace_context as put_traced.
Errors: those of put_batch_binary.
Source: spec P32.';
