-- Peers: the brokers elsewhere whose keys this database trusts (spec 7.2), as logins with
-- certificates in SQL Server's master.
--
-- A peer is known by the fingerprint of its public key: the SHA-256 of the SubjectPublicKeyInfo, in hex. It may have
-- several, so that the key can be changed while the old one is in use. A peer is mapped to a role of this database,
-- whose grants count for its messages; without a role only grants to PUBLIC count. A revoked peer stays in
-- the list, so that neither a certificate authority nor a successor of its key lets it in again.
-- The daemon reads the list and decides on links; the functions in trust/identities.sql
-- decide on what arrives over them.
-- Locks: the peer's row. Everything that changes it notifies the daemons. Cost: none for senders and readers.

create table parley._p_peer (
  peer_id integer primary key,
  name text collate "C" not null unique check (name <> '' and length(name) <= 128),
  role parley._p_role_oid,
  address text,
  broker_instances uuid[] not null default '{}',
  is_forwarder boolean not null default false,
  revoked_at timestamptz,
  create_date timestamptz not null default now(),
  modify_date timestamptz not null default now()
);

comment on table parley._p_peer is 'Brokers elsewhere that are, or were, trusted here.';

create trigger _p_number_roles after insert or update of role on parley._p_peer
for each row execute function parley._p_number_roles('role');
comment on column parley._p_peer.role is 'Role whose grants count for what the peer sends; null: only PUBLIC.';
comment on column parley._p_peer.address is
'Where it listens: at this address no other broker may answer. Null when it is not known.';
comment on column parley._p_peer.broker_instances is
'Brokers in whose name this peer alone, and forwarders, may speak, as an operator or a pairing has
said; see also _p_peer_broker.';

create table parley._p_peer_certificate (
  fingerprint text collate "C" primary key check (fingerprint ~ '^[0-9a-f]{64}$'),
  peer_id integer not null references parley._p_peer on delete cascade,
  certificate bytea,
  not_before timestamptz,
  not_after timestamptz,
  succeeds text collate "C",
  added_at timestamptz not null default now()
);

comment on table parley._p_peer_certificate is 'The keys of peers; one for each, two while it changes.';
comment on column parley._p_peer_certificate.certificate is
'X.509 in DER, for people to read; only the key counts. Null when none was given.';
comment on column parley._p_peer_certificate.not_after is
'When trust in the key ends; null: when the certificate does that the peer shows.';
comment on column parley._p_peer_certificate.succeeds is
'Fingerprint of the key of the same peer that has signed this one; null when a person added it.';

create index on parley._p_peer_certificate (peer_id);

create table parley._p_peer_broker (
  broker_instance uuid primary key,
  peer_id integer references parley._p_peer on delete cascade,
  authority_name text collate "C",
  fingerprint text collate "C",
  first_used_at timestamptz not null default clock_timestamp(),
  check (num_nonnulls(peer_id, authority_name, fingerprint) = 1)
);

comment on table parley._p_peer_broker is
'Brokers of which nobody has said whose they are, and who has spoken in their name first: from then on nobody
else may (trust/identities.sql).';
comment on column parley._p_peer_broker.peer_id is 'The peer, whatever its keys are.';
comment on column parley._p_peer_broker.authority_name is
'Name for which a certificate authority vouches, of a broker that is no peer of this database; keys may change.';
comment on column parley._p_peer_broker.fingerprint is
'Key of a broker that only another database of the daemon trusts.';

create index on parley._p_peer_broker (peer_id);

create function parley._p_fingerprint(fingerprint text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fingerprint text := lower(replace(regexp_replace(fingerprint, '^sha256:', '', 'i'), ':', '') collate "C");
begin
  if v_fingerprint is null or v_fingerprint !~ '^[0-9a-f]{64}$' then
    found := parley._p_raise(8402, 'fingerprint');
  end if;
  return v_fingerprint;
end
$$;

comment on function parley._p_fingerprint(text) is
'Gives a fingerprint in the one way it is stored: 64 hexadecimal digits in lower case.
Errors: 8402.';

create function parley._p_find_peer(name text) returns parley._p_peer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_peer parley._p_peer;
  v_names text[];
begin
  select * into v_peer from parley._p_peer as p where p.name = _p_find_peer.name for update;
  if not found then
    v_names := array(select p.name from parley._p_peer as p);
    found := parley._p_raise(15151, 'object', 'peer', name, parley._p_did_you_mean(name, v_names), 'peers');
  end if;
  return v_peer;
end
$$;

comment on function parley._p_find_peer(text) is
'Finds a peer by its name and locks its row.
Errors: 15151.';

create function parley._p_peer_role(role text) returns regrole
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  -- Rights that are granted to PUBLIC count for everybody anyway.
  return case when role is not null then nullif(parley._p_role(role), 0)::regrole end;
end
$$;

comment on function parley._p_peer_role(text) is
'Finds the role that a peer is to be mapped to; null and PUBLIC give null.
Errors: 15151 when there is no such role.';

create function parley._p_peer_address(address text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  -- As routes write it, so that who lives at an address is found whichever way it was written.
  v_address text := parley._p_network_address(address);
begin
  if address is not null and (v_address is null or length(address) > 256) then
    found := parley._p_raise(8402, 'address of a peer', left(address, 256));
  end if;
  return v_address;
end
$$;

comment on function parley._p_peer_address(text) is
'Checks the address of a peer, and gives it as routes write theirs; null for null.
Errors: 8402.';

create function parley._p_add_peer_certificate(
  peer_id integer, fingerprint text, certificate bytea, not_before timestamptz, not_after timestamptz, succeeds text
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_other text;
begin
  if not_after <= clock_timestamp() then
    found := parley._p_raise(28055, 'expired', not_after::text);
  elsif not_after <= not_before then
    found := parley._p_raise(28055, 'validity');
  end if;
  insert into parley._p_peer_certificate (fingerprint, peer_id, certificate, not_before, not_after, succeeds)
  values (fingerprint, peer_id, certificate, not_before, not_after, succeeds)
  on conflict on constraint _p_peer_certificate_pkey do nothing;
  if not found then
    select p.name || case when p.revoked_at is null then '' else ', which is revoked' end into v_other
    from parley._p_peer_certificate as c
    join parley._p_peer as p using (peer_id)
    where c.fingerprint = _p_add_peer_certificate.fingerprint;
    found := parley._p_raise(2714, 'key of a peer', v_other);
  end if;
  return true;
end
$$;

comment on function parley._p_add_peer_certificate(integer, text, bytea, timestamptz, timestamptz, text) is
'Adds a key to a peer.
Errors: 2714 the key is known, 28055 its validity is over.';

create view parley.peers with (security_barrier) as
select
  p.peer_id,
  p.name,
  p.role::oid as principal_id,
  case when p.role is not null then pg_catalog.pg_get_userbyid(p.role)::text end as role_name,
  case
    when p.revoked_at is not null then 'REVOKED'
    when c.certificates = 0 then 'WITHOUT KEY'
    when c.not_after <= pg_catalog.clock_timestamp() then 'EXPIRED'
    else 'TRUSTED'
  end as state,
  c.fingerprints,
  case when c.not_after < 'infinity' then c.not_after end as not_after,
  p.address,
  array(
    select i.instance
    from (
      select u.instance from pg_catalog.unnest(p.broker_instances) as u (instance)
      union
      select b.broker_instance from parley._p_peer_broker as b where b.peer_id = p.peer_id
    ) as i
    order by i.instance
  ) as broker_instances,
  p.is_forwarder,
  p.create_date,
  p.modify_date,
  p.revoked_at
from parley._p_peer as p
cross join lateral (
  select
    pg_catalog.count(*) as certificates,
    coalesce(pg_catalog.array_agg(k.fingerprint order by k.added_at desc, k.fingerprint), '{}') as fingerprints,
    pg_catalog.max(coalesce(k.not_after, 'infinity')) as not_after
  from parley._p_peer_certificate as k
  where k.peer_id = p.peer_id
) as c
where pg_catalog.pg_has_role(p.role, 'usage')
  or exists (select from parley._p_visible_class as v where v.class = 'database');

comment on view parley.peers is 'Brokers elsewhere whose keys are, or were, trusted here (spec 7.2).';
comment on column parley.peers.peer_id is 'Identity of the peer.';
comment on column parley.peers.name is 'Name, as statements take it.';
comment on column parley.peers.principal_id is
'Oid of the role whose grants count for its messages; null: only grants to PUBLIC.';
comment on column parley.peers.role_name is 'Name of that role.';
comment on column parley.peers.state is 'TRUSTED, EXPIRED, REVOKED, or WITHOUT KEY.';
comment on column parley.peers.fingerprints is 'Its keys, the newest first; more than one while it changes its key.';
comment on column parley.peers.not_after is 'When the last of them expires; null when that is not limited here.';
comment on column parley.peers.address is
'Where it listens, tcp://host:port: at this address nobody else may answer. Null when it is not known.';
comment on column parley.peers.broker_instances is
'Brokers in whose name no other peer may speak, unless it forwards: those that an operator has named, and those in
whose name it has spoken first (parley.peer_brokers).';
comment on column parley.peers.is_forwarder is 'Whether it may pass on what other brokers send.';
comment on column parley.peers.create_date is 'When it was trusted first.';
comment on column parley.peers.modify_date is 'When it was changed last.';
comment on column parley.peers.revoked_at is 'When it was revoked.';

create view parley.peer_certificates with (security_barrier) as
select
  k.fingerprint,
  k.peer_id,
  p.name as peer_name,
  case
    when p.revoked_at is not null then 'REVOKED'
    when k.not_after <= pg_catalog.clock_timestamp() then 'EXPIRED'
    when k.not_before > pg_catalog.clock_timestamp() then 'NOT YET VALID'
    else 'TRUSTED'
  end as state,
  k.not_before,
  k.not_after,
  k.succeeds,
  k.certificate,
  k.added_at
from parley._p_peer_certificate as k
join parley._p_peer as p using (peer_id)
where pg_catalog.pg_has_role(p.role, 'usage')
  or exists (select from parley._p_visible_class as v where v.class = 'database');

comment on view parley.peer_certificates is 'The keys of peers.';
comment on column parley.peer_certificates.fingerprint is
'SHA-256 of the public key (SubjectPublicKeyInfo), in hexadecimal digits.';
comment on column parley.peer_certificates.peer_id is 'Identity of the peer.';
comment on column parley.peer_certificates.peer_name is 'Name of the peer.';
comment on column parley.peer_certificates.state is 'TRUSTED, NOT YET VALID, EXPIRED or REVOKED.';
comment on column parley.peer_certificates.not_before is 'From when it is trusted; null: as its certificate says.';
comment on column parley.peer_certificates.not_after is 'Until when it is trusted; null: as its certificate says.';
comment on column parley.peer_certificates.succeeds is
'Key of the same peer that has signed this one; null when a person added it.';
comment on column parley.peer_certificates.certificate is 'X.509 certificate in DER, or null.';
comment on column parley.peer_certificates.added_at is 'When it was added.';

create view parley.peer_brokers with (security_barrier) as
select
  u.instance as broker_instance,
  p.peer_id,
  p.name as peer_name,
  null::text as authority_name,
  null::text as fingerprint,
  null::timestamp with time zone as first_used_at
from parley._p_peer as p
cross join lateral pg_catalog.unnest(p.broker_instances) as u (instance)
where pg_catalog.pg_has_role(p.role, 'usage')
  or exists (select from parley._p_visible_class as v where v.class = 'database')
union all
select b.broker_instance, b.peer_id, p.name, b.authority_name, b.fingerprint, b.first_used_at
from parley._p_peer_broker as b
left join parley._p_peer as p using (peer_id)
where pg_catalog.pg_has_role(p.role, 'usage')
  or exists (select from parley._p_visible_class as v where v.class = 'database');

comment on view parley.peer_brokers is
'Which broker elsewhere may speak in the name of which broker instance, and since when, where that was learned.';
comment on column parley.peer_brokers.broker_instance is 'The broker instance.';
comment on column parley.peer_brokers.peer_id is
'Peer that may speak in its name; null for a broker that is no peer of this database.';
comment on column parley.peer_brokers.peer_name is 'Name of that peer.';
comment on column parley.peer_brokers.authority_name is
'Name for which a certificate authority vouches, of a broker that was let in by that.';
comment on column parley.peer_brokers.fingerprint is
'Key of a broker that was let in because another database of the daemon trusts it.';
comment on column parley.peer_brokers.first_used_at is
'When it spoke in that name first; null where an operator or a pairing has said so.';
