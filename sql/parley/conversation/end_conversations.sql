-- END CONVERSATION of many conversations in one call: what a reader of many groups does at the end of its work.
--
-- The usual ones, whose both sides are in this database, are ended by a few statements, whatever their number. Each of
-- the others is ended as end_conversation does. All are ended, or none.
-- Locks: as END, for all of them: the groups by group_id, then both sides by endpoint_id, FOR NO KEY UPDATE; then those
-- that are ended FOR UPDATE, which waits for their senders alone. The groups of far sides that had ended before are
-- locked only if they are free.

create function parley._p_lock_all_to_end(handles uuid[], out endpoints bigint[], out groups bigint[])
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_both bigint[];
begin
  select array_agg(e.group_id), array_agg(e.endpoint_id), array_agg(e.endpoint_id) || array_agg(e.far_endpoint_id)
  into groups, endpoints, v_both
  from parley._p_endpoint as e
  where e.conversation_handle = any (handles);
  perform from parley._p_conversation_group as g where g.group_id = any (groups) order by g.group_id for update;
  perform from parley._p_endpoint as e where e.endpoint_id = any (v_both) order by e.endpoint_id for no key update;
  perform from parley._p_endpoint as e where e.endpoint_id = any (endpoints) order by e.endpoint_id for update;
end
$$;

comment on function parley._p_lock_all_to_end(uuid[]) is
'Locks sides of conversations, their groups and their far sides, as far as there are any. The caller has to ask for what
has changed meanwhile.';

create function parley._p_end_usual(caller oid, handles uuid[]) returns uuid[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_locked record;
  v_ending record;
  v_gone record;
  v_id bigint;
begin
  if pg_sequence_last_value('parley._p_broker_switch') is not null or parley._p_keeps_snapshot()
    or pg_sequence_last_value('parley._p_trace_until') > extract(epoch from clock_timestamp()) then
    return null;
  end if;
  v_locked := parley._p_lock_all_to_end(handles);
  -- A group that MOVE has given to one of them meanwhile is not locked.
  select coalesce(array_agg(e.endpoint_id), '{}') as endpoints, coalesce(array_agg(f.endpoint_id), '{}') as fars,
    array_agg(f.endpoint_id) filter (where not f.is_initiator) as targets,
    coalesce(array_agg(e.conversation_handle), '{}') as handles
  into v_ending
  from parley._p_endpoint as e
  join parley._p_endpoint as f on f.endpoint_id = e.far_endpoint_id
  where e.endpoint_id = any (v_locked.endpoints)
    and e.group_id = any (v_locked.groups)
    and e.state = 'CO'
    and f.state = 'CO'
    and f.endpoint_id <> all (v_locked.endpoints)
    and not e.has_delayed
    and pg_has_role(caller, e.owner, 'usage')
    and not exists (select from parley._p_retained as r where r.endpoint_id = e.endpoint_id)
    and not exists (select from parley._p_expedited as x where x.endpoint_id = e.endpoint_id);
  if v_ending.endpoints <> '{}' then
    found := parley._p_end_sides(v_ending.endpoints, v_ending.fars);
    for v_id in select u.id from unnest(v_ending.targets) as u (id) order by u.id loop
      perform parley._p_set_alarm(v_id, 'abandoned', clock_timestamp() + make_interval(secs => b.abandoned_seconds))
      from parley._p_broker as b;
    end loop;
  end if;
  select coalesce(array_agg(o.endpoint_id) || array_agg(o.far_id), '{}') as endpoints,
    array_agg(o.group_id) || array_agg(o.far_group_id) as groups,
    coalesce(array_agg(o.conversation_handle), '{}') as handles
  into v_gone
  from (
    select e.endpoint_id, f.endpoint_id as far_id, e.group_id, g.group_id as far_group_id, e.conversation_handle
    from parley._p_endpoint as e
    join parley._p_endpoint as f on f.endpoint_id = e.far_endpoint_id
    join parley._p_conversation_group as g on g.group_id = f.group_id
    where e.endpoint_id = any (v_locked.endpoints)
      and e.group_id = any (v_locked.groups)
      and e.state = 'DI'
      and f.state = 'DO'
      and e.is_plain
      and f.is_plain
      and not e.has_delayed
      and not f.has_delayed
      and pg_has_role(caller, e.owner, 'usage')
      and not exists (select from parley._p_retained as r where r.endpoint_id in (e.endpoint_id, f.endpoint_id))
      and not exists (select from parley._p_expedited as x where x.endpoint_id in (e.endpoint_id, f.endpoint_id))
      and not exists (select from parley._p_transmission as t where t.endpoint_id in (e.endpoint_id, f.endpoint_id))
    for update of g skip locked
  ) as o;
  if v_gone.endpoints <> '{}' then
    found := parley._p_remove_sides(v_gone.endpoints, v_gone.groups);
  end if;
  return v_ending.handles || v_gone.handles;
end
$$;

comment on function parley._p_end_usual(oid, uuid[]) is
'Ends those of some conversations about which nothing is unusual, and gives their handles. It has locked all of them to
end them.
Arguments: caller; handles, each once.';

create function parley.end_conversations(
  conversation_handles uuid[], caller parley.caller default current_user
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_handles uuid[];
  v_done uuid[];
  v_handle uuid;
begin
  if array_position(conversation_handles, null) is not null then
    found := parley._p_raise(8418, 'null');
  end if;
  v_handles := array(select distinct u.handle from unnest(conversation_handles) as u (handle));
  v_done := coalesce(parley._p_end_usual(v_caller, v_handles), '{}');
  if cardinality(v_done) < cardinality(v_handles) then
    for v_handle in
      select u.handle
      from unnest(v_handles) as u (handle)
      left join parley._p_endpoint as e on e.conversation_handle = u.handle
      where u.handle <> all (v_done)
      order by e.endpoint_id nulls first
    loop
      found := parley._p_end(v_caller, v_handle, 2, null);
    end loop;
  end if;
  return cardinality(v_handles);
end
$$;

comment on function parley.end_conversations(uuid[], parley.caller) is
'Ends this side of several conversations, as end_conversation ends one, in one call: all of them or, when one cannot be
ended, none. A reader of many groups ends what it has received by
select parley.end_conversations(array_agg(r.conversation_handle)) from parley.receive(queue, groups => 100) as r.
Returns how many it has ended.
Arguments: conversation_handles, of which one that is repeated counts once; an empty list, or null, ends nothing.
Errors: those of end_conversation; 8418 also for a list that holds a null.
Source: spec 4.6.';
