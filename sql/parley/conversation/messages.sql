-- The message store: one append-only table for every queue.
--
-- position    order of arrival in the queue: 1024 times a number of the queue's sequence, so
-- that a frame, a row that holds
--             up to 1,000 consecutive messages of one conversation, gives each of them a position of its own.
-- lane        queue and priority in one number, ascending from the highest priority; see _p_lane.
-- endpoint_id the side that is to receive it. Its group is looked up, so MOVE CONVERSATION touches no message.
--
-- Two indexes: (lane, position) finds the next group in order of arrival, (endpoint_id, position) its messages.
-- Receiving deletes. Nothing is ever updated, and no counter is kept in a row: see _p_scan_hint and _p_receive_progress
-- for how readers stay clear of the dead rows that an old snapshot holds back.

create table parley._p_message (
  position bigint not null,
  endpoint_id bigint not null,
  enqueued_at timestamptz not null,
  lane integer not null,
  message_type_id integer not null,
  body bytea,
  frame bytea[],
  -- W3C trace context of the sender (send/trace_context.sql); where it is null it takes no room. A frame has
  -- one for all its messages.
  trace_context text,
  -- Of a message of a simple queue (simple/messages.sql).
  message_key text
) with (
  toast_tuple_target = 8160,
  autovacuum_vacuum_scale_factor = 0.1,
  autovacuum_vacuum_threshold = 10000,
  autovacuum_vacuum_insert_scale_factor = 0.5,
  autovacuum_analyze_scale_factor = 0.5,
  autovacuum_analyze_threshold = 100000
);

comment on table parley._p_message is 'Messages that wait to be received: one in body, or several in frame.';

alter table parley._p_message alter column body set storage external;
alter table parley._p_message alter column frame set storage external;

create index on parley._p_message (lane, position);
create index on parley._p_message (endpoint_id, position);

-- It costs nothing unless wal_level is logical. A unique index instead was tried: a put then takes 4% more of the
-- processor, at any wal_level.
alter table parley._p_message replica identity full;

-- How many messages each endpoint has received. Each RECEIVE appends a row; the newest is
-- found first, scanning backwards.
create table parley._p_receive_progress (
  endpoint_id bigint not null,
  sequence bigint not null
);

comment on table parley._p_receive_progress is
'The next message_sequence_number of each endpoint: the largest row counts (spec 3.4).';

alter table parley._p_receive_progress replica identity full;

create index on parley._p_receive_progress (endpoint_id, sequence);

create function parley._p_forget_progress(endpoint_id bigint, sequence bigint, count integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  -- Dead rows that an old snapshot holds back are not walked through each time: only now and then, for rows that were
  -- left when calls took now more and now less.
  v_first bigint := case
    when sequence / count / 32768 = (sequence - count) / count / 32768 then sequence - 1024::bigint * count
    else 0
  end;
begin
  delete from parley._p_receive_progress as p
  where p.endpoint_id = _p_forget_progress.endpoint_id
    and p.sequence >= v_first
    and p.sequence < _p_forget_progress.sequence;
end
$$;

comment on function parley._p_forget_progress(bigint, bigint, integer) is
'Removes older rows of _p_receive_progress: only the newest is needed. For about every 32nd RECEIVE.
Arguments: endpoint_id; sequence, of the newest row; count, how many messages this RECEIVE took, at least 1.';

-- Where the scan of a reader may begin. All rows of the lane before low_position are received for good. Such a claim is
-- only made up to safe_position: all senders with positions up to there have finished. How that is known: see
-- _p_record_scan. Rows from low_position to resume_position belong to blocked_endpoints, which were locked; each of
-- them has none before its blocked_position. In a lane of a simple queue nobody is named: those rows were in the hands
-- of somebody who may give them back (simple/held_rows.sql). So were the rows without a key before keyless_position.
create table parley._p_scan_hint (
  hint_id bigint generated always as identity,
  lane integer not null,
  low_position bigint not null,
  safe_position bigint not null,
  probe_position bigint not null,
  probe_senders text[] not null,
  blocked_endpoints bigint[] not null,
  blocked_positions bigint[] not null,
  resume_position bigint not null,
  keyless_position bigint not null default 0
);

comment on table parley._p_scan_hint is
'Append-only hints for readers; the newest of a lane counts. Losing them costs time, not messages.';

create unique index on parley._p_scan_hint (lane, hint_id);

alter table parley._p_scan_hint replica identity using index _p_scan_hint_lane_hint_id_idx;

-- DialogTimer and Error messages go before all others of their conversation. RECEIVE sorts a conversation only when it
-- is said here that there may be one: sorting takes reading all that waits in it.
create table parley._p_expedited (
  expedited_id bigint generated always as identity primary key,
  endpoint_id bigint not null
);

comment on table parley._p_expedited is
'Endpoints that may have a DialogTimer or Error message waiting: a row for each that has arrived and was not received.';

create index on parley._p_expedited (endpoint_id);

-- Copies that a queue with retention keeps until the conversation ends (spec 5.2): 0 received, 3 sent.
create table parley._p_retained (
  queue_id integer not null,
  endpoint_id bigint not null,
  status smallint not null check (status in (0, 3)),
  position bigint not null,
  message_sequence_number bigint not null,
  message_type_id integer not null,
  enqueued_at timestamptz not null,
  body bytea,
  trace_context text
);

comment on table parley._p_retained is 'Messages kept by retention.';

alter table parley._p_retained replica identity full;

create index on parley._p_retained (endpoint_id);

-- Messages that cannot be delivered yet.
create table parley._p_transmission (
  transmission_id bigint generated always as identity primary key,
  endpoint_id bigint not null,
  message_type_id integer not null,
  enqueued_at timestamptz not null,
  body bytea,
  transmission_status text not null,
  trace_context text,
  -- That of the first of an endpoint: its delivery took too long, and is tried again then.
  try_at timestamptz
);

comment on table parley._p_transmission is
'The messages that have been sent and have no way to go yet, in the order of transmission_id for each endpoint. The
type -1 stands for an Error of the broker.';

create index on parley._p_transmission (endpoint_id, transmission_id);
create index on parley._p_transmission (endpoint_id) where try_at is not null;

-- When to classify them again at the earliest, in microseconds since 1970.
create sequence parley._p_next_delayed_check minvalue 0 start 0;

create function parley._p_enqueue(endpoint parley._p_endpoint, message_type_id integer, body bytea) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, body)
  select nextval(q.position_sequence) * 1024, endpoint.endpoint_id, clock_timestamp(),
    parley._p_lane(q.queue_id, endpoint.priority),
    _p_enqueue.message_type_id, nullif(_p_enqueue.body, '')
  from parley._p_service as s
  join parley._p_queue as q using (queue_id)
  where s.service_id = endpoint.service_id;
  if message_type_id in (1, 5) then
    insert into parley._p_expedited (endpoint_id) values (endpoint.endpoint_id);
  end if;
  perform parley._p_wake_readers(q.queue_id, q.wakeup_sequence)
  from parley._p_service as s
  join parley._p_queue as q using (queue_id)
  where s.service_id = endpoint.service_id;
end
$$;

comment on function parley._p_enqueue(parley._p_endpoint, integer, bytea) is
'Puts one message on the queue of an endpoint.';

create function parley._p_wakeup_until(queue parley._p_queue, until bigint) returns bigint
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select (until + 1) / 2 * 2 + case when queue.quota_sequence is null then 0 else 1 end
$$;

comment on function parley._p_wakeup_until(parley._p_queue, bigint) is
'Gives what the wake-up sequence of a queue is set to: until when to notify, in seconds since 1970, even, and one more
when the queue has a quota, so that senders ask for that of no other queue.';

create table parley._p_listener (
  queue_id integer,
  pid integer,
  primary key (queue_id, pid)
);

comment on table parley._p_listener is
'Sessions that have asked to be notified of messages of a queue; some have gone. Only diagnosis reads it:
senders go by the wake-up sequence.';

create function parley._p_is_listening(queue_id integer) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select
    from parley._p_listener as l
    join pg_stat_activity as a using (pid)
    where l.queue_id = $1 and a.datid = parley._p_database_oid()
  )
$$;

comment on function parley._p_is_listening(integer) is
'Reports whether a session still lives that has asked to be notified of messages of a queue.';

create function parley._p_record_listener(queue_id integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley._p_listener (queue_id, pid)
  values (_p_record_listener.queue_id, pg_backend_pid())
  on conflict do nothing;
  if found then
    delete from parley._p_listener as l
    where (l.queue_id, l.pid) in (
      select o.queue_id, o.pid
      from parley._p_listener as o
      where not exists (select from pg_stat_activity as a where a.pid = o.pid and a.datid = parley._p_database_oid())
      for update skip locked
    );
  end if;
end
$$;

comment on function parley._p_record_listener(integer) is
'Records that this session wants to be notified of messages of a queue. It writes the first time only, and then
forgets sessions that have gone.';

create function parley.listen_for_messages(
  queue text, seconds integer default 10,
  caller parley.caller default parley.current_caller()
) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue, 'RECEIVE');
  v_until bigint := extract(epoch from clock_timestamp())::bigint + seconds;
begin
  -- Others may sleep longer than this caller.
  if seconds <= 0 or coalesce(pg_sequence_last_value(v_queue.wakeup_sequence), 0) < v_until then
    perform setval(v_queue.wakeup_sequence, parley._p_wakeup_until(v_queue, greatest(0, v_until)));
  end if;
  if seconds > 0 then
    perform parley._p_record_listener(v_queue.queue_id);
  else
    delete from parley._p_listener as l where l.queue_id = v_queue.queue_id and l.pid = pg_backend_pid();
  end if;
  return v_queue.queue_id::text;
end
$$;

comment on function parley.listen_for_messages(text, integer, parley.caller) is
'Asks senders to notify channel parley for some seconds, and returns the payload to expect: the id of the queue. Call
LISTEN parley first, then this, then read the queue once more, then sleep. A sender that checked just before may not
notify: read again after a second at the latest. Not undone by a rollback.
Arguments: queue; seconds, how long to be notified; 0 or less ends it.
Errors: 208 no such queue, 229 not allowed, 9609 malformed name.';
