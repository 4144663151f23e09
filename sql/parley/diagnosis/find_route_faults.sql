-- Checks of routes: is there one to each service that is wanted, and do those that there are lead anywhere?
--
-- The check wants the services of a dialog that was asked for, of the side that is not here the way back too; or else
-- those of conversations that have not reached their far side. The host behind an address cannot be seen from here; the
-- run-time checks report when it does not answer.

create function parley._p_leads_to(service_name text, broker_instance text) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case when r.step = 4 then 'ASK' else coalesce(r.otherwise, r.address) end
  from parley._p_find_known_route(service_name, broker_instance, '00000000-0000-0000-0000-000000000000', true) as r
$$;

comment on function parley._p_leads_to(text, text) is
'Shows where a conversation would go, for diagnosis, without asking for a route: an address, LOCAL, ASK for the broker
configuration service, null for nowhere. Of several ways it gives one.
Arguments: service_name; broker_instance, null for any.';

create function parley._p_cure_of_slip(
  reader oid, service_name text, broker_instance text, otherwise text
) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when parley._p_may_lead_to(service_name, broker_instance) then otherwise
    when n.near is not null and broker_instance is null
      then e.statement || '  -- and begin anew with ' || quote_literal(n.near)
    when otherwise like '%  -- %' then otherwise || '; if the name is wrong: ' || e.statement
    else otherwise || '  -- if the name is wrong: ' || e.statement
  end
  from (select parley._p_near_service(coalesce(reader, 0), service_name)) as n (near)
  cross join lateral (
    select format(
      'select parley.end_conversation(conversation_handle, cleanup => true) from parley.conversation_endpoints '
        || 'where far_service = %L and is_initiator = 1 and state in (''SO'', ''CO'', ''DO'');',
      service_name
    )
  ) as e (statement)
$$;

comment on function parley._p_cure_of_slip(oid, text, text, text) is
'Gives the cure of conversations that wait for a service. Where nothing could lead to it, its name may be mistyped: END
CONVERSATION would wait as what was sent does, so they have to be cleaned up.
Arguments: reader, who gets only names that he may see; service_name; broker_instance, null for any; otherwise, the cure
where something may lead there, to which the clean-up is added where no name is like it.';

create function parley._p_wanted_services(scope parley._p_scope) returns table (
  service_name text, broker_instance text, since timestamptz
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select s.name, null::text, null::timestamptz
  from unnest(array[scope.to_service, scope.from_service]) with ordinality as s (name, n)
  -- The initiator's side is wanted where it is far away.
  where s.name is not null and (s.n = 1 or not parley._p_is_here(s.name, null))
  union all
  select e.far_service, e.far_broker_instance, min(e.begun_at)
  from parley._p_endpoint as e
  where scope.from_service is null
    and scope.to_service is null
    and e.far_endpoint_id is null
    and e.state in ('SO', 'CO')
  group by e.far_service, e.far_broker_instance
$$;

comment on function parley._p_wanted_services(parley._p_scope) is
'Gives the far sides to which there should be routes.';

create function parley._p_find_missing_routes(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'route-missing', 'service', w.service_name,
    format('No route leads to the service "%s"', w.service_name)
      || coalesce(format(' of broker instance %s.', w.broker_instance), '.')
      || case
        when parley._p_is_here(w.service_name, null)
          then ' It is in this database: the route AutoCreatedLocal was dropped.'
        else parley._p_did_you_mean_far(coalesce(scope.reader, 0), w.service_name)
      end,
    w.since,
    case
      when parley._p_is_here(w.service_name, null)
        then format('select parley.create_route(%L, ''LOCAL'', %L);', left(w.service_name, 128), w.service_name)
      when w.since is null then r.cure
      else parley._p_cure_of_slip(scope.reader, w.service_name, w.broker_instance, r.cure)
    end
  from parley._p_wanted_services(scope) as w
  cross join lateral (
    select format(
      'select parley.create_route(%L, ''tcp://<host>:4022'', %L);', left(w.service_name, 128), w.service_name
    )
  ) as r (cure)
  where parley._p_leads_to(w.service_name, w.broker_instance) is null
$$;

comment on function parley._p_find_missing_routes(parley._p_scope) is
'Finds services that are wanted and to which no route leads.';

create function parley._p_find_route_faults(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'route-expired', 'route', r.name,
    format(
      'It leads to the service "%s" and expired at %s: what goes there waits, or takes another way.',
      r.remote_service_name, r.expires_at
    ),
    r.expires_at,
    format('select parley.alter_route(%L, lifetime => 86400);  -- seconds', r.name)
  from parley._p_route as r
  where r.expires_at <= clock_timestamp()
    and not r.is_inbound
    and exists (
      select
      from parley._p_wanted_services(scope) as w
      where w.service_name = r.remote_service_name
        and (w.broker_instance is null or coalesce(r.broker_instance, w.broker_instance) = w.broker_instance)
    )
    and not exists (
      select
      from parley._p_route as o
      where o.remote_service_name = r.remote_service_name
        and o.broker_instance is not distinct from r.broker_instance
        and not o.is_inbound
        and (o.expires_at is null or o.expires_at > clock_timestamp())
    )
  union all
  select
    case when l.is_here then 'route-to-old-broker' else 'route-to-nowhere' end,
    'route', l.name,
    case
      when l.is_here then format(
        'It leads to the service "%s", which is here, and names the broker instance %s, which this database is not: '
          || 'nothing goes that way.',
        l.remote_service_name, l.broker_instance
      )
      else format(
        'It leads to the service "%s" in this server, and this database has no such service.', l.remote_service_name
      )
        || parley._p_did_you_mean(coalesce(scope.reader, 0), 'service', l.remote_service_name)
    end,
    null,
    case
      when l.is_here then format('select parley.alter_route(%L, broker_instance => ''current database'');', l.name)
      else format(
        'select parley.create_service(%L, ''<queue>'');  -- or mend the route; or another database of the daemon '
          || 'has it',
        l.remote_service_name
      )
    end
  from (
    select r.name, r.remote_service_name, r.broker_instance, parley._p_is_here(r.remote_service_name, null) as is_here,
      r.broker_instance = b.service_broker_guid::text as is_own
    from parley._p_route as r
    cross join parley._p_broker as b
    where r.next_hop = 'LOCAL'
      and r.remote_service_name is not null
      and not r.is_inbound
      and (r.expires_at is null or r.expires_at > clock_timestamp())
  ) as l
  -- A service that is not here may be in the database that a route names.
  where (
    coalesce(scope.to_service, scope.from_service) is null or l.remote_service_name in (
      scope.to_service, scope.from_service
    )
  )
    and ((l.is_here and not l.is_own) or (not l.is_here and l.is_own is distinct from false))
$$;

comment on function parley._p_find_route_faults(parley._p_scope) is
'Finds routes that have expired and are missed, and LOCAL routes that lead nowhere, or to a broker
instance that this database is not.';
