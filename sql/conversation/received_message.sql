-- What RECEIVE takes and returns.

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

create function parley._p_any() returns uuid
language sql immutable parallel safe
as $$
  select 'ffffffff-ffff-ffff-ffff-ffffffffffff'::pg_catalog.uuid
$$;

comment on function parley._p_any() is
'Gives the default of the handle and of the group id in RECEIVE: any. No conversation has it: begin_dialog refuses it, and handles are made here.
It is not null, so that a variable that is empty by mistake does not receive the messages of others (spec 4.3).';
