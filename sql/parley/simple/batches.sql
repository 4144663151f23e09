-- Batches: messages of a simple queue after which another one is put, when all of them are done.
--
-- A message is done when it is gone: taken in a transaction that committed, or withdrawn. One that waits for another
-- attempt or is set aside is still there, so the batch waits for what becomes of it. The daemon, or whoever calls
-- fire_timers, looks for the first message that is left, from where it was the last time on: each is read once.
--
-- Invariants, and what keeps each:
--   a batch ends once   its row, locked and deleted in the transaction that puts what comes after it
--   it ends when all are gone   a message in the hands of a reader is there for others until the reader commits
--   what comes after it is put in the name of the role that made the batch   its owner; the rights are asked for then
-- Locks: rows of batches, skip locked, then those of put. Cost while no batch is open: one probe of an index a second.

create table parley._p_batch (
  batch_id bigint generated always as identity primary key,
  owner parley._p_role_oid not null,
  queue_id integer not null references parley._p_queue on delete cascade,
  then_queue_id integer not null references parley._p_queue on delete cascade,
  then_body bytea,
  messages integer not null,
  low_position bigint not null default 0,
  created_at timestamptz not null default clock_timestamp(),
  check_at timestamptz not null default clock_timestamp(),
  fault text
);

comment on table parley._p_batch is
'Batches that are not done: then_body is put into then_queue_id when no message of the batch is left. Nothing is left
before low_position; check_at is when to look again, and fault why what comes after could not be put.';

create index on parley._p_batch (check_at);

create trigger _p_number_roles after insert or update of owner on parley._p_batch
for each row execute function parley._p_number_roles('owner');

create table parley._p_batch_member (
  batch_id bigint not null references parley._p_batch on delete cascade,
  position bigint not null,
  primary key (batch_id, position)
);

comment on table parley._p_batch_member is 'The messages of batches, by their positions in the queue of the batch.';

create index on parley._p_batch_member (position);

create function parley._p_first_left(batch parley._p_batch) returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
begin
  return (
    select b.position
    from parley._p_batch_member as b
    where b.batch_id = batch.batch_id
      and b.position >= batch.low_position
      and exists (
        select
        from parley._p_message as m
        where m.position = b.position
          and m.lane in (
            select * from parley._p_lanes(batch.queue_id)
            union all
            select parley._p_set_aside_lane(batch.queue_id)
          )
      )
    order by b.position
    limit 1
  );
end
$$;

comment on function parley._p_first_left(parley._p_batch) is
'Gives the position of the first message of a batch that is left; null when none is.';

create function parley._p_end_batches(only_queues integer[]) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_now timestamptz := clock_timestamp();
  v_batch parley._p_batch;
  v_left bigint;
  v_ended integer := 0;
  v_fault text;
begin
  for v_batch in
    select *
    from parley._p_batch as b
    where b.check_at <= v_now and (only_queues is null or b.queue_id = any (only_queues))
    order by b.check_at
    limit 100
    for update skip locked
  loop
    v_left := parley._p_first_left(v_batch);
    v_fault := null;
    if v_left is null then
      begin
        perform parley._p_put(
          v_batch.owner, q.lookup_name, array[v_batch.then_body], null, 5, null, null
        )
        from parley._p_queue as q
        where q.queue_id = v_batch.then_queue_id;
        delete from parley._p_batch as b where b.batch_id = v_batch.batch_id;
        v_ended := v_ended + 1;
        continue;
      exception
        when others then
          v_fault := left(sqlerrm, 2000);
      end;
    end if;
    -- An old one is looked at ever more seldom.
    update parley._p_batch as b
    set low_position = coalesce(v_left, b.low_position), fault = v_fault,
      check_at = clock_timestamp()
        + least(greatest((clock_timestamp() - b.created_at) / 20, interval '0.5 seconds'), interval '30 seconds')
    where b.batch_id = v_batch.batch_id;
  end loop;
  return v_ended;
end
$$;

comment on function parley._p_end_batches(integer[]) is
'Puts what comes after batches of which no message is left, and gives how many those are. Waits for nobody.
Arguments: only_queues, of these alone; null for all.';

create function parley.put_group(
  queue text, bodies text[], then_queue text, then_body text, keys text[] default null, priority integer default 5,
  trace_context text default null, caller parley.caller default parley.current_caller()
) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_simple_queue(v_caller, queue, 'SEND');
  v_then parley._p_queue := parley._p_find_simple_queue(v_caller, then_queue, 'SEND');
  v_bodies bytea[] := parley._p_utf8_bodies(bodies);
  v_context text := parley._p_trace_context(trace_context);
  v_count integer := coalesce(cardinality(bodies), 0);
  v_id bigint;
begin
  found := parley._p_require_one_dimension(keys);
  if cardinality(keys) <> v_count then
    found := parley._p_raise(8402, 'keys of a batch', v_count::text);
  end if;
  insert into parley._p_batch as b (owner, queue_id, then_queue_id, then_body, messages)
  values (v_caller, v_queue.queue_id, v_then.queue_id, nullif(convert_to(then_body, 'UTF8'), ''), v_count)
  returning b.batch_id into v_id;
  for v_number in 1 .. v_count loop
    perform parley._p_put(
      v_caller, queue, array[v_bodies[v_number]], keys[v_number], priority, null, v_context
    );
    insert into parley._p_batch_member (batch_id, position)
    values (v_id, currval(v_queue.position_sequence) * 1024);
  end loop;
  return v_id;
end
$$;

comment on function parley.put_group(
  text, text[], text, text, text[], integer, text, parley.caller
) is
'Puts a message for each text into a simple queue, and when all of them are done another one into a queue: taken in
transactions that committed, or withdrawn. A message that waits for another attempt or is set aside is not done. The
daemon puts it within a second or so, for a long batch within half a minute, in the name of the caller.
Arguments: queue; bodies; then_queue and then_body, what is put when they are done; keys, the key of each, null for
none; priority and trace_context of all of them, as in put.
Returns the number of the batch, as parley.batches shows it.
Errors: those of put, and 8402 as many keys as bodies are needed, an array of several dimensions.
Source: spec P32.';

create function parley._p_batches(caller parley.caller default parley.current_caller())
returns table (
  batch_id bigint, queue_name text, then_queue text, messages integer, left_messages bigint, created_at timestamptz,
  fault text
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select b.batch_id, q.lookup_name, t.lookup_name, b.messages,
    (
      select count(*)
      from parley._p_batch_member as n
      join parley._p_message as m
        on m.position = n.position
        and m.lane between parley._p_lane(b.queue_id, 10) and parley._p_waiting_lane(b.queue_id)
      where n.batch_id = b.batch_id and n.position >= b.low_position
    ),
    b.created_at, b.fault
  from parley._p_batch as b
  join parley._p_queue as q on q.queue_id = b.queue_id
  join parley._p_queue as t on t.queue_id = b.then_queue_id
  where pg_has_role(parley._p_caller(caller), b.owner, 'usage')
    or parley._p_has_permission(parley._p_caller(caller), 'RECEIVE', 'queue', q.queue_id, q.owner)
$$;

comment on function parley._p_batches(parley.caller) is 'Gives what parley.batches shows.';

create view parley.batches as
select b.batch_id, b.queue_name, b.then_queue, b.messages, b.left_messages, b.created_at, b.fault
from parley._p_batches() as b;

comment on view parley.batches is
'Batches of messages that are not done (parley.put_group), of the role and of queues that it may take from: how many
messages there were and how many are left, and fault, why what comes after them could not be put.';
