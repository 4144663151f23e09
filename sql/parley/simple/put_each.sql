-- PUT of several messages that says what came of each: their numbers, for who follows or withdraws them, and once each
-- with deduplication keys.
--
-- Keys are used in their order before anything is put, so that two batches with the same keys wait for one another and
-- never in a circle. Cost: some statements a message more than put_batch, which says nothing.
-- Locks: the rows of the keys, then those of put.

create function parley._p_use_keys(caller oid, queue parley._p_queue, keys text[])
returns parley._p_deduplication_key[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_key text;
  v_used parley._p_deduplication_key[] := '{}'::parley._p_deduplication_key[];
begin
  for v_key in select distinct u.key collate "C" as key from unnest(keys) as u (key) where u.key is not null order by 1
  loop
    v_used := array_append(v_used, parley._p_use_key(
      queue.queue_id, 'PUT', v_key, queue.deduplication_seconds, pg_get_userbyid(caller)
    ));
  end loop;
  return v_used;
end
$$;

comment on function parley._p_use_keys(oid, parley._p_queue, text[]) is
'Uses deduplication keys of put, in their order.
Errors: 8402 a key is empty or too long.';

create function parley.put_each(
  queue text, bodies text[], keys text[] default null, deduplication_keys text[] default null,
  priority integer default 5, deliver_at timestamptz default null, trace_context text default null,
  caller parley.caller default parley.current_caller()
) returns setof parley.sent_message
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_simple_queue(v_caller, queue, 'SEND');
  v_bodies bytea[] := parley._p_utf8_bodies(bodies);
  v_context text := parley._p_trace_context(trace_context);
  v_used parley._p_deduplication_key[];
  v_first parley._p_deduplication_key;
  v_sent parley.sent_message;
begin
  found := parley._p_require_one_dimension(keys) and parley._p_require_one_dimension(deduplication_keys);
  if cardinality(keys) <> cardinality(bodies) or cardinality(deduplication_keys) <> cardinality(bodies) then
    found := parley._p_raise(8402, 'keys of a batch', cardinality(bodies)::text);
  end if;
  v_used := parley._p_use_keys(v_caller, v_queue, deduplication_keys);
  for v_number in 1 .. coalesce(cardinality(bodies), 0) loop
    select u.* into v_first
    from unnest(v_used) as u
    where u.key = deduplication_keys[v_number];
    if v_first.is_answered then
      return next row(true, null, v_first.message_id, v_first.delayed_id, v_first.used_at)::parley.sent_message;
      continue;
    end if;
    v_sent := parley._p_put_later(
      v_caller, queue, v_bodies[v_number], keys[v_number], priority, deliver_at, v_context
    );
    if v_first.key is null then
      return next v_sent;
      continue;
    end if;
    return next parley._p_record_key(
      v_first, null, message_id => v_sent.message_id, delayed_id => v_sent.delayed_id
    );
    -- The same key again, in this batch.
    v_used := array(
      select case
        when u.key = v_first.key then (
          select k
          from parley._p_deduplication_key as k
          where k.object_id = u.object_id and k.action = u.action and k.used_by = u.used_by and k.key = u.key
        )
        else u
      end
      from unnest(v_used) as u
    );
  end loop;
end
$$;

comment on function parley.put_each(
  text, text[], text[], text[], integer, timestamptz, text, parley.caller
) is
'Puts a message for each text into a simple queue, in the order of the array, and says what came of each: message_id,
which parley.cancel takes, or delayed_id while it is not due, which parley.withdraw_message takes.
Arguments: queue; bodies; keys, the key of each, null for none; deduplication_keys, that of each, null for none: what
this role put with it before, or further in front, is not put again, and is_duplicate says so; priority, deliver_at and
trace_context of all of them, as in put.
Errors: those of put, and 8402 as many keys as bodies are needed, an array of several dimensions.
Source: spec P32.';
