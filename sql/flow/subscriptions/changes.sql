-- The changes that applying definitions makes, and the faults that keep it from being applied because messages wait.

create type parley_flow.change as (
  kind text, name text, action text, setting text, old_value jsonb, new_value jsonb
);

comment on type parley_flow.change is
'The changes that applying definitions makes.';

create function parley_flow._p_require_no_faults(faults parley_flow.fault[]) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if cardinality(faults) > 0 then
    found := parley_flow._p_raise(
      'definitions', case when cardinality(faults) = 1 then 'a fault' else cardinality(faults)::text || ' faults' end, (
        select string_agg(
          format('%s: %s. %s', parley_flow._p_pointer(f.path), f.message, concat_ws(' ', f.cause, f.remedy)), E'\n'
          order by f.n
        )
        from unnest(faults) with ordinality as f (path, situation, message, cause, remedy, n)
        where f.n <= 100
      )
    );
  end if;
  return true;
end
$$;

comment on function parley_flow._p_require_no_faults(parley_flow.fault[]) is
'Refuses definitions with faults.
Errors: PF003.';

create function parley_flow._p_has_messages(port text) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select
    from parley_flow._p_lanes_of_port(port) as l
    cross join lateral parley_store.matching_work(l.system, jsonb_build_object('lane', l.lane), 1) as w
  )
$$;

comment on function parley_flow._p_has_messages(text) is 'Reports whether messages wait for a send port.';

create function parley_flow._p_instance_faults(name text, settings jsonb, is_gone boolean)
returns setof parley_flow.fault
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_port parley_flow._p_send_port;
  v_instances bigint;
begin
  select * into v_port from parley_flow._p_send_port as s where s.name = $1 and s.is_process;
  if not found or not (
    is_gone
    or settings ->> 'host' <> (select h.name from parley_flow._p_host as h where h.host_id = v_port.host_id)
  ) then
    return;
  end if;
  select count(*) into v_instances
  from parley_flow._p_instance as i
  where i.send_port_id = v_port.send_port_id;
  if v_instances > 0 then
    return next parley_flow._p_fault(
      array['orchestration', name], 'instances run', name,
      case when is_gone then 'go' else 'change its host' end, v_instances::text
    );
  elsif parley_flow._p_has_messages(name) then
    return next parley_flow._p_fault(
      array['orchestration', name], 'messages wait', name,
      case when is_gone then 'go' else 'change its host' end
    );
  end if;
end
$$;

comment on function parley_flow._p_instance_faults(text, jsonb, boolean) is
'Gives what keeps an orchestration from being dropped, or from getting another host: its instances, and messages that
wait for it.';

create function parley_flow._p_waiting_faults(kind text, name text, settings jsonb, is_gone boolean)
returns setof parley_flow.fault
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_new constant jsonb := parley_flow._p_effective(kind, settings);
begin
  if kind = 'orchestration' then
    return query select f.* from parley_flow._p_instance_faults(name, v_new, is_gone) as f;
  elsif exists (
    select
    from parley_flow._p_send_port as s
    join parley_flow._p_host as h on h.host_id = s.host_id
    where kind = 'send port' and s.name = $2
      and (
        is_gone
        or (h.name, s.is_ordered, coalesce(s.order_key, ''))
        <> (v_new ->> 'host', (v_new -> 'ordered')::boolean, coalesce(v_new ->> 'order_key', ''))
      )
  ) and parley_flow._p_has_messages(name) then
    return next parley_flow._p_fault(
      array[kind, name], 'messages wait', name, case when is_gone then 'go' else 'change its host or its order' end
    );
  end if;
end
$$;

comment on function parley_flow._p_waiting_faults(text, text, jsonb, boolean) is
'Gives what keeps a send port from being dropped, or from getting another host or order: messages that wait for it.';

create function parley_flow._p_with_state(kind text, name text, settings jsonb) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select $3 || jsonb_strip_nulls(jsonb_build_object(
    'state', case
      when $1 in ('send port', 'orchestration')
        then (select s.state from parley_flow._p_send_port as s where s.name = $2)
      when $1 = 'send port group' then (select g.state from parley_flow._p_port_group as g where g.name = $2)
    end,
    'enabled', case
      when $1 = 'receive location'
        then (select l.is_enabled from parley_flow._p_receive_location as l where l.name = $2)
    end
  ))
$$;

comment on function parley_flow._p_with_state(text, text, jsonb) is
'Gives settings of an object with its state as it is; null of one that there is not.';

create function parley_flow._p_changes_of(kind text, name text, old_settings jsonb, new_settings jsonb)
returns setof parley_flow.change
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select $1, $2, case when $3 is null then 'create' else 'drop' end, null::text, $3, $4
  where ($3 is null) <> ($4 is null)
  union all
  (
    select $1, $2, 'alter', d.setting, o.old_value, o.new_value
    from (
      select parley_flow._p_effective($1, $3) as old_settings, parley_flow._p_effective($1, $4) as new_settings
      where $3 is not null and $4 is not null
      offset 0
    ) as e
    cross join parley_flow.setting_definitions as d
    cross join lateral (
      select e.old_settings -> d.setting as old_value, e.new_settings -> d.setting as new_value
    ) as o
    where d.kind = $1 and o.old_value is distinct from o.new_value
      and (d.setting not in ('state', 'enabled') or o.new_value is not null)
    order by d.setting
  )
$$;

comment on function parley_flow._p_changes_of(text, text, jsonb, jsonb) is
'Gives how two sets of settings of an object differ, defaults taken for what they are. old_settings null: it is new;
new_settings null: it goes.';
