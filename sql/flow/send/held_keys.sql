-- Keys of an order: holding one whose head failed, moving what comes behind it, letting it go.
--
-- Invariants, and what keeps each:
--   nothing of a held key is sent from the shared lane   the claim moves it, and holds the row of the key meanwhile
--   moved items stand behind those that were moved before   one lease of a shared lane is out at a time
--   a key is let go only when its lane is empty   that is found under a lock on its row, which excludes moving claims
-- Locks: the row of _p_held_key, then lanes of the store.

create function parley_flow._p_shared_lane(lane text) returns boolean
language sql immutable
set search_path = pg_catalog, pg_temp
as $$ select lane ~ '^[^#]+#[0-9]{2}$' $$;

comment on function parley_flow._p_shared_lane(text) is
'Reports whether a lane is one that keys of an ordered send port share.';

create function parley_flow._p_hold_key(port parley_flow._p_send_port, system text, lane text, order_key text)
returns parley_flow._p_held_key
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_held parley_flow._p_held_key;
begin
  insert into parley_flow._p_held_key as k (send_port_id, order_key, system, lane)
  values (
    port.send_port_id, coalesce($4, ''), $2,
    case when parley_flow._p_shared_lane($3) then format('%s#%s', $3, $4) else $3 end
  )
  on conflict on constraint _p_held_key_pkey do update set held_at = k.held_at
  returning k.send_port_id, k.order_key, k.system, k.lane, k.attempts, k.is_waiting, k.error, k.held_at into v_held;
  if v_held.lane <> lane and v_held.attempts = 0 then
    perform parley_store.set_lane(system, v_held.lane, lease_max => 1);
    if port.state <> 'Started' then
      perform parley_store.suspend_lane(system, v_held.lane, reason => 'the send port is stopped');
    end if;
  end if;
  return v_held;
end
$$;

comment on function parley_flow._p_hold_key(parley_flow._p_send_port, text, text, text) is
'Holds a key, whose head failed in a lane; gives its row, which is locked.
Arguments: port; system and lane, where the head was claimed; order_key, null where the port has none.';

create function parley_flow._p_move_behind(
  system text, lease_id bigint, lane text, items bigint[], subjects bigint[], data bytea[], priority integer
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley_store.complete_work(lease_id, items);
  perform parley_store.put_work(
    system, array_fill(lane, array[cardinality(items)]), subjects, data => data, priority => priority
  );
end
$$;

comment on function parley_flow._p_move_behind(text, bigint, text, bigint[], bigint[], bytea[], integer) is
'Moves claimed items to the end of the lane of their key, in their order.';

create function parley_flow._p_without_held(system text, claimed parley_store.claimed_item[])
returns parley_store.claimed_item[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_key record;
  v_moved bigint[] := array[]::bigint[];
begin
  for v_key in
    select c.lease_id, k.lane, array_agg(c.item_id order by c.n) as items,
      array_agg(c.subject order by c.n) as subjects,
      array_agg(c.data order by c.n) as data, min(c.priority)::integer as priority
    from unnest(claimed) with ordinality
      as c (lease_id, lane, item_id, subject, priority, attempts, since, expires_at, data, last_error, n)
    join parley_flow._p_send_port as s on s.name = parley_flow._p_port_of_lane(c.lane)
    join lateral (
      select h.lane
      from parley_flow._p_held_key as h
      where h.send_port_id = s.send_port_id and h.order_key = convert_from(c.data, 'UTF8')
      for key share
    ) as k on true
    where parley_flow._p_shared_lane(c.lane)
    group by c.lease_id, k.lane
    order by k.lane
  loop
    perform parley_flow._p_move_behind(
      system, v_key.lease_id, v_key.lane, v_key.items, v_key.subjects, v_key.data, v_key.priority
    );
    v_moved := v_moved || v_key.items;
  end loop;
  if v_moved = '{}' then
    return claimed;
  end if;
  return array(
    select r.item
    from unnest(claimed) with ordinality
      as c (lease_id, lane, item_id, subject, priority, attempts, since, expires_at, data, last_error, n)
    cross join lateral (
      select row(
        c.lease_id, c.lane, c.item_id, c.subject, c.priority, c.attempts, c.since, c.expires_at, c.data, c.last_error
      )::parley_store.claimed_item as item
    ) as r
    where c.item_id <> all (v_moved)
    order by c.n
  );
end
$$;

comment on function parley_flow._p_without_held(text, parley_store.claimed_item[]) is
'Moves claimed items of held keys behind the items of these that are there; gives the other items.';

create function parley_flow._p_let_key_go(send_port_id integer, order_key text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_key parley_flow._p_held_key;
begin
  select * into v_key
  from parley_flow._p_held_key as k
  where k.send_port_id = $1 and k.order_key = $2
  for update;
  if not found then
    return false;
  end if;
  -- A statement after the lock: it sees what those have moved who held the row before.
  if v_key.order_key <> '' and parley_store.has_work(v_key.system, v_key.lane) then
    update parley_flow._p_held_key as k
    set attempts = 0, is_waiting = false
    where k.send_port_id = $1 and k.order_key = $2 and (k.attempts > 0 or k.is_waiting);
    return false;
  end if;
  delete from parley_flow._p_held_key as k where k.send_port_id = $1 and k.order_key = $2;
  return true;
end
$$;

comment on function parley_flow._p_let_key_go(integer, text) is
'Lets a key go of whose lane nothing is left; otherwise its next message begins anew. Reports whether it is gone.';

create function parley_flow._p_with_attempts(system text, done parley_store.claimed_item[])
returns parley_store.claimed_item[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  for i in 1..cardinality(done) loop
    done[i].attempts := done[i].attempts + coalesce((
      select k.attempts from parley_flow._p_held_key as k where k.system = $1 and k.lane = done[i].lane
    ), 0);
  end loop;
  return done;
end
$$;

comment on function parley_flow._p_with_attempts(text, parley_store.claimed_item[]) is
'Gives items with the failed attempts that keys which are held count.';

create function parley_flow._p_let_keys_go(system text, lanes text[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley_flow._p_let_key_go(k.send_port_id, k.order_key)
  from (
    select h.send_port_id, h.order_key
    from parley_flow._p_held_key as h
    where h.system = $1 and h.lane = any ($2)
    order by h.send_port_id, h.order_key
  ) as k;
end
$$;

comment on function parley_flow._p_let_keys_go(text, text[]) is
'Lets the keys of some lanes go, whose heads have been sent.';

create function parley_flow._p_sweep_held_keys() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_key record;
  v_gone integer := 0;
begin
  for v_key in
    select k.send_port_id, k.order_key
    from (
      select h.send_port_id, h.order_key, h.system, h.lane from parley_flow._p_held_key as h order by random() limit 200
    ) as k
    where not parley_store.has_work(k.system, k.lane)
    order by k.send_port_id, k.order_key
  loop
    v_gone := v_gone + parley_flow._p_let_key_go(v_key.send_port_id, v_key.order_key)::integer;
  end loop;
  return v_gone;
end
$$;

comment on function parley_flow._p_sweep_held_keys() is
'Lets keys go of whose lanes nothing is left, because an operator removed it, say; gives how many. It asks for some of
them at a time.';
