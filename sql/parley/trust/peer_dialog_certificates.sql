-- Dialog certificates that came with a peer when it was paired with (docs/guides/dialog-security.md).
--
-- Such a certificate stands for the role that the peer acts as, so who has its private key may do what the peer may do,
-- and no more. It shares the peer's fate: with the peer it is revoked, dropped, and mapped to another role. One that
-- somebody has installed by hand is left alone.
-- Invariant: it is taken only when nothing that is sealed or signed today changes by it. So the role has no
-- other certificate (what is sealed for a role is sealed for the one that expires last), and the peer offers
-- one, not those of several roles.
-- Locks: the table, against two pairings for one role, then certificates. Cost: none for who sends or receives.

create table parley._p_peer_dialog_certificate (
  certificate_id integer primary key references parley._p_certificate on delete cascade,
  peer_id integer not null references parley._p_peer on delete cascade
);

comment on table parley._p_peer_dialog_certificate is 'The dialog certificates that came with peers.';

create index on parley._p_peer_dialog_certificate (peer_id);

create view parley.peer_dialog_certificates with (security_barrier) as
select
  d.peer_id,
  p.name as peer_name,
  d.certificate_id,
  c.name,
  pg_catalog.encode(c.thumbprint, 'hex') as fingerprint,
  pg_catalog.pg_get_userbyid(c.principal_id)::text as role_name,
  c.state,
  c.expiry_date
from parley._p_peer_dialog_certificate as d
join parley._p_peer as p using (peer_id)
join parley.certificates as c using (certificate_id)
where pg_catalog.pg_has_role(p.role, 'usage')
  or exists (select from parley._p_visible_class as v where v.class = 'database');

comment on view parley.peer_dialog_certificates is
'Dialog certificates that came with peers when they were paired with.';
comment on column parley.peer_dialog_certificates.peer_id is 'Identity of the peer.';
comment on column parley.peer_dialog_certificates.peer_name is 'Name of the peer.';
comment on column parley.peer_dialog_certificates.certificate_id is
'Identity of the certificate in parley.certificates.';
comment on column parley.peer_dialog_certificates.name is 'Name of the certificate.';
comment on column parley.peer_dialog_certificates.fingerprint is
'SHA-256 of the certificate, in hexadecimal digits: what people saw when they confirmed.';
comment on column parley.peer_dialog_certificates.role_name is 'Role that it stands for: that of the peer.';
comment on column parley.peer_dialog_certificates.state is 'VALID, NOT ACTIVE, NOT YET VALID, EXPIRED or REVOKED.';
comment on column parley.peer_dialog_certificates.expiry_date is 'Until when it is valid.';

create function parley._p_own_dialog_certificates() returns setof bytea
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select c.certificate
  from (select distinct s.owner from parley._p_service as s where s.service_id >= 65536) as o
  cross join lateral parley._p_find_dialog_certificate(o.owner, true) as c
  where c.status is null
  order by c.fingerprint
$$;

comment on function parley._p_own_dialog_certificates() is
'Gives the certificates with which the owners of services here sign, and for which others seal:
one for each owner that has one.';

create function parley._p_dialog_certificate_obstacle(peer text, fingerprints text[]) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when cardinality(fingerprints) = 0 then 'the other side has none'
    when cardinality(fingerprints) > 1
      then 'the other side has those of several roles: import each under the role that stands for it'
    when p.role is null then 'the peer acts as no role, for which it could stand'
    when c.owner <> p.role then format('it is here already, and stands for role %s', c.owner::regrole)
    when c.revoked_at is not null then 'it is here already, and revoked'
    when o.name is not null then format('role %s has another one already: %s', p.role, o.name)
  end
  from parley._p_peer as p
  left join parley._p_certificate as c on c.fingerprint = decode(fingerprints[1], 'hex')
  left join lateral (
    select o.name
    from parley._p_certificate as o
    where o.owner = p.role
      and o.certificate_id is distinct from c.certificate_id
      and o.revoked_at is null
      and o.expiry_date > clock_timestamp()
      and not exists (
        select from parley._p_peer_dialog_certificate as d
        where d.certificate_id = o.certificate_id and d.peer_id = p.peer_id
      )
    order by o.name
    limit 1
  ) as o on true
  where p.name = peer
$$;

comment on function parley._p_dialog_certificate_obstacle(text, text[]) is
'Explains why the dialog certificate that a peer offers is not taken; null when it is, or can be.
Arguments: peer, its name; fingerprints, of all that it offers.';

create function parley._p_take_dialog_certificate(peer parley._p_peer, offer jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_shown text[] := array(select jsonb_array_elements_text(coalesce(offer->'dialog_certificates', '[]')));
  v_certificates bytea[] := array(
    select decode(c.value, 'base64')
    from jsonb_array_elements(coalesce(offer->'databases', '[]')) as d
    cross join lateral jsonb_array_elements_text(coalesce(d.value->'certificates', '[]')) as c
  );
  v_fingerprints text[] := array(select encode(sha256(c), 'hex') from unnest(v_certificates) as c order by 1);
  v_parts record;
  v_id integer;
begin
  if not (v_fingerprints <@ v_shown and v_shown <@ v_fingerprints) then
    found := parley._p_raise(28055, 'dialog certificates', v_shown::text, v_fingerprints::text);
  end if;
  lock table parley._p_peer_dialog_certificate in share row exclusive mode;
  if parley._p_dialog_certificate_obstacle(peer.name, v_fingerprints) is not null then
    return;
  end if;
  v_parts := parley._p_read_certificate(v_certificates[1]);
  if v_parts.expiry_date <= clock_timestamp() then
    return;
  end if;
  -- A key that the peer has used before may still have signed a message that is on its way; nothing is sealed for it
  -- any more.
  update parley._p_certificate as c
  set is_active_for_begin_dialog = c.fingerprint = v_parts.fingerprint
  from parley._p_peer_dialog_certificate as d
  where d.peer_id = peer.peer_id and c.certificate_id = d.certificate_id;
  v_id := parley._p_add_certificate(
    left(peer.name, 100) || ' ' || left(v_fingerprints[1], 8), v_certificates[1], peer.role, null, true
  );
  if v_id is not null then
    insert into parley._p_peer_dialog_certificate (certificate_id, peer_id) values (v_id, peer.peer_id);
  end if;
  perform parley._p_notify_security_change();
end
$$;

comment on function parley._p_take_dialog_certificate(parley._p_peer, jsonb) is
'Installs the dialog certificate that a peer has offered, under the role of the peer, unless something stands in the
way.
Arguments: peer, as it is now; offer, with the certificates, and the fingerprints that people have seen.
Errors: 15297 malformed, 28055 they are others than those that were shown.';

create function parley._p_map_dialog_certificates(peer_id integer, role regrole) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  lock table parley._p_peer_dialog_certificate in share row exclusive mode;
  if role is null or exists (
    select
    from parley._p_certificate as c
    where c.owner = role and not exists (
      select from parley._p_peer_dialog_certificate as d
      where d.certificate_id = c.certificate_id and d.peer_id = _p_map_dialog_certificates.peer_id
    )
  ) then
    perform parley._p_drop_dialog_certificates(peer_id);
    return;
  end if;
  update parley._p_certificate as c
  set owner = role
  from parley._p_peer_dialog_certificate as d
  where d.peer_id = _p_map_dialog_certificates.peer_id and c.certificate_id = d.certificate_id and c.owner <> role;
  if found then
    perform parley._p_notify_security_change();
  end if;
end
$$;

comment on function parley._p_map_dialog_certificates(integer, regrole) is
'Lets the dialog certificates of a peer stand for the role that it is mapped to now. They are dropped when there is
none, or it has other certificates: the peer must not go on as the role that it was.
Arguments: peer_id; role, null for none.';

create function parley._p_drop_dialog_certificates(peer_id integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from parley._p_permission as p
  using parley._p_peer_dialog_certificate as d
  where d.peer_id = _p_drop_dialog_certificates.peer_id and p.class = 'certificate' and p.object_id = d.certificate_id;
  delete from parley._p_certificate as c
  using parley._p_peer_dialog_certificate as d
  where d.peer_id = _p_drop_dialog_certificates.peer_id and c.certificate_id = d.certificate_id;
  if found then
    perform parley._p_notify_security_change();
  end if;
end
$$;

comment on function parley._p_drop_dialog_certificates(integer) is
'Drops the dialog certificates that came with a peer.';

create function parley._p_revoke_dialog_certificates(peer_id integer) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  update parley._p_certificate as c
  set revoked_at = clock_timestamp()
  from parley._p_peer_dialog_certificate as d
  where d.peer_id = _p_revoke_dialog_certificates.peer_id
    and c.certificate_id = d.certificate_id
    and c.revoked_at is null
$$;

comment on function parley._p_revoke_dialog_certificates(integer) is
'Revokes the dialog certificates that came with a peer: what it signs comes in over no other way either.';
