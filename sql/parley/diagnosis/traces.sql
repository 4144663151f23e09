-- Traces: what SQL Server's profiler shows of conversations, groups and routes, as rows (spec 8.5).
--
-- One trace runs at a time. The messages that arrive, new conversations and groups are seen by triggers
-- (diagnosis/trace_triggers.sql) that are disabled while nothing is traced, so a broker without a trace pays
-- nothing for them; SEND, ends and errors ask the sequence _p_trace_until, which costs a microsecond. Rows are written
-- in the transaction that they record: what rolls back leaves none. The table is not logged: a crash of the server
-- empties it, and a standby does not have it. Events of the network (connections, logins, acknowledgements) happen
-- in the daemon and are in its log.
-- Locks: starting and stopping takes the tables with the triggers against writers, for ten seconds at most, in steps of
-- a tenth of a second between which writers go on.

create function parley._p_switch_trace(is_on boolean) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '100ms'
as $$
declare
  v_deadline timestamptz := clock_timestamp() + interval '10 seconds';
  v_trigger record;
begin
  loop
    begin
      -- A lock that waits keeps writers behind it. So it is given up soon, and asked for again.
      lock table parley._p_conversation_group, parley._p_endpoint, parley._p_transmission, parley._p_message
      in share row exclusive mode;
      exit;
    exception
      when lock_not_available then
        if clock_timestamp() > v_deadline then
          found := parley._p_raise_in_use();
        end if;
        perform pg_sleep(0.05);
    end;
  end loop;
  for v_trigger in
    select t.tgrelid::regclass as table_name, t.tgname
    from pg_trigger as t
    join pg_class as c on c.oid = t.tgrelid
    where c.relnamespace = 'parley'::regnamespace and t.tgname in ('_p_record', '_p_record_begun', '_p_record_routed')
  loop
    execute format(
      'alter table %s %s trigger %I', v_trigger.table_name, case when is_on then 'enable' else 'disable' end,
      v_trigger.tgname
    );
  end loop;
end
$$;

comment on function parley._p_switch_trace(boolean) is
'Enables or disables the triggers of traces, once nobody is writing.
Errors: 5061 when transactions that send or receive do not finish within ten seconds.';

create function parley.start_trace(
  events text[] default null,
  conversation uuid default null,
  seconds integer default 3600,
  max_events integer default 1000000,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_unknown text;
  v_known text;
begin
  found := parley._p_require_permission(v_caller, 'ALTER TRACE', 'database', 0, null, null);
  select e.name into v_unknown
  from unnest(events) as e (name)
  where not exists (
    select from parley._p_trace_subclass as s where lower(s.event_name collate "C") = lower(e.name collate "C")
  );
  if found or cardinality(events) = 0 then
    v_known := (select string_agg(distinct s.event_name, ', ') from parley._p_trace_subclass as s);
    found := parley._p_raise(8402, 'traced event', v_unknown, v_known);
  elsif seconds is null or seconds not between 1 and 604800 then
    found := parley._p_raise(8402, 'seconds of a trace', seconds::text);
  elsif max_events is null or max_events < 1 then
    found := parley._p_raise(8402, 'events of a trace', max_events::text);
  end if;
  perform parley._p_switch_trace(true);
  delete from parley._p_trace_event;
  delete from parley._p_trace;
  insert into parley._p_trace (event_classes, conversation, started_by, started_at, stops_at, last_sequence)
  values (
    array(
      select distinct s.event_class
      from parley._p_trace_subclass as s
      where events is null
        or lower(s.event_name collate "C") in (select lower(e.name collate "C") from unnest(events) as e (name))
    ),
    conversation, pg_get_userbyid(v_caller), clock_timestamp(), clock_timestamp() + make_interval(secs => seconds),
    coalesce(pg_sequence_last_value('parley._p_trace_sequence'), 0) + max_events
  );
  perform setval('parley._p_trace_until', ceil(extract(epoch from clock_timestamp()))::bigint + seconds);
end
$$;

comment on function parley.start_trace(text[], uuid, integer, integer, parley.caller) is
'Begins to trace, and removes what was traced before; parley.traced_events shows it. One trace runs at a time. The
actions of a transaction that rolls back are not in it. Tracing slows SEND and RECEIVE down; without a trace they cost
what they always cost.
Arguments: events, any of Broker:Conversation, Broker:Conversation Group and Broker:Message Classify (null: all);
conversation, a handle, a conversation id or a group, to trace nothing else (null: all); seconds, after which nothing
more is traced, 1 to 604800; max_events, after which nothing more is traced, either. Call stop_trace all the same: until
then each message asks whether it is to be traced.
Errors: 229 not allowed, 5061 transactions that send or receive do not finish within ten seconds, 8402 no such event,
seconds or max_events out of range.
Source: spec 8.5.';

create function parley.stop_trace(caller parley.caller default parley.current_caller()) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  found := parley._p_require_permission(v_caller, 'ALTER TRACE', 'database', 0, null, null);
  perform parley._p_switch_trace(false);
  delete from parley._p_trace;
end
$$;

comment on function parley.stop_trace(parley.caller) is
'Ends the trace, if one runs. Its events stay until the next one begins.
Errors: 229 not allowed, 5061 transactions that send or receive do not finish within ten seconds.
Source: spec 8.5.';

create view parley.traced_events with (security_barrier) as
select
  v.event_sequence,
  v.start_time,
  v.event_class,
  s.event_name,
  v.event_subclass,
  s.subclass_name as event_subclass_name,
  v.conversation_id,
  v.conversation_handle,
  v.conversation_group_id,
  case when v.is_initiator then 'initiator' when not v.is_initiator then 'target' end as role_name,
  v.state,
  v.priority,
  v.service_name,
  v.far_service,
  v.far_broker_instance,
  v.next_hop,
  t.name as message_type_name,
  v.messages,
  v.error,
  v.text_data,
  v.spid,
  v.transaction_id,
  v.login_name,
  v.application_name
from parley._p_trace_event as v
join parley._p_trace_subclass as s using (event_class, event_subclass)
left join parley._p_message_type as t using (message_type_id)
where (select parley._p_is_administrator(parley._p_current_role()))
  or exists (
    select from parley._p_permitted_object as p
    where p.class = 'database' and p.permission in ('ALTER TRACE', 'CONTROL')
  );

comment on view parley.traced_events is
'The events that the trace that runs, or ran last, has seen. For administrators and whoever was granted ALTER TRACE on
the database.';
comment on column parley.traced_events.event_sequence is
'Number of the event; numbers of transactions that rolled back are missing.';
comment on column parley.traced_events.start_time is 'When it happened.';
comment on column parley.traced_events.event_class is '124, 136 or 141.';
comment on column parley.traced_events.event_name is
'Broker:Conversation, Broker:Conversation Group or Broker:Message Classify.';
comment on column parley.traced_events.event_subclass is 'Number of what happened, within its class.';
comment on column parley.traced_events.event_subclass_name is 'The event, such as SEND Message.';
comment on column parley.traced_events.conversation_id is 'Identity of the conversation, the same on both sides.';
comment on column parley.traced_events.conversation_handle is 'The side of the conversation that it happened to.';
comment on column parley.traced_events.conversation_group_id is 'Its group.';
comment on column parley.traced_events.role_name is 'The role of that side: initiator or target.';
comment on column parley.traced_events.state is 'State of that side afterwards: SO, CO, DI, DO, ER or CD.';
comment on column parley.traced_events.priority is 'Level of that side, 1 to 10.';
comment on column parley.traced_events.service_name is 'Service of that side.';
comment on column parley.traced_events.far_service is 'Service of the other side.';
comment on column parley.traced_events.far_broker_instance is
'Broker instance of the other side, as far as it is known.';
comment on column parley.traced_events.next_hop is 'Where its messages go next: an address, or null in this database.';
comment on column parley.traced_events.message_type_name is 'Type of the messages.';
comment on column parley.traced_events.messages is 'How many messages; those of a batch arrive as frames of several.';
comment on column parley.traced_events.error is 'Number of the error: negative when it is a broker''s.';
comment on column parley.traced_events.text_data is 'Why messages are delayed, or the text of the error.';
comment on column parley.traced_events.spid is 'Process id of the session.';
comment on column parley.traced_events.transaction_id is 'Its transaction.';
comment on column parley.traced_events.login_name is 'The role that had logged in.';
comment on column parley.traced_events.application_name is 'The name that the session gives itself.';
