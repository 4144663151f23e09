-- The limits of what a host may say of a step: it names instances of its orchestration, messages that came for them,
-- and waits that the definition has.
--
-- A node that somebody has taken over says what he likes. It reads by none of this what is not its own.
-- Locks: none; the lease of each delivery, and the lock of each instance, are the caller's.

create function parley_flow._p_messages_in(events jsonb) returns bigint[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select array(select (e.event -> 'message')::bigint from jsonb_array_elements(nullif(events, 'null')) as e (event))
$$;

comment on function parley_flow._p_messages_in(jsonb) is
'Gives the messages of events, [{"message": number, ...}]; none of null.';

create function parley_flow._p_require_own(
  host parley_flow._p_host, done parley_store.claimed_item[], messages bigint[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_foreign bigint;
begin
  select u.id into v_foreign
  from unnest(messages) as u (id)
  where u.id is not null and u.id not in (select d.subject from unnest(done) as d)
    and not parley_flow._p_is_of_instance(host, u.id)
  limit 1;
  if found then
    found := parley_flow._p_raise('message', v_foreign::text);
  end if;
end
$$;

comment on function parley_flow._p_require_own(parley_flow._p_host, parley_store.claimed_item[], bigint[]) is
'Refuses messages that are neither among the deliveries of a call nor of an instance of the host.
Errors: PF006.';

create function parley_flow._p_require_own_steps(
  host parley_flow._p_host, port parley_flow._p_send_port, done parley_store.claimed_item[],
  steps parley_flow._p_step[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_foreign bigint;
begin
  select s.instance into v_foreign
  from unnest(steps) as s
  where s.instance is not null and not exists (
    select
    from parley_flow._p_instance as i
    where i.instance_id = s.instance and i.send_port_id = port.send_port_id
  )
  limit 1;
  if found then
    found := parley_flow._p_raise('instance', v_foreign::text);
  end if;
  perform parley_flow._p_require_own(host, done, array(
    select o.id
    from unnest(steps) as s
    cross join lateral unnest(
      s.holds || parley_flow._p_messages_in(s.parked) || parley_flow._p_messages_in(s.unread)
    ) as o (id)
  ));
  perform parley_flow._p_require_waits(port, steps);
end
$$;

comment on function parley_flow._p_require_own_steps(
  parley_flow._p_host, parley_flow._p_send_port, parley_store.claimed_item[], parley_flow._p_step[]
) is
'Refuses steps of instances that are not of an orchestration, with messages that did not come for an instance of the
host, or with waits that its definition does not have.
Errors: PF006.';

create function parley_flow._p_require_waits(port parley_flow._p_send_port, steps parley_flow._p_step[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_wait record;
begin
  select o.wait, s.version into v_wait
  from unnest(steps) as s
  cross join lateral jsonb_array_elements(nullif(s.waits, 'null')) as o (wait)
  left join parley_flow._p_orchestration_version as v on v.name = port.name and v.version = coalesce(
    (select i.version from parley_flow._p_instance as i where i.instance_id = s.instance), s.version
  )
  where v.version is null
    or exists (
      select from jsonb_object_keys(o.wait -> 'equal') as p (name) where p.name <> all (v.awaited_properties)
    )
    or v.awaited_types is not null and not exists (
      select
      from jsonb_array_elements(nullif(o.wait -> 'filter', 'null')) as f (predicate)
      where f.predicate ->> 'property' = 'MessageType' and f.predicate ->> 'operator' = '='
        and f.predicate ->> 'value' = any (v.awaited_types)
    )
  limit 1;
  if found then
    found := parley_flow._p_raise(
      'wait', coalesce(left(v_wait.wait ->> 'id', 100), 'null'), port.name, coalesce(v_wait.version::text, 'null')
    );
  end if;
end
$$;

comment on function parley_flow._p_require_waits(parley_flow._p_send_port, parley_flow._p_step[]) is
'Refuses waits by another property than those of the correlation sets of an orchestration, in the version of the
instance, and for messages of another type than it receives.
Errors: PF006.';
