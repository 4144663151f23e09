-- Starting instances without a message: from another orchestration, or from an application in its transaction.

create function parley_flow._p_start_instance(name text, parameters text, starter oid) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_port parley_flow._p_send_port;
  v_instance bigint := nextval('parley_flow._p_instance_id');
begin
  select * into v_port from parley_flow._p_send_port as s where s.name = $1 and s.is_process;
  if starter is not null then
    found := parley_flow._p_require_publisher(starter, v_port.application);
  end if;
  if v_port.send_port_id is null then
    found := parley_flow._p_raise('absent', 'orchestration', coalesce($1, 'null'));
  elsif v_port.state = 'Bound' then
    found := parley_flow._p_raise('not enlisted', $1);
  end if;
  if starter is not null then
    found := parley_flow._p_count_against_quota(
      starter, parley._p_number_of(starter), array[convert_to(coalesce(parameters, '{}'), 'UTF8')]
    );
  end if;
  insert into parley_flow._p_instance (instance_id, send_port_id, version, status)
  values (v_instance, v_port.send_port_id, v_port.version, 'NEW');
  insert into parley_flow._p_instance_event (instance_id, kind, data)
  values (v_instance, 'STARTED', coalesce(parameters, '{}'));
  perform parley_flow._p_wake_instances(array[v_instance]);
  return v_instance;
end
$$;

comment on function parley_flow._p_start_instance(text, text, oid) is
'Begins an instance of the newest version of an orchestration, with parameters, an object of JSON; gives its number.
Arguments: name; parameters; starter, the role that asks for it, null: another orchestration.
Errors: PF001, PF004, PF013, PF015 it is not enlisted.';

create function parley_flow._p_require_publisher(caller oid, application text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if parley_flow._p_holds(caller, 'PUBLISH', application) is not true then
    found := parley_flow._p_raise('right', 'PUBLISH', pg_get_userbyid(caller), '');
  end if;
  return true;
end
$$;

comment on function parley_flow._p_require_publisher(oid, text) is
'Refuses who may not publish for an application.
Errors: PF001.';

create function parley_flow.start_orchestration(
  name text, parameters jsonb default '{}', caller parley.caller default parley.current_caller()
) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if parameters is not null and jsonb_typeof(parameters) <> 'object' then
    found := parley_flow._p_raise('parameters', jsonb_typeof(parameters));
  end if;
  return parley_flow._p_start_instance(name, parameters::text, parley.caller_role(caller));
end
$$;

comment on function parley_flow.start_orchestration(text, jsonb, parley.caller) is
'Begins an instance of an orchestration in this transaction, and gives its number: it runs when this commits.
Arguments: name; parameters, an object of its parameters by their names.
Errors: PF001 without PUBLISH for its application, PF004 no such orchestration, PF010 parameters are no object, PF013
more than the quota, by which a start counts as a message, PF015 it is not enlisted.';
