-- Messages of which hosts may have died.
--
-- A lease that runs out may have ended with its host, and one of its messages may be to blame: each is suspected, and
-- claimed alone from then on, so that no other is blamed for it. One that was claimed alone and came back like that
-- three times is suspended.

create table parley_flow._p_suspect (
  system text not null,
  lane text not null,
  message_id bigint not null,
  deaths integer not null default 0,
  is_alone boolean not null default false,
  suspected_at timestamptz not null default clock_timestamp(),
  primary key (message_id, lane)
);

comment on table parley_flow._p_suspect is
'Deliveries whose lease ran out. deaths: how often while it was claimed alone; is_alone: it is.';

create function parley_flow._p_take_back() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_system record;
  v_taken integer := 0;
  v_of_system integer;
begin
  for v_system in select h.system from parley_flow._p_host as h order by h.host_id loop
    insert into parley_flow._p_suspect as s (system, lane, message_id)
    select distinct v_system.system, t.lane, t.subject
    from parley_store.take_back_leases(v_system.system) as t
    on conflict on constraint _p_suspect_pkey do update
    set deaths = s.deaths + s.is_alone::integer, is_alone = false, suspected_at = clock_timestamp();
    get diagnostics v_of_system = row_count;
    v_taken := v_taken + v_of_system;
  end loop;
  return v_taken;
end
$$;

comment on function parley_flow._p_take_back() is
'Takes back what hosts have held longer than their leases, and suspects it; gives how many messages.';

create function parley_flow._p_without_suspects(claimed parley_store.claimed_item[])
returns parley_store.claimed_item[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lease record;
  v_back bigint[];
  v_all_back bigint[] := array[]::bigint[];
begin
  for v_lease in
    select c.lease_id, c.lane, array_agg(c.item_id order by c.n) as items,
      array_agg(c.subject order by c.n) as subjects,
      array_position(array_agg(s.message_id is not null order by c.n), true) as first_suspect
    from unnest(claimed) with ordinality
      as c (lease_id, lane, item_id, subject, priority, attempts, since, expires_at, data, last_error, n)
    left join parley_flow._p_suspect as s on s.message_id = c.subject and s.lane = c.lane
    group by c.lease_id, c.lane
  loop
    continue when v_lease.first_suspect is null;
    v_back := v_lease.items[greatest(v_lease.first_suspect, 2):];
    if v_back <> '{}' then
      perform parley_store.release_work(v_lease.lease_id, v_back);
      v_all_back := v_all_back || v_back;
    end if;
    if v_lease.first_suspect = 1 then
      update parley_flow._p_suspect as s
      set is_alone = true
      where s.message_id = v_lease.subjects[1] and s.lane = v_lease.lane;
    end if;
  end loop;
  return array(
    select r.item
    from unnest(claimed) with ordinality
      as c (lease_id, lane, item_id, subject, priority, attempts, since, expires_at, data, last_error, n)
    cross join lateral (
      select row(
        c.lease_id, c.lane, c.item_id, c.subject, c.priority, c.attempts, c.since, c.expires_at, c.data, c.last_error
      )::parley_store.claimed_item as item
    ) as r
    where c.item_id <> all (v_all_back)
    order by c.n
  );
end
$$;

comment on function parley_flow._p_without_suspects(parley_store.claimed_item[]) is
'Leaves of each lease what stands before the first suspect, or that one alone, and gives the rest back; gives what is
left.';

create function parley_flow._p_clear_suspects(subjects bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if exists (select from parley_flow._p_suspect as s) then
    delete from parley_flow._p_suspect as s where s.message_id = any (subjects);
  end if;
end
$$;

comment on function parley_flow._p_clear_suspects(bigint[]) is
'Suspects some messages no longer: an outcome was recorded, so nobody has died of them.';

create function parley_flow._p_forget_suspects() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_forgotten integer;
begin
  delete from parley_flow._p_suspect as s
  where s.suspected_at < clock_timestamp() - interval '1 day'
    and not exists (select from parley_flow._p_message as m where m.message_id = s.message_id);
  get diagnostics v_forgotten = row_count;
  return v_forgotten;
end
$$;

comment on function parley_flow._p_forget_suspects() is 'Forgets suspects that are gone; gives how many.';
