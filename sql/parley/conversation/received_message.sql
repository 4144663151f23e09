-- The record of a message that RECEIVE takes and returns.

create type parley.received_message as (
  status smallint,
  priority smallint,
  queuing_order bigint,
  conversation_group_id uuid,
  conversation_handle uuid,
  message_sequence_number bigint,
  service_name text,
  service_id integer,
  service_contract_name text,
  service_contract_id integer,
  message_type_name text,
  message_type_id integer,
  validation text,
  message_body bytea,
  message_enqueue_time timestamptz,
  message_id uuid,
  trace_context text
);

comment on type parley.received_message is 'A message as RECEIVE and the view of a queue show it (spec 4.3).';
comment on column parley.received_message.status is
'1 ready, 2 of a conversation that is set aside, 0 received (and retained), 3 copy of a sent message; RECEIVE gives 0.';
comment on column parley.received_message.priority is 'Of the conversation: 1 (low) to 10 (high).';
comment on column parley.received_message.queuing_order is 'Position in the queue; later arrivals have larger ones.';
comment on column parley.received_message.conversation_group_id is
'Group, locked to the end of the transaction by RECEIVE.';
comment on column parley.received_message.conversation_handle is
'Handle of the side that receives: answer and end with it.';
comment on column parley.received_message.message_sequence_number is
'Number in this direction, from 0 without gaps; -1 for Error and DialogTimer.';
comment on column parley.received_message.service_name is 'Service that it arrived at.';
comment on column parley.received_message.service_id is 'Identity of that service.';
comment on column parley.received_message.service_contract_name is 'Contract of the conversation.';
comment on column parley.received_message.service_contract_id is 'Identity of that contract.';
comment on column parley.received_message.message_type_name is 'Message type.';
comment on column parley.received_message.message_type_id is 'Identity of the message type.';
comment on column parley.received_message.validation is 'The demand of the message type on a body: N, E, X, J or F.';
comment on column parley.received_message.message_body is
'Body, or null when there is none; parley.body_text reads it as text.';
comment on column parley.received_message.message_enqueue_time is 'When it arrived.';
comment on column parley.received_message.message_id is
'Identity of the message, in views of queues; RECEIVE leaves it null.';
comment on column parley.received_message.trace_context is
'W3C trace context that the sender gave it, or null.';

create function parley._p_received(
  status smallint, priority smallint, "position" bigint, conversation_group_id uuid, conversation_handle uuid,
  sequence bigint, service_name text, service_id integer, service_contract_name text, service_contract_id integer,
  message_type_id integer, message_type_name text, validation text, body bytea, enqueued_at timestamptz,
  message_id uuid, trace_context text
) returns parley.received_message
language sql immutable parallel safe
as $$
  select (
    status, priority, "position", conversation_group_id, conversation_handle, sequence,
    service_name collate pg_catalog."default", service_id,
    service_contract_name collate pg_catalog."default", service_contract_id,
    message_type_name collate pg_catalog."default", message_type_id, validation collate pg_catalog."default",
    body, enqueued_at, message_id, trace_context
  )::parley.received_message
$$;

comment on function parley._p_received(
  smallint, smallint, bigint, uuid, uuid, bigint, text, integer, text, integer, integer, text, text, bytea, timestamptz,
  uuid, text
) is
'Gives a row of RECEIVE in each of its forms, and of the view of a queue: the one place that says which columns these
are, and in what order. The planner puts it in line, so (parley._p_received(...)).* costs what its columns cost; for
that each must have the collation that the type has. It takes columns and not an endpoint, because a field of a variable
that holds a whole row is read more slowly than a column: a tenth of RECEIVE by TOP (100).
Arguments: status (spec 4.3); priority, handle, service and contract of the endpoint that it waits at, and the id of its
group; position, its own, inside a frame too; sequence, its number in the conversation, -1 for none; its type; body,
enqueued_at; message_id, null where it is not shown; trace_context.';

create function parley._p_as_received(
  status smallint, "position" bigint, sequence bigint, endpoint parley._p_endpoint, conversation_group_id uuid,
  message_type parley._p_message_type, body bytea, enqueued_at timestamptz, trace_context text
) returns parley.received_message
language sql stable parallel safe
as $$
  select parley._p_received(
    status, (endpoint).priority, "position", conversation_group_id, (endpoint).conversation_handle, sequence,
    (endpoint).service_name, (endpoint).service_id, (endpoint).service_contract_name, (endpoint).service_contract_id,
    (message_type).message_type_id, (message_type).name, (message_type).validation::pg_catalog.text,
    body, enqueued_at,
    (
      pg_catalog.lpad(pg_catalog.to_hex((endpoint).endpoint_id), 16, '0') operator(pg_catalog.||)
      pg_catalog.to_hex("position" operator(pg_catalog.+) 1152921504606846976)
    )::pg_catalog.uuid,
    trace_context
  )
$$;

comment on function parley._p_as_received(
  smallint, bigint, bigint, parley._p_endpoint, uuid, parley._p_message_type, bytea, timestamptz, text
) is
'Gives a message as the view of a queue and what else shows messages without receiving them give it.
Arguments: status (spec 4.3); position, its own, inside a frame too; sequence, its number in the conversation, -1 for
none; endpoint that it waits at; the id of its group; its type; body, enqueued_at and trace_context.';

create function parley._p_put_as_received(
  status smallint, message parley._p_message, priority integer
) returns parley.received_message
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select parley._p_received(
    status, priority::pg_catalog.int2, (message)."position", null, null, null, null, null, null, null,
    (message).message_type_id, null, null, (message).body, (message).enqueued_at, null, (message).trace_context
  )
$$;

comment on function parley._p_put_as_received(smallint, parley._p_message, integer) is
'Gives a message of a simple queue in the columns of RECEIVE, for the view of its queue. The columns of a conversation
are null.
Arguments: status (spec 4.3); message; priority, 1 to 10.';

create function parley._p_any() returns uuid
language sql immutable parallel safe
as $$
  select 'ffffffff-ffff-ffff-ffff-ffffffffffff'::pg_catalog.uuid
$$;

comment on function parley._p_any() is
'Gives the default of the handle and of the group id in RECEIVE: any. No conversation has it: begin_dialog refuses
it, and handles are made here. It is not null, so that a variable that is empty by mistake does not receive the
messages of others (spec 4.3).';
