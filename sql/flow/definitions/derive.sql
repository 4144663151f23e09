-- Deriving what the box works with from definitions.
--
-- Each function brings one object up to its definition; that of one that is gone removes it. Work that waits in the
-- lanes of a host that is changed is moved by moves of ports alone: a send port with messages keeps its host until they
-- are gone (the fault "messages wait").

create function parley_flow._p_derive_host(name text, settings jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_number constant integer := parley._p_number_at_once(parley_flow._p_role(settings ->> 'role'));
  v_host_id integer;
begin
  update parley_flow._p_host as h set role_number = v_number where h.name = $1;
  if found then
    return;
  end if;
  insert into parley_flow._p_host as h (name, role_number) values ($1, v_number) returning h.host_id into v_host_id;
  update parley_flow._p_host as h set system = format('flow_%s', v_host_id) where h.host_id = v_host_id;
  perform parley_store.add_system(format('flow_%s', v_host_id));
end
$$;

comment on function parley_flow._p_derive_host(text, jsonb) is
'Makes a host, with a system of its own in the store, or changes its role.';

create function parley_flow._p_derive_receiving(kind text, name text, settings jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if kind = 'receive port' then
    insert into parley_flow._p_receive_port as r (
      name, application, routes_failed, responds, response_timeout, late_answers, keep_answers
    )
    values (
      $2, settings ->> 'application', (settings -> 'failed_message_routing')::boolean,
      (settings -> 'responds')::boolean, (settings ->> 'response_timeout')::interval, settings ->> 'late_answers',
      (settings ->> 'keep_answers')::interval
    )
    on conflict on constraint _p_receive_port_name_key do update
    set application = excluded.application, routes_failed = excluded.routes_failed, responds = excluded.responds,
      response_timeout = excluded.response_timeout, late_answers = excluded.late_answers,
      keep_answers = excluded.keep_answers;
    return;
  end if;
  insert into parley_flow._p_receive_location as l (
    name, receive_port_id, host_id, adapter, address, pipeline, is_enabled, ledger_retention
  )
  select $2, p.receive_port_id, h.host_id, settings ->> 'adapter', settings ->> 'address', settings ->> 'pipeline',
    coalesce((settings -> 'enabled')::boolean, true), (settings ->> 'ledger_retention')::interval
  from parley_flow._p_receive_port as p
  cross join parley_flow._p_host as h
  where p.name = settings ->> 'receive_port' and h.name = settings ->> 'host'
  on conflict on constraint _p_receive_location_name_key do update
  set receive_port_id = excluded.receive_port_id, host_id = excluded.host_id, adapter = excluded.adapter,
    address = excluded.address, pipeline = excluded.pipeline, ledger_retention = excluded.ledger_retention,
    is_enabled = coalesce((settings -> 'enabled')::boolean, l.is_enabled);
end
$$;

comment on function parley_flow._p_derive_receiving(text, text, jsonb) is
'Makes or changes a receive port or a receive location.';

create function parley_flow._p_derive_send_port(name text, settings jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley_flow._p_send_port as s (
    name, application, host_id, adapter, address, pipeline, state, item_priority, is_ordered, order_key, on_failure,
    retry_policy, routes_failed, pause_at, resume_at
  )
  select $1, settings ->> 'application', h.host_id, settings ->> 'adapter', settings ->> 'address',
    settings ->> 'pipeline', 'Bound', 11 - (settings -> 'priority')::integer,
    (settings -> 'ordered')::boolean, settings ->> 'order_key', settings ->> 'on_failure',
    settings ->> 'retry_policy', (settings -> 'failed_message_routing')::boolean, (settings -> 'pause_at')::bigint,
    least(
      coalesce((settings ->> 'resume_at')::bigint, (settings -> 'pause_at')::bigint * 4 / 5),
      (settings -> 'pause_at')::bigint
    )
  from parley_flow._p_host as h
  where h.name = settings ->> 'host'
  on conflict on constraint _p_send_port_name_key do update
  set application = excluded.application, host_id = excluded.host_id, adapter = excluded.adapter,
    address = excluded.address, pipeline = excluded.pipeline, item_priority = excluded.item_priority,
    is_ordered = excluded.is_ordered, order_key = excluded.order_key, on_failure = excluded.on_failure,
    retry_policy = excluded.retry_policy, routes_failed = excluded.routes_failed, pause_at = excluded.pause_at,
    resume_at = excluded.resume_at;
end
$$;

comment on function parley_flow._p_derive_send_port(text, jsonb) is
'Makes a send port, which is bound to begin with, or changes it.';

create function parley_flow._p_with_called(name text, settings jsonb) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with recursive called (name, settings) as (
    select $1, $2
    union
    select d.name, d.settings
    from called as c
    cross join lateral jsonb_path_query(c.settings -> 'body', 'strict $.**.call') as o (call)
    join parley_flow._p_definition as d
      on d.kind = 'orchestration'
      and d.name = case
        when jsonb_typeof(o.call) = 'object' then o.call ->> 'orchestration' else o.call #>> '{}'
      end
  )

  select $2 || coalesce(
    (
      select jsonb_build_object('called', jsonb_object_agg(c.name, c.settings - '{state,activations}'::text[]))
      from called as c
      where c.name <> $1
      having count(*) > 0
    ), '{}'
  )
$$;

comment on function parley_flow._p_with_called(text, jsonb) is
'Gives what an orchestration does together with those that it calls, which are a part of it.';

create function parley_flow._p_correlated_by(program jsonb) returns text[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select array(
    select distinct p.property #>> '{}'
    from jsonb_path_query(program, '$.**.correlations.*[*]') as p (property)
    where jsonb_typeof(p.property) = 'string'
    order by 1
  )
$$;

comment on function parley_flow._p_correlated_by(jsonb) is
'Gives the properties of the correlation sets of an orchestration and of those that it calls.';

create function parley_flow._p_received_types(program jsonb) returns text[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case when count(*) filter (where t.type = 'any') = 0 then coalesce(array_agg(t.type order by t.type), '{}') end
  from (
    select distinct m.value #>> '{}' as type
    from jsonb_path_query(program, '$.**.messages') as s (messages)
    cross join lateral jsonb_each(case when jsonb_typeof(s.messages) = 'object' then s.messages else '{}' end) as m
    where m.key in (
      select coalesce(r.receive ->> 'message', r.receive #>> '{}')
      from jsonb_path_query(program, '$.**.receive') as r (receive)
    )
  ) as t
$$;

comment on function parley_flow._p_received_types(jsonb) is
'Gives the types of the messages that an orchestration and those that it calls receive; null: of any type.';

create function parley_flow._p_derive_orchestration(name text, settings jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  -- The rest says how it runs, and not what it does.
  v_program constant jsonb := parley_flow._p_with_called(name, settings - array[
    'description', 'host', 'application', 'state', 'priority', 'concurrency', 'batch', 'retry_policy', 'running',
    'unread', 'activations'
  ]);
  v_newest record;
begin
  select v.version, v.settings into v_newest
  from parley_flow._p_orchestration_version as v
  where v.name = $1
  order by v.version desc
  limit 1;
  if v_newest.settings is distinct from v_program then
    insert into parley_flow._p_orchestration_version (name, version, settings, awaited_properties, awaited_types)
    values (
      $1, coalesce(v_newest.version, 0) + 1, v_program, parley_flow._p_correlated_by(v_program),
      parley_flow._p_received_types(v_program)
    );
  end if;
  insert into parley_flow._p_send_port as s (
    name, application, host_id, adapter, address, pipeline, state, item_priority, is_ordered, on_failure, retry_policy,
    routes_failed, is_process, convoy, version
  )
  select $1, settings ->> 'application', h.host_id, 'Orchestration', $1, 'PassThruTransmit', 'Bound',
    11 - (settings -> 'priority')::integer, false, 'wait', settings ->> 'retry_policy', false, true,
    (
      select array(select p.name from jsonb_array_elements_text(a.activation -> 'convoy') as p (name) order by 1)
      from jsonb_array_elements(settings -> 'activations') as a (activation)
      where jsonb_array_length(coalesce(nullif(a.activation -> 'convoy', 'null'), '[]')) > 0
      limit 1
    ),
    coalesce(v_newest.version, 0) + (v_newest.settings is distinct from v_program)::integer
  from parley_flow._p_host as h
  where h.name = settings ->> 'host'
  on conflict on constraint _p_send_port_name_key do update
  set application = excluded.application, host_id = excluded.host_id, item_priority = excluded.item_priority,
    retry_policy = excluded.retry_policy, convoy = excluded.convoy, version = excluded.version;
end
$$;

comment on function parley_flow._p_derive_orchestration(text, jsonb) is
'Makes an orchestration, which is bound to begin with, or changes it: another program is another version.';

create function parley_flow._p_derive_rest(kind text, name text, settings jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if kind = 'property schema' then
    delete from parley_flow._p_property as p where starts_with(p.name, $2 || '#');
    insert into parley_flow._p_property (name, type, is_tracked, is_sensitive)
    select $2 || '#' || s.key, coalesce(s.value ->> 'type', 'text'), coalesce((s.value -> 'tracked')::boolean, false),
      coalesce((s.value -> 'sensitive')::boolean, false)
    from jsonb_each(settings -> 'properties') as s;
  elsif kind = 'retry policy' then
    insert into parley_flow._p_retry_policy (name, tries, first_interval, factor, max_interval, jitter)
    values (
      $2, (settings -> 'count')::integer, (settings ->> 'interval')::interval,
      (settings -> 'factor')::double precision, (settings ->> 'max_interval')::interval,
      (settings -> 'jitter')::double precision
    )
    on conflict on constraint _p_retry_policy_pkey do update
    set tries = excluded.tries, first_interval = excluded.first_interval, factor = excluded.factor,
      max_interval = excluded.max_interval, jitter = excluded.jitter;
  elsif kind = 'pipeline' then
    insert into parley_flow._p_pipeline_version (name, version, direction, stages)
    select $2, coalesce(max(v.version), 0) + 1, settings ->> 'direction', settings -> 'stages'
    from parley_flow._p_pipeline_version as v
    where v.name = $2
    having max(v.version) is null or not exists (
      select
      from parley_flow._p_pipeline_version as o
      where o.name = $2 and o.version = max(v.version) and o.stages = settings -> 'stages'
        and o.direction = settings ->> 'direction'
    );
  elsif kind = 'send port group' then
    insert into parley_flow._p_port_group as g (name, application, state, send_ports)
    values (
      $2, settings ->> 'application', coalesce(settings ->> 'state', 'Started'),
      array(select e.name from jsonb_array_elements_text(settings -> 'ports') as e (name))
    )
    on conflict on constraint _p_port_group_pkey do update
    set application = excluded.application, send_ports = excluded.send_ports,
      state = coalesce(settings ->> 'state', g.state);
  end if;
end
$$;

comment on function parley_flow._p_derive_rest(text, text, jsonb) is
'Brings a property schema, a retry policy, a pipeline or a send port group up to its definition; nothing is derived of
an application, a message type and a map.';

create function parley_flow._p_derive(kind text, name text, settings jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_settings constant jsonb := parley_flow._p_effective(kind, settings);
begin
  if kind = 'host' then
    perform parley_flow._p_derive_host(name, v_settings);
  elsif kind in ('receive port', 'receive location') then
    perform parley_flow._p_derive_receiving(kind, name, v_settings);
  elsif kind = 'send port' then
    perform parley_flow._p_derive_send_port(name, v_settings);
  elsif kind = 'orchestration' then
    perform parley_flow._p_derive_orchestration(name, v_settings);
  else
    perform parley_flow._p_derive_rest(kind, name, v_settings);
  end if;
end
$$;

comment on function parley_flow._p_derive(text, text, jsonb) is 'Brings one object up to its definition.';

create function parley_flow._p_remove_derived(kind text, name text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if kind = 'host' then
    delete from parley_flow._p_host as h where h.name = $2;
  elsif kind = 'receive port' then
    delete from parley_flow._p_receive_port as r where r.name = $2;
    delete from parley_flow._p_right as r where r.scope = 'receive port' and r.object = $2;
  elsif kind = 'receive location' then
    delete from parley_flow._p_receive_location as l where l.name = $2;
  elsif kind in ('send port', 'orchestration') then
    delete from parley_flow._p_send_port as s where s.name = $2;
  elsif kind = 'send port group' then
    delete from parley_flow._p_port_group as g where g.name = $2;
  elsif kind = 'property schema' then
    delete from parley_flow._p_property as p where starts_with(p.name, $2 || '#');
  elsif kind = 'retry policy' then
    delete from parley_flow._p_retry_policy as r where r.name = $2;
  elsif kind = 'application' then
    delete from parley_flow._p_right as r where r.scope = 'application' and r.object = $2;
  end if;
end
$$;

comment on function parley_flow._p_remove_derived(text, text) is
'Removes what was derived from an object that is dropped, and rights for it. The versions of a pipeline stay for
tracking, until maintenance removes them.';
