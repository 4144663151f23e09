-- The events that a trace records, and how (spec 8.5). diagnosis/traces.sql starts and stops it;
-- diagnosis/trace_triggers.sql has its triggers.
--
-- One trace runs at a time. Ends and errors ask the sequence _p_trace_until, which costs a microsecond; everything
-- else is recorded by triggers that are disabled while nothing is traced. Rows are written in the transaction that
-- they record: what rolls back leaves none. The table is not logged: a crash of the server empties it, and a standby
-- does not have it. Locks: none.

create table parley._p_trace (
  is_only boolean primary key default true check (is_only),
  event_classes integer[] not null,
  conversation uuid,
  started_by name not null,
  started_at timestamptz not null,
  stops_at timestamptz not null,
  last_sequence bigint not null
);

comment on table parley._p_trace is
'The trace that runs or has run last, or no row when it was stopped. Events beyond last_sequence are not written.';

-- Until when something may be traced, in seconds since 1970. It may be too late, after a rollback or a stop;
-- the row of _p_trace decides.
create sequence parley._p_trace_until minvalue 0 start 0;

create sequence parley._p_trace_sequence;

create unlogged table parley._p_trace_event (
  event_sequence bigint primary key default nextval('parley._p_trace_sequence'),
  start_time timestamptz not null default clock_timestamp(),
  event_class integer not null,
  event_subclass integer not null,
  spid integer not null default pg_backend_pid(),
  transaction_id xid8 not null default pg_current_xact_id(),
  login_name name not null default session_user,
  application_name text not null default current_setting('application_name'),
  conversation_id uuid,
  conversation_handle uuid,
  conversation_group_id uuid,
  is_initiator boolean,
  state text,
  priority integer,
  service_name text,
  far_service text,
  far_broker_instance text,
  next_hop text,
  message_type_id integer,
  messages integer,
  error integer,
  text_data text
);

comment on table parley._p_trace_event is 'The events that were traced.';

create index on parley._p_trace_event (conversation_handle, event_sequence);

create view parley._p_trace_subclass as
select s.event_class, s.event_name, s.event_subclass, s.subclass_name
from (
  values
    (124, 'Broker:Conversation', 1, 'SEND Message'),
    (124, 'Broker:Conversation', 2, 'END CONVERSATION'),
    (124, 'Broker:Conversation', 3, 'END CONVERSATION WITH ERROR'),
    (124, 'Broker:Conversation', 4, 'Broker Initiated Error'),
    (124, 'Broker:Conversation', 5, 'Terminate Dialog'),
    (124, 'Broker:Conversation', 6, 'Received Sequenced Message'),
    (124, 'Broker:Conversation', 7, 'Received END CONVERSATION'),
    (124, 'Broker:Conversation', 8, 'Received END CONVERSATION WITH ERROR'),
    (124, 'Broker:Conversation', 9, 'Received Broker Error Message'),
    (124, 'Broker:Conversation', 10, 'Received END CONVERSATION Ack'),
    (124, 'Broker:Conversation', 11, 'BEGIN DIALOG'),
    (124, 'Broker:Conversation', 12, 'Dialog Created'),
    (124, 'Broker:Conversation', 13, 'END CONVERSATION WITH CLEANUP'),
    (136, 'Broker:Conversation Group', 1, 'Create'),
    (136, 'Broker:Conversation Group', 2, 'Drop'),
    (141, 'Broker:Message Classify', 1, 'Local'),
    (141, 'Broker:Message Classify', 2, 'Remote'),
    (141, 'Broker:Message Classify', 3, 'Delayed')
) as s (event_class, event_name, event_subclass, subclass_name);

comment on view parley._p_trace_subclass is 'Events that can be traced, by the numbers and names of SQL Server.';

create function parley._p_record_event(event parley._p_trace_event) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  if not exists (
    select
    from parley._p_trace as t
    where event.event_class = any (t.event_classes)
      and clock_timestamp() < t.stops_at
      and coalesce(pg_sequence_last_value('parley._p_trace_sequence'), 0) < t.last_sequence
      and (
        t.conversation is null or t.conversation in (
          event.conversation_handle, event.conversation_id, event.conversation_group_id
        )
      )
  ) then
    return;
  end if;
  insert into parley._p_trace_event (
    event_class, event_subclass, conversation_id, conversation_handle, conversation_group_id, is_initiator, state,
    priority, service_name, far_service, far_broker_instance, next_hop, message_type_id, messages, error, text_data
  )
  values (
    event.event_class, event.event_subclass, event.conversation_id, event.conversation_handle,
    event.conversation_group_id, event.is_initiator, event.state, event.priority, event.service_name, event.far_service,
    event.far_broker_instance, event.next_hop, event.message_type_id, event.messages, event.error, event.text_data
  );
end
$$;

comment on function parley._p_record_event(parley._p_trace_event) is
'Writes an event down when the trace that runs wants it; its number, time and session are set here.';

create function parley._p_event_of(
  endpoint parley._p_endpoint, event_class integer, event_subclass integer
) returns parley._p_trace_event
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_event parley._p_trace_event;
begin
  v_event.event_class := event_class;
  v_event.event_subclass := event_subclass;
  v_event.conversation_id := endpoint.conversation_id;
  v_event.conversation_handle := endpoint.conversation_handle;
  v_event.is_initiator := endpoint.is_initiator;
  v_event.priority := endpoint.priority;
  v_event.service_name := endpoint.service_name;
  v_event.far_service := endpoint.far_service;
  v_event.far_broker_instance := endpoint.far_broker_instance;
  v_event.state := coalesce(
    (select e.state from parley._p_endpoint as e where e.endpoint_id = endpoint.endpoint_id), 'CD'
  );
  -- A conversation that has ended may have taken its group with it.
  v_event.conversation_group_id := coalesce(
    (select g.conversation_group_id from parley._p_conversation_group as g where g.group_id = endpoint.group_id),
    (
      select t.conversation_group_id
      from parley._p_tombstone as t
      where t.conversation_handle = endpoint.conversation_handle
    ),
    (
      select o.conversation_group_id
      from parley._p_trace_event as o
      where o.conversation_handle = endpoint.conversation_handle
      order by o.event_sequence desc
      limit 1
    )
  );
  return v_event;
end
$$;

comment on function parley._p_event_of(parley._p_endpoint, integer, integer) is
'Gives an event of a side of a conversation, with its state as it is now.
Arguments: endpoint; event_class and event_subclass, as _p_trace_subclass has them.';

create function parley._p_trace_dialog(
  endpoint parley._p_endpoint, event_subclass integer, error integer default null, text_data text default null
)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_event parley._p_trace_event;
begin
  if coalesce(pg_sequence_last_value('parley._p_trace_until') < extract(epoch from clock_timestamp()), true) then
    return;
  end if;
  v_event := parley._p_event_of(endpoint, 124, event_subclass);
  v_event.error := _p_trace_dialog.error;
  v_event.text_data := _p_trace_dialog.text_data;
  perform parley._p_record_event(v_event);
end
$$;

comment on function parley._p_trace_dialog(parley._p_endpoint, integer, integer, text) is
'Writes down, when something is traced, what has just happened to a side of a conversation.
Arguments: endpoint; event_subclass of Broker:Conversation; error, the number of an error, and its text.';

create function parley._p_trace_received_error(endpoint parley._p_endpoint, body bytea) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_code integer;
begin
  if coalesce(pg_sequence_last_value('parley._p_trace_until') < extract(epoch from clock_timestamp()), true) then
    return;
  end if;
  v_code := substring(parley.body_text(body) from '<Code>(-?[0-9]{1,9})</Code>')::integer;
  perform parley._p_trace_dialog(
    endpoint, case when v_code < 0 then 9 else 8 end, v_code,
    substring(parley.body_text(body) from '<Description>(.*)</Description>')
  );
end
$$;

comment on function parley._p_trace_received_error(parley._p_endpoint, bytea) is
'Writes down, when something is traced, that an Error message of the other side has arrived, by its body: the
program''s (8) or its broker''s (9).';

create function parley._p_record_sent(handle uuid, message_type text, messages integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
  v_event parley._p_trace_event;
begin
  if coalesce(pg_sequence_last_value('parley._p_trace_until') < extract(epoch from clock_timestamp()), true) then
    return;
  end if;
  select * into v_endpoint from parley._p_endpoint as e where e.conversation_handle = handle;
  if found then
    v_event := parley._p_event_of(v_endpoint, 124, 1);
    v_event.message_type_id := (
      select t.message_type_id from parley._p_message_type as t where t.name = _p_record_sent.message_type
    );
    v_event.messages := _p_record_sent.messages;
    perform parley._p_record_event(v_event);
  end if;
end
$$;

comment on function parley._p_record_sent(uuid, text, integer) is
'Writes down that messages are sent; when SEND refuses, its transaction takes this back.
Arguments: handle; message_type, its name; messages, how many.';
