-- Applying definitions: all of a document or nothing, and what that changes.

create function parley_flow._p_write_definitions(caller oid, version bigint, definitions jsonb)
returns parley_flow.change[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_object record;
  v_changes parley_flow.change[] := array[]::parley_flow.change[];
  v_of_object parley_flow.change[];
begin
  for v_object in
    select k.kind, o.key as name, coalesce(nullif(o.value, 'null'), '{}') as settings, d.settings as old_settings
    from unnest(parley_flow._p_kinds()) with ordinality as k (kind, n)
    cross join lateral jsonb_each(coalesce(definitions -> k.kind, '{}')) as o
    left join parley_flow._p_definition as d on d.kind = k.kind and d.name = o.key
    order by k.n, o.key
  loop
    v_of_object := array(
      select c
      from parley_flow._p_changes_of(
        v_object.kind, v_object.name,
        parley_flow._p_with_state(v_object.kind, v_object.name, v_object.old_settings), v_object.settings
      ) as c
    );
    continue when v_of_object = '{}' and v_object.settings = v_object.old_settings;
    v_changes := v_changes || v_of_object;
    insert into parley_flow._p_definition as d (kind, name, settings, version, changed_by)
    values (v_object.kind, v_object.name, v_object.settings, _p_write_definitions.version, pg_get_userbyid(caller))
    on conflict on constraint _p_definition_pkey do update
    set settings = excluded.settings, version = excluded.version, changed_at = clock_timestamp(),
      changed_by = excluded.changed_by;
    perform parley_flow._p_derive(v_object.kind, v_object.name, v_object.settings);
    if v_object.kind = 'orchestration' then
      v_changes := v_changes || array(
        select c from parley_flow._p_change_running(v_object.name, v_object.settings) as c
      );
    end if;
  end loop;
  return v_changes;
end
$$;

comment on function parley_flow._p_write_definitions(oid, bigint, jsonb) is
'Writes the objects of a document that was checked, and gives what that changes.';

create function parley_flow._p_drop_definitions(definitions jsonb) returns parley_flow.change[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_object record;
  v_changes parley_flow.change[] := array[]::parley_flow.change[];
begin
  for v_object in
    select d.kind, d.name, d.settings
    from parley_flow._p_definition as d
    where not exists (
      select from parley_flow._p_names_after(definitions, true) as a where a.kind = d.kind and a.name = d.name
    )
    order by array_position(parley_flow._p_kinds(), d.kind) desc, d.name
  loop
    v_changes := v_changes || array(
      select c from parley_flow._p_changes_of(v_object.kind, v_object.name, v_object.settings, null) as c
    );
    if v_object.kind in ('send port', 'orchestration') then
      perform parley_flow._p_retire_lanes(v_object.name);
    end if;
    delete from parley_flow._p_definition as d where d.kind = v_object.kind and d.name = v_object.name;
    perform parley_flow._p_remove_derived(v_object.kind, v_object.name);
  end loop;
  return v_changes;
end
$$;

comment on function parley_flow._p_drop_definitions(jsonb) is
'Drops the objects that a document does not name, of the applications that it names; gives what that changes.';

create function parley_flow._p_set_states(definitions jsonb, changes parley_flow.change[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_port record;
begin
  for v_port in
    select s.name, s.state as was, c.name is not null as is_changed,
      coalesce(o.value ->> 'state', case when c.is_new then 'Started' else s.state end) as state
    from jsonb_each(
      coalesce(definitions -> 'send port', '{}') || coalesce(definitions -> 'orchestration', '{}')
    ) as o
    join parley_flow._p_send_port as s on s.name = o.key
    left join (
      select u.name, bool_or(u.action = 'create') as is_new
      from unnest(changes) as u
      where u.kind in ('send port', 'orchestration')
      group by u.name
    ) as c on c.name = o.key
  loop
    -- Its order may have changed, and with it its lanes, which are empty then.
    if v_port.is_changed and v_port.was <> 'Bound' then
      perform parley_flow._p_retire_lanes(v_port.name);
      perform parley_flow._p_make_lanes(v_port.name);
      perform parley_flow._p_let_lanes(v_port.name, v_port.was = 'Started');
    end if;
    perform parley_flow._p_set_port_state(v_port.name, v_port.state);
  end loop;
end
$$;

comment on function parley_flow._p_set_states(jsonb, parley_flow.change[]) is
'Gives the send ports of a document the states that it says, and those that are new Started where it does not.';

create function parley_flow._p_subscribe_changed(changes parley_flow.change[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ports integer[];
begin
  -- Types of properties, and ports that go, concern all.
  if exists (
    select
    from unnest(changes) as c
    where c.kind = 'property schema'
      or (c.kind in ('send port', 'send port group', 'orchestration') and c.action = 'drop')
      or (c.kind = 'send port group' and c.setting = 'ports')
  ) then
    perform parley_flow._p_subscribe(null);
    return;
  end if;
  v_ports := array(
    select s.send_port_id
    from unnest(changes) as c
    join parley_flow._p_send_port as s on s.name = c.name
    where c.kind in ('send port', 'orchestration')
    union
    select s.send_port_id
    from unnest(changes) as c
    join parley_flow._p_port_group as g on g.name = c.name
    join parley_flow._p_send_port as s on s.name = any (g.send_ports)
    where c.kind = 'send port group'
  );
  if v_ports <> '{}' then
    perform parley_flow._p_subscribe(v_ports);
  end if;
end
$$;

comment on function parley_flow._p_subscribe_changed(parley_flow.change[]) is
'Makes the subscriptions anew that changes of definitions concern.';

create function parley_flow._p_apply(caller oid, definitions jsonb, prune boolean) returns parley_flow.change[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_version bigint;
  v_changes parley_flow.change[];
begin
  found := parley_flow._p_require(caller, 'ADMINISTER');
  v_version := parley_flow._p_begin_change();
  found := parley_flow._p_require_no_faults(array(
    select f from parley_flow._p_faults_before(definitions, prune) as f
  ));
  perform parley_flow._p_set_up();
  v_changes := parley_flow._p_write_definitions(caller, v_version, definitions);
  if prune then
    v_changes := v_changes || parley_flow._p_drop_definitions(definitions);
  end if;
  -- Those that call one that has changed have another version now.
  perform parley_flow._p_derive(d.kind, d.name, d.settings)
  from parley_flow._p_definition as d
  where d.kind = 'orchestration' and exists (select from unnest(v_changes) as c where c.kind = 'orchestration');
  update parley_flow._p_send_port as s
  set is_tracked = t.is_tracked
  from (
    select d.name, (parley_flow._p_effective(d.kind, d.settings) -> 'tracking')::boolean as is_tracked
    from parley_flow._p_definition as d
    where d.kind = 'application'
  ) as t
  where t.name = s.application and t.is_tracked <> s.is_tracked;
  update parley_flow._p_configuration as c
  set keeps_finished = exists (
      select
      from parley_flow._p_definition as d
      where d.kind = 'application' and (d.settings ->> 'keep_finished')::interval > '0 seconds'
    ),
    tracks_properties = exists (select from parley_flow._p_property as p where p.is_tracked and not p.is_sensitive);
  perform parley_flow._p_set_states(definitions, v_changes);
  perform parley_flow._p_subscribe_changed(v_changes);
  if v_changes <> '{}' then
    perform parley_flow._p_record_audit(caller, 'apply', format('version %s', v_version), (
      select jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
        'kind', c.kind, 'name', c.name, 'action', c.action, 'setting', c.setting
      )))
      from unnest(v_changes) as c
    ));
    perform parley_flow._p_notify_configuration();
  end if;
  return v_changes;
end
$$;

comment on function parley_flow._p_apply(oid, jsonb, boolean) is
'Applies definitions, all of them, and gives what that changes.
Errors: PF001, PF003.';

create function parley_flow._p_faults_before(definitions jsonb, prune boolean) returns setof parley_flow.fault
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return query select f.* from parley_flow._p_faults(definitions, prune) as f;
  return query
  select f.*
  from unnest(array['send port', 'orchestration']) as k (kind)
  cross join lateral jsonb_each(
    case when jsonb_typeof(definitions -> k.kind) = 'object' then definitions -> k.kind else '{}' end
  ) as o
  cross join lateral parley_flow._p_waiting_faults(
    k.kind, o.key, case when jsonb_typeof(o.value) = 'object' then o.value else '{}' end, false
  ) as f
  where jsonb_typeof(o.value) in ('object', 'null');
  if prune and jsonb_typeof(definitions) = 'object' then
    return query
    select f.path, f.situation, f.message, f.cause, f.remedy
    from parley_flow._p_definition as d
    cross join lateral parley_flow._p_waiting_faults(d.kind, d.name, d.settings, true) as f
    where d.kind in ('send port', 'orchestration') and not exists (
      select from parley_flow._p_names_after(definitions, true) as a where a.kind = d.kind and a.name = d.name
    );
  end if;
end
$$;

comment on function parley_flow._p_faults_before(jsonb, boolean) is
'Gives what is wrong with definitions, in themselves and because of messages that wait.';

create function parley_flow._p_set_up() returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update parley_flow._p_configuration as c set is_set_up = true where not c.is_set_up;
  if not found then
    return false;
  end if;
  perform parley_store.add_system('flow');
  perform parley_flow._p_seed_pressure();
  -- So that the first messages do not make them, and wait for each other.
  perform parley_store.maintain_tracking(retention => '100 years');
  return true;
end
$$;

comment on function parley_flow._p_set_up() is
'Makes what the engine has in the store, once: with the first definitions, so that a database that has none shows none
of it. Reports whether it did. The system flow has its bodies and its tracking.';

create function parley_flow.apply(
  definitions jsonb, dry_run boolean default false, prune boolean default false,
  caller parley.caller default parley.current_caller()
) returns setof parley_flow.change
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_changes parley_flow.change[];
begin
  if dry_run is not false then
    begin
      v_changes := parley_flow._p_apply(v_caller, definitions, prune is true);
      -- No class: a code that ends in 000 would catch every error of the engine.
      raise exception using errcode = 'PF999', message = 'undo';
    exception
      when sqlstate 'PF999' then
        null;
    end;
  else
    v_changes := parley_flow._p_apply(v_caller, definitions, prune is true);
  end if;
  return query select c.* from unnest(v_changes) as c;
end
$$;

comment on function parley_flow.apply(jsonb, boolean, boolean, parley.caller) is
'Makes the definitions what a document says, all of it or nothing, and returns what changes: a row for each object that
comes or goes, and for each setting that changes. It is effective for what begins after the commit.
Arguments: definitions, {"kind": {"name": {"setting": value}}}: an object is what the document says, with defaults for
what it leaves out, but state and enabled, which stay; dry_run, check everything and change nothing; prune, drop what
the document does not name of the applications that it names.
Errors: PF001 without ADMINISTER, PF003 with a line for each fault: path, fact, remedy.';

create function parley_flow.check_definitions(
  definitions jsonb, prune boolean default false, caller parley.caller default parley.current_caller()
) returns setof parley_flow.fault
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_flow._p_require(parley.caller_role(caller), 'ADMINISTER');
  return query select f.* from parley_flow._p_faults_before(definitions, prune is true) as f;
end
$$;

comment on function parley_flow.check_definitions(jsonb, boolean, parley.caller) is
'Gives everything that is wrong with definitions: no row, and parley_flow.apply takes them. path is where, by keys and
numbers of elements from the root.
Arguments: as parley_flow.apply.
Errors: PF001 without ADMINISTER.';

create function parley_flow.export(application text default null, caller parley.caller default parley.current_caller())
returns jsonb
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_flow._p_require(parley.caller_role(caller), 'VIEW', application);
  return (
    with own as materialized (
      select d.kind, d.name, d.settings
      from parley_flow._p_definition as d
      left join parley_flow._p_receive_location as l on d.kind = 'receive location' and l.name = d.name
      left join parley_flow._p_receive_port as p on p.receive_port_id = l.receive_port_id
      where export.application is null or coalesce(d.settings ->> 'application', p.application) = export.application
        or (d.kind = 'application' and d.name = export.application)
    )
    select coalesce(jsonb_object_agg(k.kind, k.objects), '{}')
    from (
      select d.kind, jsonb_object_agg(d.name, parley_flow._p_with_state(d.kind, d.name, d.settings)) as objects
      from (
        select o.kind, o.name, o.settings from own as o
        union
        -- Hosts and retry policies belong to no application: those that this one names come with it.
        select d.kind, d.name, d.settings
        from parley_flow._p_definition as d
        where (d.kind = 'host' and d.name in (select o.settings ->> 'host' from own as o))
          or (d.kind = 'retry policy' and d.name in (select o.settings ->> 'retry_policy' from own as o))
      ) as d
      group by d.kind
    ) as k
  );
end
$$;

comment on function parley_flow.export(text, parley.caller) is
'Gives the definitions in the form that parley_flow.apply takes: what was given, without defaults, with the states as
they are. Secrets are references.
Arguments: application, whose objects alone, with the hosts and retry policies that they name (null: everything).
Errors: PF001 without VIEW.';
