-- Conversations: groups, endpoints, and what remains of an endpoint that is closed.
--
-- Writers of each table. A SEND writes nothing here, but for a first one on a dialog whose target BEGIN DIALOG could
-- not make: it locks the sender's endpoint row FOR KEY SHARE, so that any number of senders share it and END
-- CONVERSATION (FOR UPDATE) waits for them. A RECEIVE locks only the group's row, in which nothing ever changes. State
-- changes update endpoint rows; counters never do, so an old snapshot has no chain of dead versions to grow here.
-- Lock order: group rows (by group_id), then endpoint rows (by endpoint_id), then messages.

create table parley._p_conversation_group (
  group_id bigint generated always as identity primary key,
  conversation_group_id uuid not null unique,
  service_id integer not null
);

comment on table parley._p_conversation_group is
'Conversation groups (spec 3.6). Its rows are the group locks; nothing in them ever changes.';

-- The columns that SEND reads stand first. A state is one of SO, SI, CO, DI, DO and ER, and destination_lane is null
-- in all but CO. There are no checks of that, because PostgreSQL reads their text anew in each statement that writes:
-- a ninth of the instructions of begin_and_send.
create table parley._p_endpoint (
  endpoint_id bigint generated always as identity primary key,
  far_endpoint_id bigint,
  group_id bigint not null,
  conversation_handle uuid not null default gen_random_uuid() unique,
  destination_lane integer,
  destination_position regclass,
  destination_wakeup regclass,
  usual_message_type_id integer,
  sender_role parley._p_role_oid,
  usual_message_type_name text collate "C",
  state text not null,
  is_initiator boolean not null,
  is_plain boolean not null,
  has_delayed boolean not null default false,
  priority smallint not null,
  service_id integer not null,
  service_contract_id integer not null,
  service_name text collate "C" not null,
  service_contract_name text collate "C" not null,
  conversation_id uuid not null,
  owner parley._p_role_oid not null,
  far_service text collate "C" not null,
  far_broker_instance text,
  is_encrypted boolean not null,
  lifetime timestamptz not null,
  destination_id integer,
  remote_service_binding_id integer,
  bound_version bigint,
  begun_at timestamptz not null default clock_timestamp(),
  state_since timestamptz not null default clock_timestamp()
  -- The end of a conversation updates both sides. A page that has no room for that costs an entry in each index.
) with (fillfactor = 70);

comment on table parley._p_endpoint is
'One row for each side of a conversation (spec 3.1). A side that is closed lives on in _p_tombstone.';
comment on column parley._p_endpoint.destination_lane is
'The lane of the far side, or null when SEND must check more; see send/send.sql.';
comment on column parley._p_endpoint.far_endpoint_id is
'The other side when that is in this database; null as long as there is none; -endpoint_id when it is in another one.';
comment on column parley._p_endpoint.destination_id is
'Where messages for a far side in another database go; null as long as no route was found.';
comment on column parley._p_endpoint.remote_service_binding_id is
'The remote service binding that there was when the initiator first found its way out of this database: the only one
that counts for it. Null for none; 0 for a dialog that was secured without it (trust/dialog_security.sql).';
comment on column parley._p_endpoint.usual_message_type_id is
'The message type that SEND finds in the same row: one that this side may send and that needs no validation, the first
of the contract or of the conversation.';
comment on column parley._p_endpoint.sender_role is
'The role through which a sender is known to hold RECEIVE on the queue of this side.';
comment on column parley._p_endpoint.is_plain is
'Whether RECEIVE may take messages just by position: alone in its group, no Error, no timer, never delivered.';
comment on column parley._p_endpoint.has_delayed is
'Whether this side has ever sent a message for later (conversation/delayed_sends.sql).';

comment on column parley._p_endpoint.bound_version is
'The version of the catalog with which BEGIN DIALOG made both sides; see conversation/first_send.sql. Null where the
first message made the target, and once something is known to have been sent.';

create unique index on parley._p_endpoint (conversation_id, is_initiator);
create index on parley._p_endpoint (group_id);
create index on parley._p_endpoint (service_id);

create table parley._p_tombstone (
  conversation_handle uuid primary key,
  conversation_id uuid not null,
  is_initiator boolean not null,
  service_contract_id integer not null,
  conversation_group_id uuid not null,
  service_id integer not null,
  far_service text collate "C" not null,
  owner parley._p_role_oid not null,
  lifetime timestamptz not null,
  priority smallint not null,
  expires_at timestamptz not null
);

comment on table parley._p_tombstone is
'Closed target endpoints, kept until expires_at so that a replayed first message cannot open the
conversation again (spec 3.3).';

create index on parley._p_tombstone (expires_at);
create index on parley._p_tombstone (conversation_id);

-- Conversation timers, lifetimes and abandoned endpoints: whatever is due at a time.
create table parley._p_alarm (
  endpoint_id bigint not null,
  kind text not null check (kind in ('timer', 'lifetime', 'abandoned', 'pooled', 'retry')),
  due_at timestamptz not null,
  -- When it was due before it was put off; null for all others.
  first_due_at timestamptz,
  primary key (endpoint_id, kind)
);

comment on table parley._p_alarm is 'The times at which something is due, and for which endpoint (spec 3.5).';

create index on parley._p_alarm (due_at);

create index on parley._p_alarm (first_due_at) where first_due_at is not null;

-- Shows, outside any transaction, when to scan for alarms next: microseconds since 1970. It may be early, never
-- later than a second too late.
create sequence parley._p_next_alarm minvalue 0 start 0;

-- Until when the daemon sleeps between alarms, in seconds since 1970: an alarm that is due soon
-- has to wake it (payload 0).
create sequence parley._p_alarm_wakeup minvalue 0 start 0;

create function parley._p_set_alarm(endpoint_id bigint, kind text, due_at timestamptz) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_due bigint := least(extract(epoch from due_at) * 1000000, 9000000000000000)::bigint;
begin
  insert into parley._p_alarm as a (endpoint_id, kind, due_at)
  values (_p_set_alarm.endpoint_id, _p_set_alarm.kind, _p_set_alarm.due_at)
  on conflict on constraint _p_alarm_pkey do update set due_at = excluded.due_at, first_due_at = null;
  if v_due < coalesce(pg_sequence_last_value('parley._p_next_alarm'), 0) then
    perform setval('parley._p_next_alarm', v_due);
  end if;
  -- Later ones the daemon finds by itself: it polls once a second.
  if due_at < clock_timestamp() + interval '2 seconds' then
    perform parley._p_wake_readers(0, 'parley._p_alarm_wakeup');
  end if;
end
$$;

comment on function parley._p_set_alarm(bigint, text, timestamptz) is 'Sets or replaces an alarm of an endpoint.';

create function parley._p_keeps_snapshot() returns boolean
language sql stable parallel safe
as $$
  select pg_catalog.current_setting('transaction_isolation') operator(pg_catalog.<>) all (
    array['read committed', 'read uncommitted']
  )
$$;

comment on function parley._p_keeps_snapshot() is
'Reports whether this transaction sees only what was there when it began: REPEATABLE READ, SERIALIZABLE.';

create function parley._p_find_endpoint(handle uuid, statement text default null) returns parley._p_endpoint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  if handle is null then
    found := parley._p_raise(8418, 'null');
  end if;
  select * into v_endpoint from parley._p_endpoint as e where e.conversation_handle = handle;
  if not found
    and statement is not null
    and exists (select from parley._p_tombstone as t where t.conversation_handle = handle) then
    case statement
      when 'SEND' then
        found := parley._p_raise(8429, 'closed', handle::text);
      when 'MOVE' then
        found := parley._p_raise(8438, 'closed', handle::text);
      when 'TIMER' then
        found := parley._p_raise(8458, 'closed', handle::text);
      when 'END' then
        found := parley._p_raise(8427, 'ended', 'CLOSED', handle::text, 'CD');
    end case;
  elsif not found then
    found := parley._p_raise_unknown_handle(handle);
  end if;
  return v_endpoint;
end
$$;

comment on function parley._p_find_endpoint(uuid, text) is
'Finds an endpoint by its handle, without locking it.
Arguments: handle; statement, END, MOVE, SEND or TIMER when it says in its own words that both sides have ended it.
Errors: 8418 null, 8426 not found; closed already: 8427 END, 8429 SEND, 8438 MOVE, 8458 TIMER.';

create function parley._p_raise_unknown_handle(handle uuid) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if exists (select from parley._p_tombstone as t where t.conversation_handle = handle) then
    return parley._p_raise(8426, 'closed', handle::text);
  end if;
  return parley._p_raise(8426, 'unknown', handle::text);
end
$$;

comment on function parley._p_raise_unknown_handle(uuid) is
'Says that a handle leads nowhere.
Errors: 8426, always.';

create function parley._p_state_name(state text) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
  return case state
    when 'SO' then 'STARTED_OUTBOUND'
    when 'SI' then 'STARTED_INBOUND'
    when 'CO' then 'CONVERSING'
    when 'DI' then 'DISCONNECTED_INBOUND'
    when 'DO' then 'DISCONNECTED_OUTBOUND'
    when 'ER' then 'ERROR'
    when 'CD' then 'CLOSED'
  end;
end
$$;

comment on function parley._p_state_name(text) is 'Gives the long name of an endpoint state (spec 3.1).';

create function parley._p_set_state(endpoint_id bigint, state text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update parley._p_endpoint as e
  set state = $2, state_since = clock_timestamp(), is_plain = e.is_plain and $2 <> 'ER', destination_lane = null
  where e.endpoint_id = $1;
end
$$;

comment on function parley._p_set_state(bigint, text) is
'Changes the state of an endpoint; sends on it take the long way from now on.';
