-- END CONVERSATION of many conversations in one call: what a reader of many groups does at the end of its work.
--
-- The usual ones, whose both sides are in this database, are ended by a few statements, whatever their number. Each of
-- the others is ended as end_conversation does. All are ended, or none.
-- Locks: as END, for all of them: the groups by group_id, then both sides by endpoint_id, FOR NO KEY UPDATE; then those
-- that are ended FOR UPDATE, which waits for their senders alone. The groups of far sides that had ended before are
-- locked only if they are free.

create function parley._p_lock_all_to_end(handles uuid[]) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoints bigint[];
  v_both bigint[];
  v_groups bigint[];
  v_groups_now bigint[];
begin
  loop
    v_groups := array(
      select e.group_id from parley._p_endpoint as e where e.conversation_handle = any (handles) order by e.endpoint_id
    );
    perform from parley._p_conversation_group as g where g.group_id = any (v_groups) order by g.group_id for update;
    select array_agg(e.endpoint_id), array_agg(e.endpoint_id) || array_agg(e.far_endpoint_id),
      coalesce(array_agg(e.group_id order by e.endpoint_id), '{}')
    into v_endpoints, v_both, v_groups_now
    from parley._p_endpoint as e
    where e.conversation_handle = any (handles);
    -- MOVE may have changed a group while we waited. Now it cannot any more (keeps S9).
    exit when v_groups_now = v_groups;
  end loop;
  perform from parley._p_endpoint as e where e.endpoint_id = any (v_both) order by e.endpoint_id for no key update;
  perform from parley._p_endpoint as e where e.endpoint_id = any (v_endpoints) order by e.endpoint_id for update;
  return v_endpoints;
end
$$;

comment on function parley._p_lock_all_to_end(uuid[]) is
'Locks sides of conversations, their groups and their far sides, as far as there are any, and gives the sides. The
caller has to ask for what else has changed meanwhile.';

create function parley._p_end_sides(endpoints bigint[], far_endpoints bigint[]) returns boolean
language plpgsql
as $$
begin
  with discarded_messages as (
    delete from parley._p_message as m where m.endpoint_id operator(pg_catalog.=) any (endpoints)
  ), ended as (
    update parley._p_endpoint as e
    set state = case when e.endpoint_id operator(pg_catalog.=) any (endpoints) then 'DO' else 'DI' end,
      state_since = pg_catalog.clock_timestamp(), destination_lane = null
    where e.endpoint_id operator(pg_catalog.=) any (endpoints operator(pg_catalog.||) far_endpoints)
    returning e.endpoint_id, e.state, e.service_id, e.priority
  )
  insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id)
  select pg_catalog.nextval(q.position_sequence) operator(pg_catalog.*) 1024::pg_catalog.int8, e.endpoint_id,
    case
      when pg_catalog.pg_sequence_last_value(q.wakeup_sequence) operator(pg_catalog.>) 0::pg_catalog.int8
        then parley._p_admit(parley._p_lane(q.queue_id, e.priority), q.wakeup_sequence, null)
      else pg_catalog.clock_timestamp()
    end,
    parley._p_lane(q.queue_id, e.priority), 2
  from ended as e
  join parley._p_service as s on s.service_id operator(pg_catalog.=) e.service_id
  join parley._p_queue as q on q.queue_id operator(pg_catalog.=) s.queue_id
  where e.state operator(pg_catalog.=) 'DI';
  return true;
end
$$;

comment on function parley._p_end_sides(bigint[], bigint[]) is
'Ends sides of conversations, and puts EndDialog into the queues of their far sides. The caller has locked all of them,
and removed their alarms.
Arguments: endpoints, in state CO; far_endpoints, of this database and in state CO.';

create function parley._p_end_usual(caller oid, handles uuid[]) returns uuid[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_locked bigint[];
  v_ending record;
  v_gone record;
  v_id bigint;
begin
  if pg_sequence_last_value('parley._p_broker_switch') is not null or parley._p_keeps_snapshot()
    or pg_sequence_last_value('parley._p_trace_until') > extract(epoch from clock_timestamp()) then
    return null;
  end if;
  v_locked := parley._p_lock_all_to_end(handles);
  select coalesce(array_agg(e.endpoint_id), '{}') as endpoints, coalesce(array_agg(f.endpoint_id), '{}') as fars,
    array_agg(f.endpoint_id) filter (where not f.is_initiator) as targets,
    coalesce(array_agg(e.conversation_handle), '{}') as handles
  into v_ending
  from parley._p_endpoint as e
  join parley._p_endpoint as f on f.endpoint_id = e.far_endpoint_id
  where e.endpoint_id = any (v_locked)
    and e.state = 'CO'
    and f.state = 'CO'
    and f.endpoint_id <> all (v_locked)
    and (
      e.bound_version is null
      or exists (
        select from parley._p_message as m
        where m.endpoint_id = case when e.is_initiator then f.endpoint_id else e.endpoint_id end
      )
      or exists (
        select from parley._p_receive_progress as p
        where p.endpoint_id = case when e.is_initiator then f.endpoint_id else e.endpoint_id end
      )
    )
    and not e.has_delayed
    and pg_has_role(caller, e.owner, 'usage')
    and not exists (select from parley._p_retained as r where r.endpoint_id = e.endpoint_id)
    and not exists (select from parley._p_expedited as x where x.endpoint_id = e.endpoint_id);
  if v_ending.endpoints <> '{}' then
    delete from parley._p_alarm as a where a.endpoint_id = any (v_ending.endpoints);
    found := parley._p_end_sides(v_ending.endpoints, v_ending.fars);
    for v_id in select u.id from unnest(v_ending.targets) as u (id) order by u.id loop
      perform parley._p_expect_no_end(v_id);
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
    where e.endpoint_id = any (v_locked)
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
    delete from parley._p_message as m where m.endpoint_id = any (v_gone.endpoints);
    delete from parley._p_alarm as a where a.endpoint_id = any (v_gone.endpoints);
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
  v_handles := array(
    select u.handle
    from unnest(conversation_handles) with ordinality as u (handle, number)
    group by u.handle
    order by min(u.number)
  );
  v_done := coalesce(parley._p_end_usual(v_caller, v_handles), '{}');
  if cardinality(v_done) < cardinality(v_handles) then
    for v_handle in
      select u.handle
      from unnest(v_handles) with ordinality as u (handle, number)
      left join parley._p_endpoint as e on e.conversation_handle = u.handle
      where u.handle <> all (v_done)
      order by e.endpoint_id nulls first, u.number
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
