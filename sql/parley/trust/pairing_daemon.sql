-- The pairings as the daemon uses them, and the command that has called another broker; see trust/pairing.sql.
--
-- An offer is what a broker states about itself: {"name", "address", "dialog_certificates", "databases": [{"instance",
-- "database", "services", "certificates"}]}. The certificates come last, to who is trusted; dialog_certificates are
-- their fingerprints, which people see first. It was proven only to come from the holder of the key, so nothing in it
-- may reach further than the peer itself. A peer whose name is taken is not the same peer unless an operator has said
-- so. A broker instance or an address of another peer is refused.

create function parley._p_own_offer() returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'name', current_database(),
    'dialog_certificates', (
      select coalesce(jsonb_agg(encode(sha256(c), 'hex') order by sha256(c)), '[]')
      from parley._p_own_dialog_certificates() as c
    ),
    'databases', jsonb_build_array(jsonb_build_object(
      'instance', b.service_broker_guid,
      'database', current_database(),
      'services',
      (
        select coalesce(jsonb_agg(s.name order by s.name), '[]') from parley._p_service as s where s.service_id >= 65536
      ),
      'certificates', (
        select coalesce(jsonb_agg(translate(encode(c, 'base64'), E'\n', '') order by sha256(c)), '[]')
        from parley._p_own_dialog_certificates() as c
      )
    ))
  )
  from parley._p_broker as b
$$;

comment on function parley._p_own_offer() is 'Gives what this database says about itself to a peer.';

create function parley._p_is_pairing_open() returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (select from parley._p_pairing as p where parley._p_is_pairing_open(p))
$$;

comment on function parley._p_is_pairing_open() is 'Reports whether unknown peers may ask to be trusted now.';

create function parley._p_is_pairing_window_open() returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (select from parley._p_pairing as p where p.secret is null and parley._p_is_pairing_open(p))
$$;

comment on function parley._p_is_pairing_window_open() is
'Reports whether unknown peers may ask to be trusted now without an invitation.';

create function parley._p_route_to_peer(peer_name text, offer jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_service record;
  v_name text;
begin
  if offer->>'address' is null then
    return;
  end if;
  for v_service in
    select s.name, d.value->>'instance' as instance
    from jsonb_array_elements(offer->'databases') as d
    cross join lateral jsonb_array_elements_text(d.value->'services') as s (name)
    order by s.name
  loop
    v_name := left(peer_name || ' ' || v_service.name, 128);
    begin
      perform parley.create_route(
        name => v_name, address => offer->>'address', service_name => v_service.name,
        broker_instance => v_service.instance, caller => parley.current_caller()
      );
    exception
      -- 2714: made by an earlier pairing.
      when sqlstate 'SB23E' then
        perform parley.alter_route(name => v_name, address => offer->>'address', broker_instance => v_service.instance,
          caller => parley.current_caller());
    end;
  end loop;
end
$$;

comment on function parley._p_route_to_peer(text, jsonb) is
'Makes routes to the services that a peer has offered, at its address; none when it has not said where it listens.
Errors: those of create_route.';

create function parley._p_pair(
  fingerprint text, certificate bytea, not_before timestamptz, not_after timestamptz, offer jsonb, peer_name text,
  role oid, with_routes boolean, with_certificates boolean
) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_offered text := left(coalesce(nullif(offer->>'name', ''), 'peer'), 100);
  v_instances uuid[] := array(
    select (d.value->>'instance')::uuid from jsonb_array_elements(coalesce(offer->'databases', '[]')) as d order by 1
  );
  v_address text := parley._p_peer_address(offer->>'address');
  v_peer parley._p_peer;
  v_name text;
  v_other text;
begin
  select p.name into v_name
  from parley._p_peer_certificate as c
  join parley._p_peer as p using (peer_id)
  where c.fingerprint = _p_pair.fingerprint;
  v_name := coalesce(
    v_name, peer_name,
    case
      when exists (select from parley._p_peer as p where p.name = v_offered)
        then v_offered || ' ' || left(fingerprint, 8)
      else v_offered
    end
  );
  select * into v_peer from parley._p_peer as p where p.name = v_name for update;
  if v_peer.revoked_at is not null then
    found := parley._p_raise(28034, 'pairing', v_name);
  end if;
  select p.name into v_other
  from parley._p_peer as p
  where (
      p.broker_instances && v_instances
      or exists (
        select from parley._p_peer_broker as b where b.peer_id = p.peer_id and b.broker_instance = any (v_instances)
      )
    )
    and p.name <> v_name and p.revoked_at is null
  limit 1;
  if found then
    found := parley._p_raise(2714, 'broker of a peer', v_other);
  end if;
  -- At the address of a peer nobody else may answer: who could claim it would be let in there.
  select p.name into v_other
  from parley._p_peer as p
  where p.address = v_address and p.name <> v_name and p.revoked_at is null
  limit 1;
  if found then
    found := parley._p_raise(2714, 'address of a peer', v_address, v_other);
  end if;
  if v_peer.peer_id is null then
    insert into parley._p_peer (peer_id, name, role, address, broker_instances)
    values (nextval('parley._p_object_id'), v_name, role::regrole, v_address, v_instances)
    returning * into v_peer;
  else
    update parley._p_peer as p
    set role = coalesce(_p_pair.role::regrole, p.role), address = coalesce(v_address, p.address),
      broker_instances = array(select distinct i from unnest(p.broker_instances || v_instances) as i order by i),
      modify_date = clock_timestamp()
    where p.peer_id = v_peer.peer_id;
    if role <> v_peer.role::oid then
      perform parley._p_map_dialog_certificates(v_peer.peer_id, role::regrole);
    end if;
    select * into v_peer from parley._p_peer as p where p.peer_id = v_peer.peer_id;
  end if;
  perform parley._p_settle_brokers(v_peer.peer_id, v_instances);
  if not exists (select from parley._p_peer_certificate as c where c.fingerprint = _p_pair.fingerprint) then
    found := parley._p_add_peer_certificate(v_peer.peer_id, fingerprint, certificate, not_before, not_after, null);
  end if;
  if with_routes then
    perform parley._p_route_to_peer(v_name, offer);
  end if;
  if with_certificates then
    perform parley._p_take_dialog_certificate(v_peer, offer);
  end if;
  perform parley._p_notify_peer_change();
  return v_name;
end
$$;

comment on function parley._p_pair(text, bytea, timestamptz, timestamptz, jsonb, text, oid, boolean, boolean) is
'Trusts a broker that has been paired with, and gives the name under which. One that is known
already is brought up to date.
Arguments: fingerprint, certificate and its dates; offer; peer_name, as an operator has said, or null; role or null;
with_routes; with_certificates.
Errors: 2714 its broker instance or its address is that of another peer, 8402 malformed address, 15297 and 28055 of
dialog certificates, 28034 revoked, 28055 expired, and those of create_route.';

create function parley._p_find_invitation(invitation uuid) returns bytea
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select p.secret
  from parley._p_pairing as p
  where p.pairing_id = invitation and p.secret is not null and parley._p_is_pairing_open(p)
$$;

comment on function parley._p_find_invitation(uuid) is
'Gives the secret of an invitation that can still be used, null otherwise.';

create function parley._p_record_pairing_failure(invitation uuid) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  update parley._p_pairing as p set failures = p.failures + 1 where p.pairing_id = invitation
$$;

comment on function parley._p_record_pairing_failure(uuid) is 'Counts a wrong proof; the fifth one ends an invitation.';

create function parley._p_redeem_invitation(
  invitation uuid, fingerprint text, certificate bytea, not_before timestamptz, not_after timestamptz, offer jsonb
) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pairing parley._p_pairing;
begin
  select * into v_pairing from parley._p_pairing as p where p.pairing_id = invitation for update;
  if not found or v_pairing.secret is null or not parley._p_is_pairing_open(v_pairing) then
    return null;
  end if;
  update parley._p_pairing as p set closed_at = clock_timestamp() where p.pairing_id = invitation;
  return parley._p_pair(
    fingerprint, certificate, not_before, not_after, offer, v_pairing.peer_name, v_pairing.role, v_pairing.is_routed,
    v_pairing.is_certified
  );
end
$$;

comment on function parley._p_redeem_invitation(uuid, text, bytea, timestamptz, timestamptz, jsonb) is
'Trusts who has proven to have an invitation, once: gives the name of the peer, null when
the invitation is used or over.
Errors: those of _p_pair.';

create function parley._p_request_pairing(
  fingerprint text, certificate bytea, offer jsonb, code text, remote text
) returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pairing parley._p_pairing;
  v_request uuid;
begin
  select * into v_pairing
  from parley._p_pairing as p
  where p.secret is null and parley._p_is_pairing_open(p)
  order by p.opened_at desc
  limit 1
  for update;
  -- Unknown peers must not fill the table or the operator's screen.
  if not found
    or (select count(*) from parley._p_pairing_request as r where r.pairing_id = v_pairing.pairing_id) >= 20 then
    return null;
  end if;
  insert into parley._p_pairing_request (pairing_id, fingerprint, certificate, offer, code, remote)
  values (v_pairing.pairing_id, fingerprint, certificate, offer, code, remote)
  returning request_id into v_request;
  return v_request;
end
$$;

comment on function parley._p_request_pairing(text, bytea, jsonb, text, text) is
'Records that a broker asks to be trusted; gives the id of the request, null when no window
is open, or too many have asked.';

create function parley._p_pairing_request_state(request uuid) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case when r.state in ('WAITING', 'CONFIRMED') and not parley._p_is_pairing_open(p) then 'GONE' else r.state end
  from parley._p_pairing_request as r
  join parley._p_pairing as p using (pairing_id)
  where r.request_id = request
$$;

comment on function parley._p_pairing_request_state(uuid) is
'Gives the state of a request; GONE too when its window is over.';

create function parley._p_leave_pairing(request uuid) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  update parley._p_pairing_request as r
  set state = 'GONE'
  where r.request_id = request and r.state in ('WAITING', 'CONFIRMED')
$$;

comment on function parley._p_leave_pairing(uuid) is 'Records that the broker that has asked does not wait any more.';

create function parley._p_complete_pairing(
  request uuid, not_before timestamptz, not_after timestamptz, offer jsonb
) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_request parley._p_pairing_request;
  v_pairing parley._p_pairing;
begin
  select p.* into v_pairing
  from parley._p_pairing_request as r
  join parley._p_pairing as p using (pairing_id)
  where r.request_id = request
  for update of p;
  if not found or not parley._p_is_pairing_open(v_pairing) then
    return null;
  end if;
  update parley._p_pairing_request as r
  set state = 'DONE'
  where r.request_id = request and r.state = 'CONFIRMED'
  returning *
  into v_request;
  if not found then
    return null;
  end if;
  update parley._p_pairing as p set closed_at = clock_timestamp() where p.pairing_id = v_request.pairing_id;
  return parley._p_pair(
    v_request.fingerprint, v_request.certificate, not_before, not_after,
    -- The operator has confirmed exactly what he saw.
    offer || jsonb_build_object('dialog_certificates', coalesce(v_request.offer->'dialog_certificates', '[]')),
    v_request.peer_name, v_request.role, v_request.is_routed, v_request.is_certified
  );
end
$$;

comment on function parley._p_complete_pairing(uuid, timestamptz, timestamptz, jsonb) is
'Trusts a broker that has asked, once both sides have confirmed, and closes the window: gives the name of the peer, null
when it is not confirmed or over.
Errors: those of _p_pair.';
