-- Conversations that the far side cannot take from for now, while its server is well.
--
-- Its queue is off, it does not know the service, nobody there is served by that name: such a conversation is parked,
-- so that the others go on and nothing of it is sent in vain. It leaves the lane, and what it sends from then on waits
-- in _p_transmission. When its time has come it is classified again, which may find another route, and what it had in
-- transit is sent again first.
-- Locks: the endpoint's row FOR UPDATE SKIP LOCKED. When a sender is under way, the lane is left as it is and passed
-- over until the next time.

create function parley._p_park(endpoint_id bigint, destination_id integer, status text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  -- It may have moved; the daemon searches again.
  delete from parley._p_neighbour_service as n
  using parley._p_endpoint as e, parley._p_destination as d
  where e.endpoint_id = _p_park.endpoint_id
    and d.destination_id = _p_park.destination_id
    and n.service_name = e.far_service
    and n.address = d.address;
  insert into parley._p_parked as p (endpoint_id, destination_id, status, attempts, due_at)
  values (_p_park.endpoint_id, _p_park.destination_id, _p_park.status, 1, clock_timestamp() + parley._p_back_off(1))
  on conflict on constraint _p_parked_pkey do update
  set status = excluded.status, attempts = p.attempts + 1,
    due_at = clock_timestamp() + parley._p_back_off(p.attempts + 1);
  select * into v_endpoint
  from parley._p_endpoint as e
  where e.endpoint_id = _p_park.endpoint_id and e.destination_id is not null
  for update skip locked;
  if found then
    perform parley._p_unbind(v_endpoint, status);
  end if;
end
$$;

comment on function parley._p_park(bigint, integer, text) is
'Parks a conversation for 4 to 64 seconds, longer each time, with the reason.
Arguments: endpoint_id; destination_id that it had; status, for the transmission queue.';

create function parley._p_unpark(destination_id integer, rows_max integer) returns setof parley._p_run
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_parked parley._p_parked;
  v_endpoint parley._p_endpoint;
begin
  for v_parked in
    select p.*
    from parley._p_parked as p
    where p.destination_id = _p_unpark.destination_id and p.due_at <= clock_timestamp()
    order by p.due_at
    limit 100
    for update skip locked
  loop
    select * into v_endpoint
    from parley._p_endpoint as e
    where e.endpoint_id = v_parked.endpoint_id
    for update skip locked;
    if not found then
      update parley._p_parked as p
      set due_at = clock_timestamp() + interval '1 second'
      where p.endpoint_id = v_parked.endpoint_id;
      continue;
    end if;
    if v_endpoint.destination_id is null and parley._p_is_at_home(v_endpoint) then
      -- Before anything of it is sent again. When it cannot come back it goes on below.
      perform parley._p_deliver_delayed_of(v_endpoint.endpoint_id);
      continue when not exists (select from parley._p_parked as p where p.endpoint_id = v_parked.endpoint_id);
    end if;
    -- Its row stays, for the count of attempts, until the far side has taken something.
    update parley._p_parked as p set due_at = 'infinity' where p.endpoint_id = v_parked.endpoint_id;
    if v_endpoint.destination_id is null then
      perform parley._p_bind(v_endpoint);
    end if;
    update parley._p_transit as t
    set destination_id = e.destination_id
    from parley._p_endpoint as e
    where e.endpoint_id = v_parked.endpoint_id
      and t.endpoint_id = e.endpoint_id
      and e.destination_id is not null
      and t.destination_id <> e.destination_id;
    return query
    select r.*
    from (
      select array_agg(o.endpoint_id order by o.first_sequence) as endpoint_ids,
        array_agg(o.first_sequence order by o.first_sequence) as sequences
      from (
        select t.endpoint_id, t.first_sequence
        from parley._p_transit as t
        where t.endpoint_id = v_parked.endpoint_id and t.destination_id = _p_unpark.destination_id
        order by t.first_sequence
        limit rows_max
      ) as o
    ) as c
    cross join lateral parley._p_runs(c.endpoint_ids, c.sequences) as r;
  end loop;
end
$$;

comment on function parley._p_unpark(integer, integer) is
'Lets conversations of a destination that were parked try again when their time has come; gives what they have in
transit.';
