-- Rerouting: conversations with other databases follow their routes when a route is created, altered or dropped
-- (spec 6.2, 6.5).

create function parley._p_reroute(service_name text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  for v_endpoint in
    select e.*
    from parley._p_endpoint as e
    left join parley._p_parked as p on p.endpoint_id = e.endpoint_id and e.destination_id is null
    join parley._p_destination as d on d.destination_id = coalesce(e.destination_id, p.destination_id)
    cross join lateral parley._p_find_known_route(e.far_service, e.far_broker_instance, e.conversation_id, false) as r
    where (_p_reroute.service_name is null or e.far_service = _p_reroute.service_name)
      and e.state in ('CO', 'DO')
      -- To another database of the daemon it went by LOCAL.
      and case
        when d.address like 'broker:%' then r.address is distinct from 'LOCAL'
        else d.address not in (coalesce(r.address, ''), coalesce(r.otherwise, ''))
      end
    order by e.endpoint_id
    for update of e
  loop
    if v_endpoint.destination_id is not null then
      perform parley._p_unbind(v_endpoint, '');
    end if;
    delete from parley._p_parked as p where p.endpoint_id = v_endpoint.endpoint_id;
    select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = v_endpoint.endpoint_id;
    perform parley._p_bind(v_endpoint);
  end loop;
  perform parley._p_notify('parley', 'routes');
end
$$;

comment on function parley._p_reroute(text) is
'Takes conversations with other databases to where their routes lead now: to another address with all that is not
acknowledged, or, without a route, to wait for one. Waits for senders.
Arguments: service_name, only those with this far side (null: all).
Source: spec 6.2, 6.5.';
