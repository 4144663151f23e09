-- Instances that run while their orchestration changes: they go on as they began, with the new version, or end.
--
-- The state of an instance is one of its version. Here only those go on with another one that have none yet; the others
-- are migrated by a program that knows both versions (flow/process/migration.sql), or keep theirs.

create function parley_flow._p_change_running(name text, settings jsonb) returns setof parley_flow.change
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_decision constant text := parley_flow._p_effective('orchestration', settings) ->> 'running';
  v_port parley_flow._p_send_port;
  v_version record;
begin
  select * into v_port from parley_flow._p_send_port as s where s.name = $1;
  for v_version in
    select i.version, count(*) as instances, array_agg(i.instance_id order by i.instance_id) as ids
    from parley_flow._p_instance as i
    where i.send_port_id = v_port.send_port_id and i.version <> v_port.version
    group by i.version
    order by i.version
  loop
    if v_decision = 'migrate' then
      update parley_flow._p_instance as i
      set version = v_port.version
      where i.instance_id = any (v_version.ids) and i.state is null;
    elsif v_decision = 'terminate' then
      insert into parley_flow._p_instance_to_end (instance_id)
      select u.id from unnest(v_version.ids) as u (id)
      on conflict on constraint _p_instance_to_end_pkey do nothing;
    end if;
    return next row(
      'orchestration', name, 'instances', v_decision,
      jsonb_build_object('version', v_version.version, 'instances', v_version.instances),
      jsonb_build_object('version', v_port.version)
    )::parley_flow.change;
  end loop;
end
$$;

comment on function parley_flow._p_change_running(text, jsonb) is
'Does to instances of earlier versions what the setting running says, and gives how many there are of each. Those that
are to end are ended by maintenance, one after the other. Those that are to migrate, and have a state, keep their
version until parley_flow.migrate_instances: parley flow apply calls it in its transaction.';
