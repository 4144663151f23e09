-- PUT of a message that there is once at a time: while one with the same unique key waits, for its turn, its time or
-- another attempt, or is in the hands of a reader, none is put.
--
-- A row says which message a key stands for. It counts as long as that message is there: in the hands of a reader it
-- is, until the reader commits. A message that is set aside does not count, as nobody works on it.
-- Invariants, and what keeps each:
--   of two sessions with one key only one puts   the row of the key: the second waits for the first
-- Locks: the row of the key, then those of put. Rows of messages that are gone are removed by fire_timers: whoever puts
-- may keep his transaction open for long, and would hold up all who use the keys that he had removed.

create table parley._p_unique_message (
  queue_id integer not null references parley._p_queue on delete cascade,
  unique_key text collate "C" not null,
  position bigint,
  delayed_id bigint,
  primary key (queue_id, unique_key)
);

comment on table parley._p_unique_message is
'Which message of a simple queue was put last with a unique key: by its position, or while it is not due by its
delayed_id.';

create index on parley._p_unique_message (queue_id, position);
create index on parley._p_unique_message (delayed_id) where delayed_id is not null;

create function parley._p_is_there(entry parley._p_unique_message) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
begin
  return exists (
    select
    from parley._p_message as m
    where m.position = entry.position and m.lane in (select * from parley._p_lanes(entry.queue_id))
  ) or exists (
    select from parley._p_delayed_message as d where d.delayed_id = entry.delayed_id and d.queue_id = entry.queue_id
  );
end
$$;

comment on function parley._p_is_there(parley._p_unique_message) is
'Reports whether the message of a unique key waits, or is in the hands of a reader.';

create function parley._p_forget_unique(only_queues integer[]) returns void
language sql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
  with gone as materialized (
    select (o.entry).queue_id, (o.entry).unique_key
    from (
      select s.queue_id
      from parley._p_queue as s
      where s.is_simple and ($1 is null or s.queue_id = any ($1))
      order by random()
      limit 50
    ) as q
    cross join lateral (
      select u as entry
      from parley._p_unique_message as u
      where u.queue_id = q.queue_id
      order by u.position
      limit 1000
    ) as o
    where not parley._p_is_there(o.entry)
  )
  delete from parley._p_unique_message as d
  where d.ctid = any (array(
    select u.ctid
    from gone as g
    join parley._p_unique_message as u on u.queue_id = g.queue_id and u.unique_key = g.unique_key
    -- Asked again with the lock: the key may have been used since.
    where not parley._p_is_there(u)
    for update of u skip locked
  ))
$$;

comment on function parley._p_forget_unique(integer[]) is
'Removes unique keys of messages that are gone, of the oldest 1,000 of each of 50 queues, others each time. Waits for
nobody.
Arguments: only_queues, of these alone; null for all.';

create function parley.put_unique(
  queue text, body text, unique_key text, key text default null, priority integer default 5,
  deliver_at timestamptz default null, trace_context text default null,
  caller parley.caller default parley.current_caller()
) returns parley.sent_message
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_simple_queue(v_caller, queue, 'SEND');
  v_entry parley._p_unique_message;
  v_sent parley.sent_message;
begin
  found := parley._p_require_range('the number of characters of unique_key', coalesce(length(unique_key), 0), 1, 256);
  insert into parley._p_unique_message as u (queue_id, unique_key)
  values (v_queue.queue_id, put_unique.unique_key)
  on conflict on constraint _p_unique_message_pkey do update set unique_key = excluded.unique_key
  returning u.* into v_entry;
  -- In a statement of its own, which sees what others have committed while we waited for the row.
  if parley._p_is_there(v_entry) then
    return row(true, null, v_entry.position, v_entry.delayed_id, null)::parley.sent_message;
  end if;
  v_sent := parley._p_put_later(
    v_caller, queue, convert_to(body, 'UTF8'), key, priority, deliver_at, parley._p_trace_context(trace_context)
  );
  update parley._p_unique_message as u
  set position = v_sent.message_id, delayed_id = v_sent.delayed_id
  where u.queue_id = v_queue.queue_id and u.unique_key = put_unique.unique_key;
  return v_sent;
end
$$;

comment on function parley.put_unique(
  text, text, text, text, integer, timestamptz, text, parley.caller
) is
'Puts a message into a simple queue unless one that was put with the same unique key waits there, for its turn, its time
or another attempt, or is in the hands of a reader.
Arguments: queue; body; unique_key, 1 to 256 characters, one for all roles that put there; key, priority, deliver_at and
trace_context as in put.
Returns what came of it: is_duplicate, whether there was one, and the message_id or delayed_id of the one that is there.
A session that uses a key waits for another session that is using it until the transaction of that one ends.
Errors: those of put, and 8402 unique_key empty or too long.
Source: spec P32.';
