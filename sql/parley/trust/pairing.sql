-- Pairing: two brokers that have never met learn each other's keys, with no authority that both
-- believe in (docs/guides/security.md).
--
-- The daemon lets an unknown peer speak of nothing but pairing, and only while a pairing is open here. There are two
-- kinds. An INVITATION has a secret that is shown once, to be carried to the other side by people; who proves to have
-- it, for this very connection, is trusted. A WINDOW lets anybody ask; a code is shown on both sides, and nobody is
-- trusted before people on both sides have said that it is the same. Each is good once, for minutes. The database is
-- where the daemon, which holds the connection, and the operator, who may sit elsewhere, meet.
-- Locks: the pairing's row, then that of the request, then peers. Cost: none while nothing is open.

create table parley._p_pairing (
  pairing_id uuid primary key default gen_random_uuid(),
  secret bytea,
  peer_name text,
  role parley._p_role_oid,
  is_routed boolean not null default false,
  is_certified boolean not null default true,
  failures integer not null default 0,
  opened_at timestamptz not null default now(),
  expires_at timestamptz not null,
  closed_at timestamptz
);

comment on table parley._p_pairing is 'Pairings that are or were open, for a day.';

create trigger _p_number_roles after insert or update of role on parley._p_pairing
for each row execute function parley._p_number_roles('role');
comment on column parley._p_pairing.secret is 'Secret of an invitation; null for a window.';

create table parley._p_pairing_request (
  request_id uuid primary key default gen_random_uuid(),
  pairing_id uuid not null references parley._p_pairing on delete cascade,
  fingerprint text collate "C" not null,
  certificate bytea not null,
  offer jsonb not null,
  code text not null,
  remote text not null,
  state text not null default 'WAITING' check (state in ('WAITING', 'CONFIRMED', 'REFUSED', 'GONE', 'DONE')),
  peer_name text,
  role parley._p_role_oid,
  is_routed boolean not null default false,
  is_certified boolean not null default true,
  requested_at timestamptz not null default now()
);

comment on table parley._p_pairing_request is 'Brokers that have asked to be trusted while a window was open.';

create trigger _p_number_roles after insert or update of role on parley._p_pairing_request
for each row execute function parley._p_number_roles('role');

create index on parley._p_pairing_request (pairing_id);

create function parley._p_is_pairing_open(pairing parley._p_pairing) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select pairing.closed_at is null and pairing.expires_at > clock_timestamp() and pairing.failures < 5
$$;

comment on function parley._p_is_pairing_open(parley._p_pairing) is 'Reports whether a pairing can still be used.';

create function parley._p_add_pairing(
  valid_seconds integer, secret bytea, name text, role text, with_routes boolean, with_certificates boolean
) returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_role oid := parley._p_peer_role(role);
  v_id uuid;
begin
  found := parley._p_require_range('valid_seconds', valid_seconds, 10, 86400);
  if name is not null then
    name := parley._p_name('peer', name);
  end if;
  delete from parley._p_pairing as p where p.expires_at < clock_timestamp() - interval '1 day';
  insert into parley._p_pairing (secret, peer_name, role, is_routed, is_certified, expires_at)
  values (
    secret, name, v_role, coalesce(with_routes, false), coalesce(with_certificates, true),
    clock_timestamp() + make_interval(secs => valid_seconds)
  )
  returning pairing_id into v_id;
  return v_id;
end
$$;

comment on function parley._p_add_pairing(integer, bytea, text, text, boolean, boolean) is
'Opens a pairing.
Errors: 8402 valid_seconds out of range, 9609 bad name, 15151 no such role.';

create function parley.invite_peer(
  valid_seconds integer default 900, role text default null, name text default null, with_routes boolean default false,
  with_certificates boolean default true,
  caller parley.caller default parley.current_caller()
) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  -- Two random UUIDs have 244 random bits; their hash has 128 of them, evenly.
  v_secret bytea := substr(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 1, 16);
begin
  found := parley._p_require_administrator(v_caller, 'invite_peer');
  return 'parley1-' || encode(
    uuid_send(
      parley._p_add_pairing(valid_seconds, v_secret, invite_peer.name, invite_peer.role, with_routes, with_certificates)
    )
      || v_secret,
    'hex'
  );
end
$$;

comment on function parley.invite_peer(integer, text, text, boolean, boolean, parley.caller) is
'Invites a broker elsewhere: gives a token, to be given to parley pair there with --token. The broker that has it is
trusted here, once; it is a secret.
Arguments: valid_seconds, for how long, 10 to 86400; role, what the peer acts as (null: only what is granted to
PUBLIC counts); name of the peer (null: what it calls itself; the name of a peer that there is gives that one a
further key); with_routes, whether routes to its services are made; with_certificates, whether its dialog
certificate is taken too, under that role.
Errors: 8402 out of range, 9609 bad name, 15151 no such role or not an administrator.';

create function parley.open_pairing(
  valid_seconds integer default 600,
  caller parley.caller default parley.current_caller()
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  found := parley._p_require_administrator(v_caller, 'open_pairing');
  return parley._p_add_pairing(valid_seconds, null, null, null, false, true);
end
$$;

comment on function parley.open_pairing(integer, parley.caller) is
'Lets brokers elsewhere ask to be trusted, until one has been, or the time is over; gives the id of the pairing. No
broker is trusted before confirm_pairing.
Arguments: valid_seconds, for how long, 10 to 86400.
Errors: 8402 out of range, 15151 not an administrator.';

create function parley.close_pairing(pairing uuid, caller parley.caller default parley.current_caller()) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  found := parley._p_require_administrator(v_caller, 'close_pairing');
  update parley._p_pairing as p set closed_at = clock_timestamp() where p.pairing_id = pairing and p.closed_at is null;
end
$$;

comment on function parley.close_pairing(uuid, parley.caller) is
'Ends a pairing before its time. One that has ended already is left alone.
Errors: 15151 not an administrator.';

create function parley.pairing_requests(pairing uuid, caller parley.caller default parley.current_caller())
returns table (
  request_id uuid, fingerprint text, code text, offer jsonb, remote text, state text, requested_at timestamptz
)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  found := parley._p_require_administrator(v_caller, 'pairing_requests');
  return query
  select r.request_id, r.fingerprint, r.code, r.offer, r.remote, r.state, r.requested_at
  from parley._p_pairing_request as r
  where r.pairing_id = pairing
  order by r.requested_at, r.request_id;
end
$$;

comment on function parley.pairing_requests(uuid, parley.caller) is
'Gives who has asked while a pairing was open: request_id; fingerprint of its key; code, which has to be the same on
both sides; offer, what it says about itself; remote, the address it came from; state, WAITING, CONFIRMED, REFUSED, GONE
(it left) or DONE (it is trusted).
Errors: 15151 not an administrator.';

create function parley.confirm_pairing(
  request uuid, role text default null, name text default null, with_routes boolean default false,
  with_certificates boolean default true, caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  found := parley._p_require_administrator(v_caller, 'confirm_pairing');
  update parley._p_pairing_request as r
  set state = 'CONFIRMED', role = parley._p_peer_role(confirm_pairing.role), is_routed = coalesce(with_routes, false),
    is_certified = coalesce(with_certificates, true),
    peer_name = case when confirm_pairing.name is not null then parley._p_name('peer', confirm_pairing.name) end
  where r.request_id = request and r.state = 'WAITING';
  if not found then
    found := parley._p_raise(15151, 'pairing request');
  end if;
end
$$;

comment on function parley.confirm_pairing(uuid, text, text, boolean, boolean, parley.caller) is
'Says that the code of a request is the one that the other side shows. The peer is trusted as soon
as the other side has said so too.
Arguments: request; role, name, with_routes and with_certificates, as invite_peer takes them.
Errors: 9609 bad name, 15151 no such request or role, or not an administrator.';

create function parley.refuse_pairing(request uuid, caller parley.caller default parley.current_caller()) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  found := parley._p_require_administrator(v_caller, 'refuse_pairing');
  update parley._p_pairing_request as r
  set state = 'REFUSED'
  where r.request_id = request and r.state in ('WAITING', 'CONFIRMED');
end
$$;

comment on function parley.refuse_pairing(uuid, parley.caller) is
'Sends a broker away that has asked to be trusted. A pairing that is over is left alone.
Errors: 15151 not an administrator.';

create function parley.pair_peer(
  fingerprint text,
  certificate bytea,
  not_before timestamptz,
  not_after timestamptz,
  offer jsonb,
  role text default null,
  name text default null,
  with_routes boolean default false,
  with_certificates boolean default true,
  caller parley.caller default parley.current_caller()
) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  found := parley._p_require_administrator(v_caller, 'pair_peer');
  return parley._p_pair(
    parley._p_fingerprint(fingerprint), certificate, not_before, not_after, offer,
    case
      when name is not null then parley._p_name('peer', name)
    end, parley._p_peer_role(role), coalesce(with_routes, false),
    coalesce(with_certificates, true)
  );
end
$$;

comment on function parley.pair_peer(
  text, bytea, timestamptz, timestamptz, jsonb, text, text, boolean, boolean, parley.caller
) is
'Trusts a broker that has been paired with from here, as parley pair does, and gives the name of the peer. One that is
known already is brought up to date.
Arguments: fingerprint, certificate, not_before and not_after, as trust_peer; offer, what the broker says about itself;
role, name, with_routes and with_certificates, as invite_peer.
Errors: 2714 it says that it is the broker of another peer, or is reached at the address of one, 8402
malformed fingerprint or address, 9609 bad name, 15151 no such role or not an administrator, 15297 its
dialog certificate is malformed, 28034 the peer is revoked, 28055 the key has expired, or its dialog
certificate is not the one that was shown.';
