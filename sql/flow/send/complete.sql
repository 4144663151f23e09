-- The outcome of sending: deliveries end, and messages with the last of theirs.

create function parley_flow._p_require_all(
  host parley_flow._p_host, done parley_store.claimed_item[], leases bigint[], items bigint[]
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_missing record;
begin
  if cardinality(leases) <> cardinality(items) then
    found := parley_flow._p_raise('lengths', 'leases', cardinality(leases)::text, 'items', cardinality(items)::text);
  end if;
  if cardinality(done) < cardinality(items) then
    select u.lease_id, u.item_id into v_missing
    from unnest(leases, items) as u (lease_id, item_id)
    where not exists (
      select from unnest(done) as d where d.lease_id = u.lease_id and d.item_id = u.item_id
    )
    limit 1;
    found := parley_flow._p_raise(
      'lease', coalesce(v_missing.item_id::text, 'null'), host.name, coalesce(v_missing.lease_id::text, 'null')
    );
  end if;
  return true;
end
$$;

comment on function parley_flow._p_require_all(
  parley_flow._p_host, parley_store.claimed_item[], bigint[], bigint[]
) is
'Refuses outcomes of items that are not in the hands of the host.
Errors: PF007, PF010.';

create function parley_flow._p_sent_of(ids bigint[], attempts integer[], details jsonb[])
returns parley_flow._p_sent[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
  return array(
    select row(
      o.block, min(o.message_id), o.location_id, o.receive_port_id, o.published_by, o.message_type,
      array_agg(o.message_id), array_agg(o.received), array_agg(o.size), array_agg(o.attempts),
      array_agg(o.interchange_id), array_agg(o.parent_id), array_agg(o.details)
    )::parley_flow._p_sent
    from (
      select (m.message_id - 1) / 64 as block, m.message_id, m.location_id, m.receive_port_id, m.published_by,
        m.message_type, (extract(epoch from m.received_at) * 1000)::bigint as received, m.size, u.attempts,
        coalesce(m.interchange_id, 0) as interchange_id, coalesce(m.parent_id, 0) as parent_id, u.details
      from unnest(ids, attempts, details) as u (id, attempts, details)
      join parley_flow._p_message as m on m.message_id = u.id
      order by block, m.location_id, m.receive_port_id, m.published_by, m.message_type, m.message_id
    ) as o
    group by o.block, o.location_id, o.receive_port_id, o.published_by, o.message_type
  );
end
$$;

comment on function parley_flow._p_sent_of(bigint[], integer[], jsonb[]) is
'Gives what tracking has of messages that are there, those of a block that are alike together.';

create function parley_flow._p_end_sent(
  host text, send_port text, ids bigint[], attempts integer[], details jsonb[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_keeps constant boolean := (select c.keeps_finished from parley_flow._p_configuration as c);
  v_is_tracked constant boolean := (select s.is_tracked from parley_flow._p_send_port as s where s.name = send_port);
  v_gone bigint[];
  v_holders bigint[];
begin
  if v_is_tracked then
    perform parley_flow._p_track_sent(host, send_port, parley_flow._p_sent_of(ids, attempts, details));
  end if;
  -- Most messages have one delivery, and go with it.
  with gone as (
    delete from parley_flow._p_message as m
    where m.message_id = any (ids) and m.deliveries <= 1 and not v_keeps
    returning m.message_id, m.content_id is not null or m.parts is not null as has_content
  )
  select array_agg(g.message_id), array_agg(g.message_id) filter (where g.has_content) into v_gone, v_holders
  from gone as g;
  if v_holders is not null then
    perform parley_store.release_content('flow', v_holders);
  end if;
  if coalesce(cardinality(v_gone), 0) < cardinality(ids) then
    perform parley_flow._p_end_deliveries(
      array(select u.id from unnest(ids) as u (id) where u.id <> all (coalesce(v_gone, '{}'))), send_port
    );
  end if;
end
$$;

comment on function parley_flow._p_end_sent(text, text, bigint[], integer[], jsonb[]) is
'Ends deliveries that a port has sent: messages go with their last one, and what was sent is tracked.
Arguments: host; send_port; ids, attempts and details, an element for each.';

create function parley_flow._p_complete(
  host text, leases bigint[], items bigint[], details jsonb[] default null,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_host constant parley_flow._p_host := parley_flow._p_require_host(parley.caller_role(caller), host);
  v_done parley_store.claimed_item[];
  v_lane record;
begin
  found := parley_flow._p_require_read_committed();
  v_done := array(select d from parley_store.complete_leased(v_host.system, leases, items) as d);
  found := parley_flow._p_require_all(v_host, v_done, leases, items);
  perform parley_flow._p_clear_suspects(array(select d.subject from unnest(v_done) as d));
  if exists (select from parley_flow._p_held_key as k where k.system = v_host.system) then
    v_done := parley_flow._p_with_attempts(v_host.system, v_done);
    perform parley_flow._p_let_keys_go(v_host.system, array(select distinct d.lane from unnest(v_done) as d));
  end if;
  for v_lane in
    select d.lane, array_agg(d.subject order by d.item_id) as ids,
      array_agg(d.attempts + 1 order by d.item_id) as attempts,
      case when details is not null then array_agg(details[array_position(items, d.item_id)] order by d.item_id) end
        as details
    from unnest(v_done) as d
    group by d.lane
    order by d.lane
  loop
    perform parley_flow._p_end_sent(
      v_host.name, parley_flow._p_port_of_lane(v_lane.lane), v_lane.ids, v_lane.attempts, v_lane.details
    );
  end loop;
  perform parley_flow._p_count(v_host.name, array['documents_processed'], array[cardinality(v_done)]);
  return cardinality(v_done);
end
$$;

comment on function parley_flow._p_complete(text, bigint[], bigint[], jsonb[], parley.caller) is
'Ends deliveries that were sent, in this transaction: with what it writes besides, such as a row of the user''s, exactly
once. Gives how many.
Arguments: host; leases and items, an element for each; details, null or one for each, for tracking.
Errors: PF001, PF007 one is not in the hands of this host: roll back, PF010, PF016.';

create function parley_flow._p_end_resubmission(
  host parley_flow._p_host, location text, lease_id bigint, item_id bigint
) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_done parley_store.claimed_item[] := array(
    select d from parley_store.complete_leased(host.system, array[$3], array[$4]) as d
  );
begin
  found := parley_flow._p_require_all(host, v_done, array[$3], array[$4]);
  if v_done[1].lane <> '##' || location then
    found := parley_flow._p_raise('lease', $4::text, host.name, $3::text);
  end if;
  perform parley_flow._p_clear_suspects(array[v_done[1].subject]);
  perform parley_flow._p_end_deliveries(array[v_done[1].subject], null);
  return v_done[1].subject;
end
$$;

comment on function parley_flow._p_end_resubmission(parley_flow._p_host, text, bigint, bigint) is
'Ends the wait of a message that was resubmitted into a location; gives its number.
Errors: PF007.';

create function parley_flow._p_release(
  host text, lease_id bigint, items bigint[] default null, caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_host constant parley_flow._p_host := parley_flow._p_require_host(parley.caller_role(caller), host);
  v_items parley_store.claimed_item[] := parley_flow._p_held_items(v_host, lease_id, items);
begin
  perform parley_flow._p_clear_suspects(array(select i.subject from unnest(v_items) as i));
  return parley_store.release_work(lease_id, array(select i.item_id from unnest(v_items) as i));
end
$$;

comment on function parley_flow._p_release(text, bigint, bigint[], parley.caller) is
'Gives messages back that were not tried, to the front of their lane and in their order; gives how many.
Arguments: host; lease_id; items, null for all that are left of the lease.
Errors: PF001, PF007 one is not in the hands of this host.';

create function parley_flow._p_held_items(host parley_flow._p_host, lease_id bigint, items bigint[])
returns parley_store.claimed_item[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_items parley_store.claimed_item[];
begin
  found := parley_flow._p_require_read_committed();
  -- So that it does not run out meanwhile, and no other session of the host records another outcome.
  perform parley_store.lock_lanes(host.system, array[lease_id], '{}');
  v_items := array(
    select r.item
    from parley_store.leased_items(host.system, array[lease_id]) with ordinality
      as i (lease_id, lane, item_id, subject, priority, attempts, since, expires_at, data, last_error, n)
    cross join lateral (
      select row(
        i.lease_id, i.lane, i.item_id, i.subject, i.priority, i.attempts, i.since, i.expires_at, i.data, i.last_error
      )::parley_store.claimed_item as item
    ) as r
    where items is null or i.item_id = any (items)
    order by i.n
  );
  if items is not null then
    found := parley_flow._p_require_all(
      host, v_items, array_fill(lease_id, array[cardinality(items)]), items
    );
  elsif v_items = '{}' then
    found := parley_flow._p_raise('lease', 'of any number', host.name, coalesce(lease_id::text, 'null'));
  end if;
  return v_items;
end
$$;

comment on function parley_flow._p_held_items(parley_flow._p_host, bigint, bigint[]) is
'Gives items that are in the hands of a host, in their order, and keeps their lease.
Arguments: host; lease_id; items, null for all.
Errors: PF007, PF010, PF016.';
