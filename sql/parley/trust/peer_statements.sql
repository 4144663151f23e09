-- Trusting peers, changing, revoking and dropping them. For administrators.
--
-- Every change notifies the daemons, which close the links of peers that are no longer trusted and let in those that
-- are; a daemon that misses the notification polls within seconds.

create function parley._p_notify_peer_change() returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  select parley._p_notify('parley', 'peers')
$$;

comment on function parley._p_notify_peer_change() is 'Notifies the daemons that the list of peers has changed.';

create function parley.trust_peer(
  fingerprint text,
  name text,
  role text default null,
  certificate bytea default null,
  not_before timestamptz default null,
  not_after timestamptz default null,
  address text default null,
  broker_instances uuid[] default null,
  is_forwarder boolean default false,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_role oid;
  v_id integer;
begin
  found := parley._p_require_administrator(v_caller, 'trust_peer');
  name := parley._p_name('peer', name);
  v_role := parley._p_peer_role(role);
  address := parley._p_peer_address(address);
  insert into parley._p_peer (peer_id, name, role, address, broker_instances, is_forwarder)
  values (
    nextval('parley._p_object_id'), trust_peer.name, v_role, trust_peer.address,
    coalesce(trust_peer.broker_instances, '{}'),
    coalesce(trust_peer.is_forwarder, false)
  )
  on conflict do nothing
  returning peer_id into v_id;
  if v_id is null then
    found := parley._p_raise(2714, 'peer', name);
  end if;
  found := parley._p_add_peer_certificate(
    v_id, parley._p_fingerprint(fingerprint), certificate, not_before, not_after, null
  );
  perform parley._p_settle_brokers(v_id, trust_peer.broker_instances);
  perform parley._p_notify_peer_change();
  return v_id;
end
$$;

comment on function parley.trust_peer(
  text, text, text, bytea, timestamptz, timestamptz, text, uuid[], boolean, parley.caller
) is
'Trusts a broker elsewhere: links with it are allowed, and what it sends is judged by the grants of a
role. Returns the id of the peer.
Arguments: fingerprint, the SHA-256 of its public key in hexadecimal digits, as parley certificate list shows it there;
name, any name for it; role, the role of this database that it acts as (null or PUBLIC: none, only what is granted to
PUBLIC counts); certificate, X.509 in DER, for people to read; not_before and not_after, when the key may be used (null:
as the certificate says that the peer shows); address, where it listens, tcp://host:port: there nobody else may answer
(null: any trusted peer may); broker_instances, the brokers in whose name it alone may speak (those of which nobody has
said anything become those of the peer that speaks in their name first); is_forwarder, whether it may pass on what other
brokers send, although these are peers themselves.
Errors: 2714 name or key exists, 8402 malformed fingerprint or address, 9609 bad name, 15151 no such role or not an
administrator, 28055 the key has expired.
Source: spec 7.2.';

create function parley.alter_peer(
  name text,
  new_name text default null,
  role text default null,
  add_fingerprint text default null,
  certificate bytea default null,
  not_before timestamptz default null,
  not_after timestamptz default null,
  drop_fingerprint text default null,
  address text default null,
  broker_instances uuid[] default null,
  is_forwarder boolean default null,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_peer parley._p_peer;
  v_role regrole;
begin
  found := parley._p_require_administrator(v_caller, 'alter_peer');
  if coalesce(
    new_name, role, add_fingerprint, drop_fingerprint, address, broker_instances::text, is_forwarder::text
  ) is null then
    found := parley._p_raise(8493, 'nothing', 'peer', name);
  end if;
  v_peer := parley._p_find_peer(alter_peer.name);
  if v_peer.revoked_at is not null then
    found := parley._p_raise(28034, 'revoked', name, v_peer.revoked_at::text);
  end if;
  if new_name <> v_peer.name and exists (select from parley._p_peer as p where p.name = alter_peer.new_name) then
    found := parley._p_raise(2714, 'new name of a peer', new_name);
  end if;
  if add_fingerprint is not null then
    found := parley._p_add_peer_certificate(
      v_peer.peer_id, parley._p_fingerprint(add_fingerprint), certificate, not_before, not_after, null
    );
  end if;
  if drop_fingerprint is not null then
    delete from parley._p_peer_certificate as c
    where c.peer_id = v_peer.peer_id and c.fingerprint = parley._p_fingerprint(drop_fingerprint);
    if not found then
      found := parley._p_raise(15151, 'key of a peer', name);
    end if;
  end if;
  new_name := case when new_name is null then v_peer.name else parley._p_name('peer', new_name) end;
  v_role := case when role is null then v_peer.role else parley._p_peer_role(role) end;
  address := case when address is null then v_peer.address when address <> '' then parley._p_peer_address(address) end;
  update parley._p_peer as p
  set name = alter_peer.new_name,
    role = v_role,
    address = alter_peer.address,
    broker_instances = coalesce(alter_peer.broker_instances, p.broker_instances),
    is_forwarder = coalesce(alter_peer.is_forwarder, p.is_forwarder),
    modify_date = clock_timestamp()
  where p.peer_id = v_peer.peer_id;
  if alter_peer.broker_instances is not null then
    perform parley._p_settle_brokers(v_peer.peer_id, alter_peer.broker_instances);
    delete from parley._p_peer_broker as b where b.peer_id = v_peer.peer_id;
  end if;
  if v_role is distinct from v_peer.role then
    perform parley._p_map_dialog_certificates(v_peer.peer_id, v_role);
  end if;
  perform parley._p_notify_peer_change();
end
$$;

comment on function parley.alter_peer(
  text, text, text, text, bytea, timestamptz, timestamptz, text, text, uuid[], boolean, parley.caller
) is
'Changes what is given of a peer; what is null stays as it is. A dialog certificate that came with it stands for its new
role; it is dropped when that is none, or has other certificates.
Arguments: name; new_name; role, PUBLIC for none; add_fingerprint, a further key, with certificate, not_before and
not_after as trust_peer takes them; drop_fingerprint, a key that is no longer trusted; address, empty for none;
broker_instances, all of them, also those that it has spoken for first; is_forwarder.
Errors: 2714 name or key exists, 8402 malformed fingerprint or address, 8493 nothing to change, 9609 bad name, 15151 not
found or not an administrator, 28034 the peer is revoked, 28055 the key has expired.
Source: spec 7.2, 7.5.';

create function parley.revoke_peer(name text, caller parley.caller default parley.current_caller()) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_peer parley._p_peer;
begin
  found := parley._p_require_administrator(v_caller, 'revoke_peer');
  v_peer := parley._p_find_peer(revoke_peer.name);
  update parley._p_peer as p
  set revoked_at = clock_timestamp(), modify_date = clock_timestamp()
  where p.peer_id = v_peer.peer_id and p.revoked_at is null;
  delete from parley._p_peer_broker as b where b.peer_id = v_peer.peer_id;
  perform parley._p_revoke_dialog_certificates(v_peer.peer_id);
  perform parley._p_notify_peer_change();
end
$$;

comment on function parley.revoke_peer(text, parley.caller) is
'Trusts a peer no more, with all its keys: nothing that it sends is accepted from now on, and its links are closed
within seconds. It stays in the list, so that its keys are refused whoever vouches for them. A dialog certificate that
came with it is revoked too. To trust it anew, drop it first.
Errors: 15151 not found or not an administrator.
Source: spec 7.2.';

create function parley.drop_peer(name text, caller parley.caller default parley.current_caller()) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_peer parley._p_peer;
begin
  found := parley._p_require_administrator(v_caller, 'drop_peer');
  v_peer := parley._p_find_peer(drop_peer.name);
  perform parley._p_drop_dialog_certificates(v_peer.peer_id);
  delete from parley._p_peer as p where p.peer_id = v_peer.peer_id;
  perform parley._p_notify_peer_change();
end
$$;

comment on function parley.drop_peer(text, parley.caller) is
'Forgets a peer, with the dialog certificate that came with it: its key is trusted no longer. Where a
certificate authority admits peers, it may come in again with a certificate of that authority:
revoke_peer prevents that, this does not.
Errors: 15151 not found or not an administrator.
Source: spec 7.2.';
