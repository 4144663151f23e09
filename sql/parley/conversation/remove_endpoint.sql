-- The end of one side of a conversation in the tables, when nobody needs it any more.
--
-- Locks: the far side FOR UPDATE SKIP LOCKED, then the group the same way: whoever holds one of them
-- leaves the rest to an alarm.

create function parley._p_discard_messages(endpoint_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from parley._p_message as m where m.endpoint_id = $1;
  delete from parley._p_retained as r where r.endpoint_id = $1;
  if found then
    delete from parley._p_copy_progress as p where p.endpoint_id = $1;
  end if;
  delete from parley._p_alarm as a where a.endpoint_id = $1;
  delete from parley._p_expedited as x where x.endpoint_id = $1;
end
$$;

comment on function parley._p_discard_messages(bigint) is
'Removes whatever waits for an endpoint or is kept for it, and its alarms.';

create function parley._p_sees_all_of(endpoint parley._p_endpoint) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if not parley._p_keeps_snapshot() then
    return true;
  end if;
  -- END waits for readers and senders of a side, and no later one appends to it. So whoever sees that both sides have
  -- ended sees all that belongs to them, but not if he has ended one himself: then his snapshot is older than that.
  perform
  from parley._p_endpoint as e
  where e.endpoint_id = endpoint.endpoint_id and e.state = 'DO' and parley._p_precedes_snapshot(e.xmin)
  for update;
  if not found or exists (
    select
    from parley._p_endpoint as f
    where f.endpoint_id = endpoint.far_endpoint_id and (f.state <> 'DO' or not parley._p_precedes_snapshot(f.xmin))
  ) then
    return false;
  end if;
  -- Another conversation may have come into the group since. The one that was alone in it is changed then, and could
  -- not have been locked.
  return endpoint.is_plain or parley._p_has_missed_nothing();
end
$$;

comment on function parley._p_sees_all_of(parley._p_endpoint) is
'Reports whether this transaction sees all that belongs to an endpoint, whose group it has locked: always at READ
COMMITTED; at a level that keeps a snapshot, when both sides had ended before that and nobody has joined its group.
Errors: 40001 the endpoint has changed since.';

create function parley._p_remove_endpoint(endpoint parley._p_endpoint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  -- A sender of the far side holds its row until he commits, and what he has appended is not seen before. A
  -- side that has ended has none.
  v_has_senders boolean := exists (
    select from parley._p_endpoint as f where f.endpoint_id = endpoint.far_endpoint_id and f.state <> 'DO'
  );
begin
  if v_has_senders then
    perform from parley._p_endpoint as f where f.endpoint_id = endpoint.far_endpoint_id for update skip locked;
    v_has_senders := not found;
  end if;
  perform parley._p_discard_messages(endpoint.endpoint_id);
  if v_has_senders then
    perform parley._p_set_state(endpoint.endpoint_id, 'DO');
    perform parley._p_set_alarm(endpoint.endpoint_id, 'abandoned', clock_timestamp() + interval '1 second');
    return;
  end if;
  -- A session that holds the group may be about to begin a dialog in it, which must not find it gone (keeps S2). When
  -- this is our own side we hold it ourselves.
  perform from parley._p_conversation_group as g where g.group_id = endpoint.group_id for update skip locked;
  if not found or not parley._p_sees_all_of(endpoint) then
    perform parley._p_set_state(endpoint.endpoint_id, 'DO');
    perform parley._p_set_alarm(endpoint.endpoint_id, 'abandoned', clock_timestamp());
    return;
  end if;
  delete from parley._p_receive_progress as p where p.endpoint_id = endpoint.endpoint_id;
  delete from parley._p_transmission as t where t.endpoint_id = endpoint.endpoint_id;
  if endpoint.far_endpoint_id < 0 then
    perform parley._p_forget_far_side(endpoint.endpoint_id);
  end if;
  if endpoint.has_delayed then
    perform parley._p_drop_delayed_sends(endpoint.endpoint_id);
  end if;
  if not endpoint.is_plain then
    delete from parley._p_set_aside as s where s.endpoint_id = endpoint.endpoint_id;
    delete from parley._p_failure as f where f.endpoint_id = endpoint.endpoint_id;
  end if;
  delete from parley._p_endpoint as e where e.endpoint_id = endpoint.endpoint_id;
  if not endpoint.is_initiator then
    insert into parley._p_tombstone (
      conversation_handle, conversation_id, is_initiator, service_contract_id, conversation_group_id, service_id,
      far_service, owner, lifetime, priority, expires_at
    )
    select endpoint.conversation_handle, endpoint.conversation_id, false, endpoint.service_contract_id,
      g.conversation_group_id, endpoint.service_id,
      endpoint.far_service, endpoint.owner, endpoint.lifetime, endpoint.priority,
      clock_timestamp() + make_interval(secs => b.tombstone_seconds)
    from parley._p_broker as b, parley._p_conversation_group as g
    where g.group_id = endpoint.group_id;
  end if;
  delete from parley._p_conversation_group as g
  where g.group_id = endpoint.group_id
    and not exists (select from parley._p_endpoint as e where e.group_id = g.group_id);
end
$$;

comment on function parley._p_remove_endpoint(parley._p_endpoint) is
'Removes one side of a conversation with all that belongs to it; a target leaves a tombstone, an empty group goes
(spec 3.3, 3.6). When somebody else holds the group or sends to it just now, or at REPEATABLE READ, the endpoint is
closed now and removed by an alarm, in a later transaction.';

create function parley._p_remove_both(near parley._p_endpoint, far parley._p_endpoint) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids constant bigint[] := array[near.endpoint_id, far.endpoint_id];
begin
  if near.has_delayed or far.has_delayed then
    perform parley._p_drop_delayed_sends(near.endpoint_id), parley._p_drop_delayed_sends(far.endpoint_id);
  end if;
  perform parley._p_discard_messages(near.endpoint_id), parley._p_discard_messages(far.endpoint_id);
  delete from parley._p_transmission as t where t.endpoint_id = any (v_ids);
  return parley._p_remove_sides(v_ids, array[near.group_id, far.group_id]);
end
$$;

comment on function parley._p_remove_both(parley._p_endpoint, parley._p_endpoint) is
'Removes both sides of a conversation of this database as _p_remove_endpoint would, one after the other. The caller has
locked both, and their groups; both are plain, so each is alone in its group and no Error or timer message waits.';

create function parley._p_remove_sides(endpoints bigint[], groups bigint[]) returns boolean
language plpgsql
as $$
begin
  with removed_progress as (
    delete from parley._p_receive_progress as p where p.endpoint_id operator(pg_catalog.=) any (endpoints)
  ), removed_endpoints as (
    delete from parley._p_endpoint as e where e.endpoint_id operator(pg_catalog.=) any (endpoints)
    returning e.group_id, e.conversation_handle, e.conversation_id, e.is_initiator, e.service_contract_id, e.service_id,
      e.far_service, e.owner, e.lifetime, e.priority
  ), removed_groups as (
    delete from parley._p_conversation_group as g where g.group_id operator(pg_catalog.=) any (groups)
    returning g.group_id, g.conversation_group_id
  )
  insert into parley._p_tombstone (
    conversation_handle, conversation_id, is_initiator, service_contract_id, conversation_group_id, service_id,
    far_service, owner, lifetime, priority, expires_at
  )
  select e.conversation_handle, e.conversation_id, false, e.service_contract_id, g.conversation_group_id, e.service_id,
    e.far_service, e.owner, e.lifetime, e.priority,
    pg_catalog.clock_timestamp() operator(pg_catalog.+) pg_catalog.make_interval(secs => b.tombstone_seconds)
  from removed_endpoints as e
  join removed_groups as g on g.group_id operator(pg_catalog.=) e.group_id
  cross join parley._p_broker as b
  where not e.is_initiator;
  return true;
end
$$;

comment on function parley._p_remove_sides(bigint[], bigint[]) is
'Removes sides of conversations and their groups, each of which had only one of them. The targets leave tombstones.
Arguments: endpoints, of which nothing is left but how far they were received; groups.';

create function parley._p_close_usual_sides(
  endpoint_id bigint, group_id bigint, far_endpoint_id bigint, far_group_id bigint
) returns boolean
language plpgsql
as $$
declare
  v_ids constant pg_catalog.int8[] := array[endpoint_id, far_endpoint_id];
  v_left record;
begin
  -- Our own group END holds; a session that delivers messages that were delayed does not hold that of the far side.
  select
    exists (select from parley._p_retained as r where r.endpoint_id operator(pg_catalog.=) any (v_ids))
      or exists (select from parley._p_transmission as t where t.endpoint_id operator(pg_catalog.=) any (v_ids))
      as is_unusual,
    exists (select from parley._p_message as m where m.endpoint_id operator(pg_catalog.=) any (v_ids))
      as has_messages,
    exists (select from parley._p_alarm as a where a.endpoint_id operator(pg_catalog.=) any (v_ids)) as has_alarms
  into v_left
  from parley._p_conversation_group as g
  where g.group_id operator(pg_catalog.=) far_group_id
  for update skip locked;
  if not found or v_left.is_unusual then
    return false;
  end if;
  if v_left.has_messages then
    delete from parley._p_message as m where m.endpoint_id operator(pg_catalog.=) any (v_ids);
  end if;
  if v_left.has_alarms then
    delete from parley._p_alarm as a where a.endpoint_id operator(pg_catalog.=) any (v_ids);
  end if;
  return parley._p_remove_sides(v_ids, array[group_id, far_group_id]);
end
$$;

comment on function parley._p_close_usual_sides(bigint, bigint, bigint, bigint) is
'Removes both sides of a conversation that are over, each alone in its group, which the caller has locked but for the
group of the far side. Gives false, and has done nothing, where another session holds that, or more is left of them than
messages and alarms.
Arguments: endpoint_id, whose group is group_id; far_endpoint_id, whose group is far_group_id.';
