-- Deliveries that are where their send port has its lanes no more: moved there, or suspended where it is gone.
--
-- Definitions change only while no message waits for the port. But a transaction that published before the change may
-- be open during it, or see an older snapshot: what it puts comes into the lanes of before when it commits. A claim
-- moves what it meets of that, and maintenance what no host of before would claim. Their place in an order is the end.
-- Locks: those of completing items and putting them.

create function parley_flow._p_is_stray(system text, lane text) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when starts_with(lane, '##') then not exists (
      select
      from parley_flow._p_receive_location as l
      join parley_flow._p_host as h on h.host_id = l.host_id
      where l.name = substr($2, 3) and h.system = $1
    )
    else not exists (
      select
      from parley_flow._p_send_port as s
      join parley_flow._p_host as h on h.host_id = s.host_id
      where s.name = split_part($2, '#', 1) and h.system = $1
        -- Of a port without an order any lane will do: it lets those that it had before go too.
        and case when s.name = $2 then s.order_key is null else s.order_key is not null or not s.is_ordered end
    )
  end
$$;

comment on function parley_flow._p_is_stray(text, text) is
'Reports whether a lane is none that its send port, or its location, has: that is gone, or has another host or order.';

create function parley_flow._p_suspend_strays(claimed parley_store.claimed_item[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_item parley_store.claimed_item;
  v_is_receiving constant boolean := starts_with(claimed[1].lane, '##');
  v_name constant text := case
    when v_is_receiving then substr(claimed[1].lane, 3) else split_part(claimed[1].lane, '#', 1)
  end;
  v_code constant text := case when v_is_receiving then 'receive.location-gone' else 'send.port-gone' end;
begin
  foreach v_item in array claimed loop
    perform parley_flow._p_suspend_message(
      v_item.subject, case when v_is_receiving then 'RECEIVE' else 'SEND' end,
      case when v_is_receiving then v_name end, case when not v_is_receiving then v_name end, v_code,
      format(
        '%s "%s" was dropped while the message was on its way to it',
        case when v_is_receiving then 'receive location' else 'send port' end, v_name
      ), true, v_item.attempts
    );
    perform parley_flow._p_track_one(
      'SUSPEND', '', case when v_is_receiving then '' else v_name end, v_item.subject,
      jsonb_build_object('code', v_code)
    );
  end loop;
  perform parley_flow._p_count('', array['documents_suspended'], array[cardinality(claimed)]);
end
$$;

comment on function parley_flow._p_suspend_strays(parley_store.claimed_item[]) is
'Suspends messages of one lane whose send port or location is gone.';

create function parley_flow._p_move_strays(lease_id bigint, claimed parley_store.claimed_item[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane constant text := claimed[1].lane;
  v_ids constant bigint[] := array(
    select c.subject
    from unnest(claimed) with ordinality
      as c (lease_id, lane, item_id, subject, priority, attempts, since, expires_at, data, last_error, n)
    order by c.n
  );
  v_system text;
  v_port integer;
begin
  perform parley_store.complete_work(lease_id, array(select c.item_id from unnest(claimed) as c));
  if starts_with(v_lane, '##') then
    select h.system into v_system
    from parley_flow._p_receive_location as l
    join parley_flow._p_host as h on h.host_id = l.host_id
    where l.name = substr(v_lane, 3);
    if found then
      perform parley_store.put_work(v_system, array_fill(v_lane, array[cardinality(v_ids)]), v_ids);
      return;
    end if;
  else
    select s.send_port_id into v_port
    from parley_flow._p_send_port as s
    where s.name = split_part(v_lane, '#', 1);
    if found then
      perform parley_flow._p_deliver(
        array_agg(m.message_id order by m.n), array_agg(m.promoted order by m.n),
        array_agg(m.place::integer order by m.n), array_fill(v_port, array[count(*)::integer])
      )
      from (
        select u.n, o.message_id, o.promoted, row_number() over (order by u.n) as place
        from unnest(v_ids) with ordinality as u (id, n)
        join parley_flow._p_message as o on o.message_id = u.id
      ) as m
      having count(*) > 0;
      return;
    end if;
  end if;
  perform parley_flow._p_suspend_strays(claimed);
end
$$;

comment on function parley_flow._p_move_strays(bigint, parley_store.claimed_item[]) is
'Moves items of one lane, which were claimed under a lease, to where the send port or the location has its lanes now, in
their order; suspends their messages where it is gone.';

create function parley_flow._p_without_strays(system text, claimed parley_store.claimed_item[])
returns parley_store.claimed_item[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lease record;
  v_gone bigint[] := array[]::bigint[];
begin
  for v_lease in
    select c.lease_id, c.lane, array_agg(row(
        c.lease_id, c.lane, c.item_id, c.subject, c.priority, c.attempts, c.since, c.expires_at, c.data, c.last_error
      )::parley_store.claimed_item order by c.n) as items, array_agg(c.item_id) as numbers
    from unnest(claimed) with ordinality
      as c (lease_id, lane, item_id, subject, priority, attempts, since, expires_at, data, last_error, n)
    group by c.lease_id, c.lane
    order by c.lane, c.lease_id
  loop
    if parley_flow._p_is_stray(system, v_lease.lane) then
      perform parley_flow._p_move_strays(v_lease.lease_id, v_lease.items);
    elsif parley_flow._p_is_closed(v_lease.lane) then
      perform parley_store.release_work(v_lease.lease_id, v_lease.numbers);
      perform parley_flow._p_let_lane(system, v_lease.lane, false);
    else
      continue;
    end if;
    v_gone := v_gone || v_lease.numbers;
  end loop;
  return array(
    select row(
      c.lease_id, c.lane, c.item_id, c.subject, c.priority, c.attempts, c.since, c.expires_at, c.data, c.last_error
    )::parley_store.claimed_item
    from unnest(claimed) with ordinality
      as c (lease_id, lane, item_id, subject, priority, attempts, since, expires_at, data, last_error, n)
    where c.item_id <> all (v_gone)
    order by c.n
  );
end
$$;

comment on function parley_flow._p_without_strays(text, parley_store.claimed_item[]) is
'Moves what was claimed of lanes that are none of their port any more, and gives back what was claimed for a port that
is not started; gives the rest.';

create function parley_flow._p_is_closed(lane text) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select from parley_flow._p_send_port as s where s.name = split_part($1, '#', 1) and s.state <> 'Started'
  )
$$;

comment on function parley_flow._p_is_closed(text) is
'Reports whether a lane is of a send port that is not started: one that was removed while it was empty is open when a
transaction with an old snapshot makes it anew.';

create function parley_flow._p_gather_strays() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane record;
  v_items parley_store.claimed_item[];
  v_moved integer := 0;
begin
  for v_lane in
    select l.system, l.lane
    from parley_store.lanes as l
    where l.system ~ '^flow_[0-9]+$' and parley_flow._p_is_stray(l.system, l.lane)
      and parley_store.has_work(l.system, l.lane)
    order by l.lane_id
    limit 1000
  loop
    perform parley_store.resume_lane(v_lane.system, v_lane.lane);
    perform parley_store.retry_lane(v_lane.system, v_lane.lane);
    v_items := array(
      select c from parley_store.claim_lane(v_lane.system, v_lane.lane, 1000, '1 minute', 'maintenance') as c
    );
    if v_items <> '{}' then
      perform parley_flow._p_move_strays(v_items[1].lease_id, v_items);
      v_moved := v_moved + cardinality(v_items);
    end if;
  end loop;
  return v_moved;
end
$$;

comment on function parley_flow._p_gather_strays() is
'Moves deliveries to where their ports have their lanes now, also those that no host would claim; gives how many.';
