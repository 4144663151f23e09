-- Targets that BEGIN DIALOG does not know: is there anything by which messages could come to them?
--
-- SQL Server begins any dialog, and a name that is mistyped waits in the transmission queue for ever. Here a dialog is
-- refused when nothing could lead to its target; the errors have the numbers that transmission_status would have. A way
-- there may be down, expired or unaware of the service: a dialog is refused only when nothing can ever bring a message
-- there. A program that sends before the target exists says so for a call, or for a session, role or database with the
-- setting parley.allow_unknown_targets: then all is as in SQL Server.
-- Locks: none. Cost: a service of this database costs nothing, as BEGIN DIALOG has found it already; another one costs
-- one search in the index of routes.

create function parley._p_serves_neighbours() returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (select from parley._p_neighbour_service);
end
$$;

comment on function parley._p_serves_neighbours() is
'Reports whether the daemon that leads, or has led last, serves other databases too: LOCAL may lead to them.';

create function parley._p_record_neighbours(serves_neighbours boolean) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if serves_neighbours then
    insert into parley._p_neighbour_service (service_name, address) values ('', '') on conflict do nothing;
  elsif not serves_neighbours then
    delete from parley._p_neighbour_service;
  end if;
end
$$;

comment on function parley._p_record_neighbours(boolean) is
'Records whether the daemon that leads from now on serves other databases too: by a row without a name among the
services of neighbours, of which there are none otherwise.
Arguments: serves_neighbours, null when that is not known.';

create function parley._p_may_lead_to(service_name text, broker_instance text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_is_foreign boolean;
begin
  if parley._p_is_here(service_name, _p_may_lead_to.broker_instance) or exists (
    select
    from parley._p_route as r
    where coalesce(r.remote_service_name, '') = any (array[service_name, 'SQL/ServiceBroker/BrokerConfiguration', ''])
      and not r.is_inbound
      and case
        when r.remote_service_name = service_name
          then coalesce(_p_may_lead_to.broker_instance = r.broker_instance, true)
        when r.remote_service_name is not null then true
        when r.next_hop = 'LOCAL' then false
        else parley._p_address_of(r.next_hop, service_name) is not null
      end
  ) then
    return true;
  end if;
  v_is_foreign := _p_may_lead_to.broker_instance <> (select b.service_broker_guid::text from parley._p_broker as b);
  return v_is_foreign is distinct from false
    and (
      v_is_foreign
      or exists (
        select
        from parley._p_route as r
        where coalesce(r.remote_service_name, '') = '' and r.next_hop = 'LOCAL' and not r.is_inbound
      )
    )
    and parley._p_serves_neighbours();
end
$$;

comment on function parley._p_may_lead_to(text, text) is
'Reports whether a message could ever come to a service by the present routes: it is in this database, or a route names
it or leads for any service to another broker, or the broker configuration service can be asked, or LOCAL leads to other
databases of the same daemon. Routes that have expired count, because alter_route revives them; whether what is behind a
route has the service cannot be known.
Arguments: service_name; broker_instance in canonical form, null for any.
Source: spec 6.2, 6.3.';

create function parley._p_allows_unknown_targets() returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce(
    lower(current_setting('parley.allow_unknown_targets', true) collate "C") in ('on', 'true', 'yes', '1'), false
  );
end
$$;

comment on function parley._p_allows_unknown_targets() is
'Reports whether the setting parley.allow_unknown_targets is on: dialogs begin as in SQL Server, whether anything leads
to their targets or not. A session, role or database has it; without it, or with anything else than on, it is off.';

create function parley._p_notice_slip(caller oid, to_service text, broker_instance text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_route record;
  v_near text;
begin
  -- Once a session for each name, or for the last one: whoever begins many dialogs means it.
  if current_setting('parley.noticed_service', true) is not distinct from to_service
    or parley._p_is_next_door(to_service) then
    return;
  end if;
  perform set_config('parley.noticed_service', to_service, false);
  v_route := parley._p_find_known_route(to_service, broker_instance, gen_random_uuid(), true);
  if v_route.step is not distinct from 4 or v_route.status is null or v_route.otherwise is not null then
    return;
  end if;
  v_near := parley._p_near_service(caller, to_service);
  if v_near is not null then
    raise notice using
      message = format('service "%s" is not in this database, and there is no route to it', to_service),
      detail = 'Service Broker error 9796. The dialog is begun, and what is sent on it waits until the service exists.',
      hint = format('Did you mean "%s"?', v_near);
  end if;
end
$$;

comment on function parley._p_notice_slip(oid, text, text) is
'Says by a notice which service may have been meant by one that is not in this database and that no route leads to. It
says nothing when none is like it.
Arguments: caller, who gets only names that he may see; to_service; broker_instance in canonical form, null for any.
Cost: a read of every service, once a session for each name.';

create function parley._p_require_target(
  caller oid, to_service text, broker_instance text, allow_unknown boolean
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_near text;
begin
  if parley._p_may_lead_to(to_service, broker_instance)
    or coalesce(allow_unknown, parley._p_allows_unknown_targets()) then
    if not parley._p_is_here(to_service, null) then
      perform parley._p_notice_slip(caller, to_service, broker_instance);
    end if;
    return true;
  end if;
  v_near := coalesce('Did you mean "' || parley._p_near_service(caller, to_service) || '"? ', '');
  if broker_instance <> (select b.service_broker_guid::text from parley._p_broker as b) then
    found := parley._p_raise(9795, 'unknown instance', broker_instance, to_service, left(to_service, 128));
  elsif exists (
    select from parley._p_route as r where r.remote_service_name is null and r.next_hop = 'LOCAL' and not r.is_inbound
  ) then
    found := parley._p_raise(9796, 'unknown target', to_service, v_near, left(to_service, 128));
  elsif exists (
    select from parley._p_route as r where r.remote_service_name is null and not r.is_inbound
  ) then
    found := parley._p_raise(9785, 'unknown target', to_service, v_near, left(to_service, 128));
  end if;
  return parley._p_raise(9750, 'unknown target', to_service, v_near, left(to_service, 128));
end
$$;

comment on function parley._p_require_target(oid, text, text, boolean) is
'Refuses a dialog when nothing could lead to its target.
Arguments: caller, who gets only names that he may see; to_service; broker_instance in canonical form, null for any;
allow_unknown, whether it may begin nevertheless, null as parley.allow_unknown_targets says.
Errors: 9750 no route for any service, 9785 only TRANSPORT, which the name does not fit, 9795 another broker instance,
9796 only LOCAL.';
