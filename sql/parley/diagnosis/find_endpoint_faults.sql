-- Checks of broker endpoints (spec 9.4: endpoint), as far as this database knows: a daemon that listens, and trust in
-- who answers at the address of a route. The reports of the other side of a route are compared by
-- parley.DiagnoseDialog, which asks both.
--
-- Daemons report to the database where they listen (views/endpoint_views.sql). An address belongs to a peer that says
-- so; at the address of a peer nobody else may answer. A broker that is no peer may be vouched for by a certificate
-- authority of the daemon, which the database does not know.

create function parley._p_wanted_addresses(scope parley._p_scope) returns table (
  service_name text, address text, since timestamptz
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select w.service_name, case h.n when 1 then h.host else 'tcp://' || h.host end, w.since
  from parley._p_wanted_services(scope) as w
  cross join lateral (select parley._p_leads_to(w.service_name, w.broker_instance) as next_hop) as r
  cross join lateral string_to_table(r.next_hop, ',') with ordinality as h (host, n)
  where r.next_hop like 'tcp://%'
$$;

comment on function parley._p_wanted_addresses(parley._p_scope) is
'Gives the network addresses to which routes lead for the services that are wanted; of a mirrored database both.
Result: service_name; address, tcp://host:port; since, when the first dialog that needs it was begun, null
for one that is only asked for.';

create function parley._p_find_endpoint_faults(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with wanted as (
    select w.address, min(w.service_name) as service_name, min(w.since) as since
    from parley._p_wanted_addresses(scope) as w
    group by w.address
  ), at_address as (
    select w.address, w.service_name, w.since, p.name, p.state, p.fingerprints[1] as fingerprint,
      exists (
        select from parley.peer_certificates as k where k.peer_id = p.peer_id and k.state in ('TRUSTED', 'EXPIRED')
      ) as has_begun
    from wanted as w
    left join parley.peers as p on p.address = w.address
  )
  select 'endpoint-missing', 'address', min(w.address),
    format(
      'The route to the service "%s" leads to another server, and no daemon of this database listens for other '
        || 'servers.',
      min(w.service_name)
    ),
    min(w.since),
    'parley serve --listen :4022'
  from wanted as w
  having count(*) > 0 and not exists (select from parley._p_listening_report)
  union all
  select 'peer-not-trusted', 'peer', a.name,
    format('It is at the address %s, to which the route to the service "%s" leads, and ', a.address, a.service_name)
      || case a.state
        when 'REVOKED' then 'it was revoked: there are no links with it.'
        when 'WITHOUT KEY' then 'has no key: nobody can answer there.'
        else 'its key is not valid yet: there are no links with it.'
      end,
    a.since,
    case a.state
      when 'REVOKED'
        then format('select parley.drop_peer(%L);  -- if it may be trusted again; then parley pair with it', a.name)
      when 'WITHOUT KEY'
        then format(
          'select parley.alter_peer(%L, add_fingerprint => ''<fingerprint>'');  -- see parley certificate list there',
          a.name
        )
      else '-- set the clocks of both servers by NTP, or wait until the key is valid'
    end
  from at_address as a
  -- That a key has expired is found with the certificates (diagnosis/find_certificate_faults.sql).
  where (a.state in ('REVOKED', 'WITHOUT KEY') or a.state = 'TRUSTED' and not a.has_begun)
    and not exists (select from at_address as o where o.address = a.address and o.state = 'TRUSTED' and o.has_begun)
  union all
  select 'peer-unknown', 'address', a.address,
    format('The route to the service "%s" leads there, and this database trusts no peer: ', a.service_name)
      || 'only a certificate authority of the daemon could vouch for it.',
    a.since,
    'parley pair <host>:4022  -- not needed when the daemon has --authorities'
  from at_address as a
  where a.name is null
    -- Any peer may answer at an address that is no other peer's.
    and not exists (select from parley.peers as p where p.state in ('TRUSTED', 'EXPIRED'))
$$;

comment on function parley._p_find_endpoint_faults(parley._p_scope) is
'Finds routes to other servers that no daemon here can follow, or at whose address a broker would answer that is not
trusted, or that nobody knows.
Source: spec 9.4, endpoint.';
