-- Instances of orchestrations, and what they wait for: subscriptions by values that only their messages have.
--
-- A wait is a receive that an instance may still reach. It has equalities, of which the first is found by its hash, and
-- predicates that a message has to satisfy besides. Publishing looks for waits in the statement that follows its match
-- of ports; a host that matches by itself knows nothing of them. Whether the instance is still there, and whether it
-- takes the message, is decided when its host claims the delivery (flow/process/begin.sql).
--
-- Invariants, and what keeps each:
--   a message goes to an instance once   it is found by any of its waits, and delivered to the instance
--   a message of a convoy is decided about once   an orchestration that gets it by an activation gets it by no wait
--   who waits for nothing costs nothing   properties that no wait has ever named are not asked for
-- Locks: none; publishing only reads.
-- Cost: of a batch without any such property one probe; otherwise one of an index for each property of a message.

create sequence parley_flow._p_instance_id;

create table parley_flow._p_instance (
  instance_id bigint primary key default nextval('parley_flow._p_instance_id'),
  send_port_id integer not null,
  version integer not null,
  status text not null check (status in ('NEW', 'WAITING', 'RETRYING', 'SUSPENDED')),
  convoy_key text,
  parent_id bigint,
  began_at timestamptz not null default clock_timestamp(),
  changed_at timestamptz not null default clock_timestamp(),
  steps bigint not null default 0,
  attempts integer not null default 0,
  passed jsonb not null default '{}',
  stands_at text[],
  fault jsonb,
  state text
) with (fillfactor = 80);

comment on table parley_flow._p_instance is
'Instances of orchestrations that are not over. NEW: its first step has not succeeded; RETRYING: a step failed, and is
tried again; parent_id: the message that began it; steps: persistence points; attempts: how often the step at which it
stands has failed; passed: the shapes that it went through, {path: times}; stands_at: those at
which it stands; state: as its program left it.';

create index _p_instance_port on parley_flow._p_instance (send_port_id, status);
create index _p_instance_convoy on parley_flow._p_instance (send_port_id, convoy_key) where convoy_key is not null;

create table parley_flow._p_instance_to_end (
  instance_id bigint primary key
);

comment on table parley_flow._p_instance_to_end is
'Instances that maintenance ends, because a change of their orchestration says so.';

create table parley_flow._p_instance_wait (
  instance_id bigint not null,
  wait text not null,
  receive text not null,
  hash bigint not null,
  property text not null,
  value text not null,
  others jsonb,
  filter jsonb,
  is_open boolean not null,
  primary key (instance_id, wait)
);

comment on table parley_flow._p_instance_wait is
'Receives that instances may still reach. property and value, canonical: by which it is found; others: equalities
besides, {"property": "canonical text"}; filter: predicates besides; is_open: the instance stands there.';

create index _p_instance_wait_hash on parley_flow._p_instance_wait (hash);

create table parley_flow._p_awaited_property (
  property text primary key,
  type text not null
);

comment on table parley_flow._p_awaited_property is
'The properties by which instances have ever waited. None is removed: a wait could begin at the same time.';

create function parley_flow._p_matches_all(promoted jsonb, others jsonb, filter jsonb) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select not exists (
    select
    from jsonb_each_text(others) as o (property, value)
    left join parley_flow._p_property as y on y.name = o.property
    where parley_flow._p_canonical(promoted ->> o.property, coalesce(y.type, 'text')) is distinct from o.value
  ) and not exists (
    select
    from jsonb_array_elements(filter) as p (predicate)
    left join parley_flow._p_property as y on y.name = p.predicate ->> 'property'
    where parley_flow._p_satisfies(
      parley_flow._p_canonical(promoted ->> (p.predicate ->> 'property'), coalesce(y.type, 'text')),
      p.predicate ->> 'operator',
      case
        when p.predicate ->> 'operator' not in ('in', 'exists')
          then parley_flow._p_canonical(p.predicate ->> 'value', coalesce(y.type, 'text'))
      end,
      case
        when p.predicate ->> 'operator' = 'in'
          then array(
            select parley_flow._p_canonical(e.value, coalesce(y.type, 'text'))
            from jsonb_array_elements_text(p.predicate -> 'value') as e (value)
          )
      end, coalesce(y.type, 'text')
    ) is not true
  )
$$;

comment on function parley_flow._p_matches_all(jsonb, jsonb, jsonb) is
'Reports whether a message with these promoted properties satisfies what a wait asks for besides its first equality.';

create function parley_flow._p_match_waits(promoted jsonb[]) returns table (
  n integer, instance_id bigint, send_port_id integer
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  with facts as materialized (
    select u.n::integer as n, u.promoted, a.property,
      parley_flow._p_canonical(u.promoted ->> a.property, a.type) as value
    from parley_flow._p_awaited_property as a
    cross join unnest(promoted) with ordinality as u (promoted, n)
    where u.promoted ->> a.property is not null
  )

  select distinct f.n, w.instance_id, i.send_port_id
  from facts as f
  cross join lateral (
    select o.instance_id, o.property, o.value, o.others, o.filter
    from parley_flow._p_instance_wait as o
    where o.hash = parley_flow._p_hash(f.property, f.value)
    offset 0
  ) as w
  join parley_flow._p_instance as i on i.instance_id = w.instance_id
  where w.property = f.property and w.value = f.value
    and (w.others is null and w.filter is null or parley_flow._p_matches_all(f.promoted, w.others, w.filter));
end
$$;

comment on function parley_flow._p_match_waits(jsonb[]) is
'Gives the instances that wait for some messages, whose promoted properties are given; n counts them from 1 on. Of the
waits that this snapshot shows: whether an instance is over meanwhile is decided when the delivery is claimed.';

create function parley_flow._p_match_failed_waits(promoted jsonb, written jsonb) returns table (
  instance_id bigint, send_port_id integer
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_all constant jsonb := coalesce(written, '{}') || promoted;
begin
  if not promoted ? 'ErrorReport.ErrorType' then
    return;
  end if;
  return query
  with facts as materialized (
    select a.property, parley_flow._p_canonical(v_all ->> a.property, a.type) as value
    from parley_flow._p_awaited_property as a
    where v_all ->> a.property is not null
  )

  select distinct w.instance_id, i.send_port_id
  from facts as f
  cross join lateral (
    select o.instance_id, o.property, o.value, o.others, o.filter
    from parley_flow._p_instance_wait as o
    where o.hash = parley_flow._p_hash(f.property, f.value)
    offset 0
  ) as w
  join parley_flow._p_instance as i on i.instance_id = w.instance_id
  where w.property = f.property and w.value = f.value
    and exists (
      select
      from (
        select w.property as name
        union all
        select o.name from jsonb_object_keys(w.others) as o (name)
        union all
        select p.predicate ->> 'property' from jsonb_array_elements(w.filter) as p (predicate)
      ) as a
      where starts_with(a.name, 'ErrorReport.')
    )
    and parley_flow._p_matches_all(v_all, w.others, w.filter);
end
$$;

comment on function parley_flow._p_match_failed_waits(jsonb, jsonb) is
'Gives the instances that wait for a failed message: those whose receive asks for an ErrorReport property. Nothing else
of such a message is promoted, but a receive that asks for it has its values of before compared too, by which it belongs
to its instance.
Arguments: promoted and written, the properties of the failed message.';

create function parley_flow._p_waiting_for(
  promoted jsonb[], matched_ns integer[], matched_ports integer[], publishers bigint[], are_failed boolean[],
  out ns integer[], out instances bigint[], out ports integer[]
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select array_agg(w.n order by w.n, w.instance_id), array_agg(w.instance_id order by w.n, w.instance_id),
    array_agg(w.send_port_id order by w.n, w.instance_id)
  from parley_flow._p_match_waits(promoted) as w
  where are_failed[w.n] is not true and w.instance_id is distinct from publishers[w.n] and not exists (
    select
    from unnest(matched_ns, matched_ports) as m (n, port)
    join parley_flow._p_send_port as s on s.send_port_id = m.port
    where m.n = w.n and m.port = w.send_port_id and s.convoy is not null
  )
$$;

comment on function parley_flow._p_waiting_for(jsonb[], integer[], integer[], bigint[], boolean[]) is
'Gives which messages of a batch go to which instances that wait, of which orchestrations; null: none does. A message
of a convoy is not given: its lane decides.
Arguments: promoted properties; matched_ns and matched_ports, which of the messages, from 1 on, goes to which
subscriber; publishers, null or the instance of each; are_failed, those that go to no instance.';

create function parley_flow._p_lane_of_instance(orchestration text, key text) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$ select parley_flow._p_lane_of_port(orchestration, key) $$;

comment on function parley_flow._p_lane_of_instance(text, text) is
'Gives the lane of what is done one after the other: all of a key. Instances and convoys share 16 lanes with one lease
each, since a lane for each would cost a token and a lease for each message.
Arguments: orchestration; key: i and the number of an instance, or k and the key of a convoy.';

create function parley_flow._p_convoy_key(promoted jsonb, convoy text[]) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select parley_flow._p_key_of(string_agg(
    coalesce(parley_flow._p_canonical(promoted ->> u.property, coalesce(y.type, 'text')), ''), E'\x1f' order by u.n
  ))
  from unnest(convoy) with ordinality as u (property, n)
  left join parley_flow._p_property as y on y.name = u.property
$$;

comment on function parley_flow._p_convoy_key(jsonb, text[]) is
'Gives the key of a convoy, to which a message belongs by the values of its properties.';

create function parley_flow._p_deliver_to_instances(
  ids bigint[], ns integer[], instances bigint[], ports integer[], due_at timestamptz default null
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_target record;
begin
  for v_target in
    select h.system, s.item_priority,
      array_agg(parley_flow._p_lane_of_instance(s.name, k.key) order by u.place) as lanes,
      array_agg(ids[u.n] order by u.place) as subjects, array_agg(convert_to(k.key, 'UTF8') order by u.place) as data
    from unnest(ns, instances, ports) with ordinality as u (n, instance_id, send_port_id, place)
    join parley_flow._p_send_port as s on s.send_port_id = u.send_port_id
    join parley_flow._p_host as h on h.host_id = s.host_id
    cross join lateral (select format('i%s', u.instance_id) as key) as k
    group by h.system, s.item_priority
    order by h.system, s.item_priority
  loop
    perform parley_store.put_work(
      v_target.system, v_target.lanes, v_target.subjects, data => v_target.data, priority => v_target.item_priority,
      deliver_at => due_at
    );
  end loop;
end
$$;

comment on function parley_flow._p_deliver_to_instances(bigint[], integer[], bigint[], integer[], timestamptz) is
'Makes deliveries of messages to instances: items of the systems of their hosts. An instance that has ended since it
was found gets one as well: it is decided about when the item is claimed.
Arguments: ids, of messages; ns, instances and ports, which of them, from 1 on, goes to which instance of which
orchestration; due_at, not before.';
