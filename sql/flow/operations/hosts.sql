-- The questions and reports of hosts: their configuration, that they are there, how their locations are doing.

create table parley_flow._p_host_instance (
  host text not null,
  node text not null,
  role text not null,
  -- A random text of the process that has the name; null of one that gave none.
  process text,
  started_at timestamptz not null default clock_timestamp(),
  reported_at timestamptz not null default clock_timestamp(),
  is_ended boolean not null default false,
  report jsonb not null default '{}',
  primary key (host, node)
);

comment on table parley_flow._p_host_instance is
'Nodes that serve hosts, and what they reported last. One process has a name of a host at a time: until it says that it
ends, or has not reported for fifteen seconds. started_at: since when that process serves the host.';

create table parley_flow._p_location_report (
  location text not null,
  node text not null,
  reported_at timestamptz not null default clock_timestamp(),
  failing_since timestamptz,
  error text,
  failed_at timestamptz,
  recovered_at timestamptz,
  primary key (location, node)
);

comment on table parley_flow._p_location_report is
'How receive locations are doing on each node. failing_since: null while the source can be reached; error: the last one,
reported at failed_at; recovered_at: when the source could be reached after that.';

create function parley_flow._p_configuration_version(caller parley.caller default parley.current_caller())
returns bigint
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select c.version
  from parley_flow._p_configuration as c
  where parley.caller_role(caller) is not null
$$;

comment on function parley_flow._p_configuration_version(parley.caller) is
'Gives the number of the configuration: a host reads its configuration again when it has grown.';

create function parley_flow._p_groups_of_all() returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(jsonb_build_object(
    'group', g.group_id, 'send_port', g.send_port_id, 'predicates', p.predicates
  ) order by g.group_id), '[]')
  from parley_flow._p_group as g
  cross join lateral (
    select jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
      'property', o.property, 'type', o.type, 'operator', o.operator,
      'value', coalesce(to_jsonb(o.operand), to_jsonb(o.operands))
    )) order by o.ordinal) as predicates
    from parley_flow._p_predicate as o
    where o.group_id = g.group_id
  ) as p
$$;

comment on function parley_flow._p_groups_of_all() is 'Gives all subscriptions, for the matcher of a host.';

create function parley_flow._p_objects_of(kind text, names text[]) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_object_agg(d.name, parley_flow._p_effective(d.kind, d.settings)), '{}')
  from parley_flow._p_definition as d
  where d.kind = $1 and (names is null or d.name = any (names))
$$;

comment on function parley_flow._p_objects_of(text, text[]) is
'Gives objects of a kind by their names, with defaults; names null: all.';

create function parley_flow._p_names_of(kind text) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_object_agg(d.name, '{}'::jsonb), '{}')
  from parley_flow._p_definition as d
  where d.kind = $1
$$;

comment on function parley_flow._p_names_of(text) is 'Gives the names of objects of a kind, as members of an object.';

create function parley_flow._p_configuration(host text, caller parley.caller default parley.current_caller())
returns jsonb
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_host constant parley_flow._p_host := parley_flow._p_require_host(parley.caller_role(caller), host);
begin
  return (
    select jsonb_build_object(
      'version', c.version, 'epoch', c.epoch,
      'host', parley_flow._p_objects_of('host', array[host]) -> host,
      'receive_locations', (
        select coalesce(jsonb_object_agg(
          l.name, parley_flow._p_objects_of('receive location', array[l.name]) -> l.name
            || jsonb_build_object(
              'enabled', l.is_enabled, 'application', p.application, 'responds', p.responds,
              'response_pipeline', parley_flow._p_objects_of('receive port', array[p.name]) -> p.name
                -> 'response_pipeline',
              'response_ms', (extract(epoch from p.response_timeout) * 1000)::bigint
            )
        ), '{}')
        from parley_flow._p_receive_location as l
        join parley_flow._p_receive_port as p on p.receive_port_id = l.receive_port_id
        where l.host_id = v_host.host_id
      ),
      'receive_ports', parley_flow._p_objects_of('receive port', null),
      'send_ports', (
        select coalesce(jsonb_object_agg(
          s.name, parley_flow._p_objects_of('send port', array[s.name]) -> s.name
            || jsonb_build_object('state', s.state, 'send_port', s.send_port_id)
        ), '{}')
        from parley_flow._p_send_port as s
        where s.host_id = v_host.host_id and not s.is_process
      ),
      'orchestrations', (
        select coalesce(jsonb_object_agg(
          s.name, parley_flow._p_objects_of('orchestration', array[s.name]) -> s.name
            || jsonb_build_object('state', s.state, 'send_port', s.send_port_id, 'version', s.version)
        ), '{}')
        from parley_flow._p_send_port as s
        where s.host_id = v_host.host_id and s.is_process
      ),
      'known', jsonb_build_object(
        'orchestration', parley_flow._p_objects_of('orchestration', null),
        'map', parley_flow._p_names_of('map'), 'send port', parley_flow._p_names_of('send port')
      ),
      'pipelines', (
        select jsonb_object_agg(
          v.name, jsonb_build_object('version', v.version, 'direction', v.direction, 'stages', v.stages)
        )
        from (
          select distinct on (o.name) o.name, o.version, o.direction, o.stages
          from parley_flow._p_pipeline_version as o
          order by o.name, o.version desc
        ) as v
      ),
      'message_types', parley_flow._p_objects_of('message type', null),
      'maps', parley_flow._p_objects_of('map', null),
      'property_schemas', parley_flow._p_objects_of('property schema', null),
      'retry_policies', parley_flow._p_objects_of('retry policy', null),
      'groups', parley_flow._p_groups_of_all()
    )
    from parley_flow._p_configuration as c
  );
end
$$;

comment on function parley_flow._p_configuration(text, parley.caller) is
'Gives what of the definitions concerns a host, with defaults and states, and all subscriptions: {"version", "epoch",
"host", "receive_locations", "receive_ports", "send_ports", "orchestrations", "known", "pipelines", "message_types",
"maps", "property_schemas", "retry_policies", "groups"}, objects by their names.
Errors: PF001.';

create function parley_flow._p_report(
  host text, node text, report jsonb, process text default null, is_last boolean default false,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_holder parley_flow._p_host_instance;
begin
  perform parley_flow._p_require_host(v_caller, host);
  if node is null or is_last is null then
    found := parley_flow._p_raise('missing', case when node is null then 'node' else 'is_last' end);
  end if;
  -- A process that comes at the same time with the same name waits here for the row, and the condition refuses it.
  insert into parley_flow._p_host_instance as i (host, node, role, process, is_ended, report)
  values ($1, $2, pg_get_userbyid(v_caller), $4, is_last, coalesce(_p_report.report, '{}'))
  on conflict on constraint _p_host_instance_pkey do update
  set reported_at = clock_timestamp(), role = excluded.role, report = excluded.report, process = excluded.process,
    is_ended = excluded.is_ended,
    started_at = case
      when i.process is distinct from excluded.process or i.is_ended
        or (excluded.process is null and i.reported_at < clock_timestamp() - interval '1 minute')
        then clock_timestamp()
      else i.started_at
    end
  where i.process is not distinct from excluded.process or i.is_ended
    or i.reported_at < clock_timestamp() - interval '15 seconds';
  if not found then
    select i.* into v_holder
    from parley_flow._p_host_instance as i
    where i.host = $1 and i.node = $2;
    found := parley_flow._p_raise(
      'node name', node, host, to_char(v_holder.started_at, 'YYYY-MM-DD HH24:MI:SSOF'),
      round(extract(epoch from clock_timestamp() - v_holder.reported_at))::text
    );
  end if;
end
$$;

comment on function parley_flow._p_report(text, text, jsonb, text, boolean, parley.caller) is
'Says that a node serves a host; call it every few seconds. One that has not for a minute is gone. A name belongs to the
process that reported under it, until that says that it ends, or has not reported for fifteen seconds.
Arguments: host; node; report, an object of whatever else, such as {"in_process": 7}; process, a random text that a
process makes once; is_last, it ends now.
Errors: PF001, PF010, PF017 another process has the name.';

create function parley_flow._p_report_location(
  host text, location text, node text, error text default null, caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_host constant parley_flow._p_host := parley_flow._p_require_host(parley.caller_role(caller), host);
  v_location constant parley_flow._p_receive_location := parley_flow._p_require_location(v_host, location);
begin
  if node is null then
    found := parley_flow._p_raise('missing', 'node');
  end if;
  insert into parley_flow._p_location_report as r (location, node, failing_since, error, failed_at)
  values (
    v_location.name, $3, case when $4 is not null then clock_timestamp() end, left($4, 10000),
    case when $4 is not null then clock_timestamp() end
  )
  on conflict on constraint _p_location_report_pkey do update
  set reported_at = clock_timestamp(), error = coalesce(excluded.error, r.error),
    failed_at = coalesce(excluded.failed_at, r.failed_at),
    failing_since = case when excluded.error is not null then coalesce(r.failing_since, clock_timestamp()) end,
    recovered_at = case
      when excluded.error is not null then null
      when r.failing_since is not null then clock_timestamp()
      else r.recovered_at
    end;
end
$$;

comment on function parley_flow._p_report_location(text, text, text, text, parley.caller) is
'Says how a receive location is doing on a node.
Arguments: host; location; node; error, why its source cannot be reached, null: it can.
Errors: PF001, PF006, PF010.';

create function parley_flow._p_track(
  host text, events text[], message_ids bigint[], fields jsonb[] default null,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_host constant parley_flow._p_host := parley_flow._p_require_host(parley.caller_role(caller), host);
begin
  if events is null or message_ids is null or cardinality(events) <> cardinality(message_ids) then
    found := parley_flow._p_raise(
      'lengths', 'events', coalesce(cardinality(events)::text, 'null'), 'message_ids',
      coalesce(cardinality(message_ids)::text, 'null')
    );
  end if;
  return parley_store.track(
    'flow', array(select format('HOST %s', e.event) from unnest(events) with ordinality as e (event, n) order by e.n),
    message_ids::text[], fields => to_jsonb(fields),
    sources => array_fill(v_host.name, array[cardinality(events)])
  );
end
$$;

comment on function parley_flow._p_track(text, text[], bigint[], jsonb[], parley.caller) is
'Tracks what a host did to messages, such as which pipeline in which version ran over them; gives how many. The names of
its events begin with HOST.
Arguments: host; events and message_ids, one for each; fields, null or an object for each.
Errors: PF001, PF010.';

create function parley_flow._p_forget_instances() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_forgotten integer;
begin
  delete from parley_flow._p_host_instance as i where i.reported_at < clock_timestamp() - interval '1 day';
  delete from parley_flow._p_send_port_failure as f
  where not exists (select from parley_flow._p_send_port as s where s.send_port_id = f.send_port_id);
  delete from parley_flow._p_location_report as r where r.reported_at < clock_timestamp() - interval '1 day';
  get diagnostics v_forgotten = row_count;
  return v_forgotten;
end
$$;

comment on function parley_flow._p_forget_instances() is
'Forgets nodes that have been gone for a day and what they said of locations, and failures of ports that are gone; gives
how many reports of locations.';
