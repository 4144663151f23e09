-- Which way messages of a conversation go: the candidates of spec 6.2, and the choice among them of 6.3.
--
-- One statement ranks all candidates of all steps, so the ordinary case costs one index probe for each of three keys:
-- the service, any service, and the broker configuration service. Among equals a hash of the conversation and the
-- address decides (the lowest wins). So a conversation always goes the same way, conversations spread evenly, and a
-- route that comes or goes moves only those that it concerns. The daemon has the same rule for inbound routes, in
-- memory (inbound_route.go), so the hash is one that both can reckon: this is its owner. This database cannot know
-- whether another one of the same daemon has a service. Then the answer is LOCAL, and beside it where else the
-- conversation goes (otherwise), or why it waits (status), when none has.
-- Locks: none, but for those of a request to the broker configuration service (conversation/dynamic_routing.sql).

create function parley._p_best_route(
  far_service text, far_broker_instance text, conversation_id uuid, is_inbound boolean, may_ask boolean,
  beside_local integer, out step integer, out next_hop text, out broker_instance text
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  select c.step, c.next_hop, c.broker_instance into step, next_hop, broker_instance
  from (
    select
      case
        when r.remote_service_name = far_service and r.broker_instance = far_broker_instance then 1
        when r.remote_service_name = far_service and r.broker_instance is null then 2
        when r.remote_service_name = far_service and far_broker_instance is null then 3
        when r.remote_service_name is null then 5
        when r.remote_service_name <> far_service and may_ask then 4
      end as step,
      r.next_hop, r.rank, r.broker_instance, r.route_id
    from parley._p_route as r
    where coalesce(r.remote_service_name, '') = any (array[far_service, 'SQL/ServiceBroker/BrokerConfiguration', ''])
      and r.is_inbound = _p_best_route.is_inbound
      and (r.expires_at is null or r.expires_at > clock_timestamp())
  ) as c
  where c.step is not null
    and (beside_local is null or (c.step = beside_local and c.rank > 2))
  order by c.step,
    case c.step when 3 then sha256(uuid_send(conversation_id) || convert_to(c.broker_instance, 'UTF8')) end,
    c.broker_instance,
    c.rank,
    sha256(uuid_send(conversation_id) || convert_to(c.next_hop, 'UTF8')),
    c.route_id
  limit 1;
end
$$;

comment on function parley._p_best_route(text, text, uuid, boolean, boolean, integer) is
'Gives the best route that has not expired, by the steps of spec 6.2 and, among those of the first step that has any,
the ranks of 6.3; nulls when there is none. Step 4 means that the broker configuration service can be asked.
Arguments: far_service and far_broker_instance (null: any); conversation_id, which spreads conversations;
is_inbound, which table; may_ask, whether step 4 counts; beside_local, only what is left of a step when LOCAL is
not to be had (null: everything).
Source: spec 6.2, 6.3.';

create function parley._p_address_of(next_hop text, service_name text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return case next_hop
    when 'TRANSPORT' then parley._p_network_address(substring(service_name from '^[^:/]+://[^/]+'))
    else next_hop
  end;
end
$$;

comment on function parley._p_address_of(text, text) is
'Gives the address that a next hop means for a service: for TRANSPORT, that with which its name
begins, or null when it does not.';

create function parley._p_is_here(service_name text, broker_instance text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (select from parley._p_service as s where s.name = service_name)
    and (broker_instance is null or broker_instance = (select b.service_broker_guid::text from parley._p_broker as b));
end
$$;

comment on function parley._p_is_here(text, text) is
'Reports whether this database has a service, and is the broker instance that is asked for (null: any).';

create function parley._p_why_no_route(far_service text, far_broker_instance text, is_local boolean) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if parley._p_is_asking(far_service, 6) then
    return parley._p_status(9770, 'route asked', far_service);
  elsif far_broker_instance <> (select b.service_broker_guid::text from parley._p_broker as b) then
    return parley._p_status(9795, 'not this database', far_broker_instance);
  elsif is_local then
    return parley._p_status(
      9796, 'not in this database', far_service, parley._p_did_you_mean(0, 'service', far_service)
    );
  end if;
  return parley._p_status(9750, 'no route', far_service, parley._p_did_you_mean_far(0, far_service));
end
$$;

comment on function parley._p_why_no_route(text, text, boolean) is
'Explains why a message waits for a route: 9770 asked, 9795 another instance, 9796 LOCAL and no such service
(is_local), 9750 no route (spec 6.12).';

create function parley._p_find_known_route(
  far_service text, far_broker_instance text, conversation_id uuid, may_ask boolean,
  out step integer, out address text, out status text, out otherwise text, out broker_instance text
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_route record := parley._p_best_route(far_service, far_broker_instance, conversation_id, false, may_ask, null);
  v_own text;
begin
  step := v_route.step;
  if step = 4 then
    return;
  end if;
  broker_instance := coalesce(far_broker_instance, v_route.broker_instance);
  if step is null and far_broker_instance is not null then
    select b.service_broker_guid::text into v_own from parley._p_broker as b;
    if far_broker_instance <> v_own or parley._p_is_here(far_service, v_own) then
      -- Step 6. Whether another instance is at hand only the daemon knows.
      v_route.next_hop := 'LOCAL';
    end if;
  end if;
  address := parley._p_address_of(v_route.next_hop, far_service);
  if address is null and v_route.next_hop = 'TRANSPORT' then
    status := parley._p_status(9785, 'TRANSPORT', far_service);
  elsif address is null then
    status := parley._p_why_no_route(far_service, broker_instance, false);
  elsif address = 'LOCAL' and not parley._p_is_here(far_service, broker_instance) then
    status := parley._p_why_no_route(far_service, broker_instance, true);
    otherwise := parley._p_address_of(
      (
        parley._p_best_route(
          far_service, broker_instance, conversation_id, false, false, case step when 3 then 1 else step end
        )
      ).next_hop,
      far_service
    );
  end if;
end
$$;

comment on function parley._p_find_known_route(text, text, uuid, boolean) is
'Finds the way of a conversation to its far side, as _p_find_route, without asking the broker configuration service:
step is 4 when that is to be asked.
Arguments: those of _p_find_route; may_ask, whether step 4 counts.
Source: spec 6.2, 6.3.';

create function parley._p_find_route(
  far_service text, far_broker_instance text, conversation_id uuid,
  out address text, out status text, out otherwise text, out broker_instance text
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_route record := parley._p_find_known_route(far_service, far_broker_instance, conversation_id, true);
begin
  if v_route.step = 4 then
    if parley._p_ask_broker_configuration(far_service, 6) = 'asked' then
      status := parley._p_why_no_route(far_service, far_broker_instance, false);
      return;
    end if;
    v_route := parley._p_find_known_route(far_service, far_broker_instance, conversation_id, false);
  end if;
  address := v_route.address;
  status := v_route.status;
  otherwise := v_route.otherwise;
  broker_instance := v_route.broker_instance;
end
$$;

comment on function parley._p_find_route(text, text, uuid) is
'Finds the way of a conversation to its far side, and asks the broker configuration service when that is the next step.
Arguments: far_service; far_broker_instance in canonical form, null as long as it may be any; conversation_id.
Gives address: LOCAL, or tcp://host:port in lower case, with ,host:port of a mirror behind it, or null when it has to
wait, for the reason in status. With LOCAL, when this database does not have the service or is not the instance:
otherwise, the address to go to when no other database of the daemon has it, and status, why it waits when that is null
too. broker_instance: the instance, as the conversation or else the route says.
Source: spec 6.2, 6.3, 6.5, 6.12.';
