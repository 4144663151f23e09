-- The certificates with which the daemons of this database prove their identity: reported by the daemons, so that the
-- database can warn of their end.
--
-- The keys are with the daemons; here stand the dates. A daemon reports its certificate when it begins,
-- when it has another one, and every hour; what was not reported for a day is forgotten: that daemon is
-- gone, or is called otherwise.
-- Beside it stands the address under which others reach the daemon, when its operator has said so
-- (parley serve --advertise).
-- Locks: its row. Cost: a row an hour for each daemon that listens.

create table parley._p_broker_certificate (
  daemon text collate "C" primary key,
  fingerprint text collate "C" not null,
  not_before timestamptz not null,
  not_after timestamptz not null,
  reported_at timestamptz not null,
  address text
);

comment on table parley._p_broker_certificate is
'Certificates of the daemons that serve this database, as they were reported last.';

create function parley._p_report_certificate(
  daemon text, fingerprint text, not_before timestamptz, not_after timestamptz, address text default null
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from parley._p_broker_certificate as c where c.reported_at < clock_timestamp() - interval '1 day';
  insert into parley._p_broker_certificate as c (daemon, fingerprint, not_before, not_after, reported_at, address)
  values (daemon, fingerprint, not_before, not_after, clock_timestamp(), parley._p_peer_address(address))
  on conflict on constraint _p_broker_certificate_pkey do update
  set fingerprint = excluded.fingerprint, not_before = excluded.not_before, not_after = excluded.not_after,
    reported_at = excluded.reported_at,
    address = excluded.address;
end
$$;

comment on function parley._p_report_certificate(text, text, timestamptz, timestamptz, text) is
'Records the certificate that a daemon uses.
Arguments: daemon, its name, such as that of its host; fingerprint of the key; not_before and not_after of the
certificate; address, tcp://host:port, where others reach it, null when its operator has not said.
Errors: 8402 malformed address.';

create view parley.broker_certificates with (security_barrier) as
select
  c.daemon,
  c.fingerprint,
  case
    when c.not_after <= pg_catalog.clock_timestamp() then 'EXPIRED'
    when c.not_before > pg_catalog.clock_timestamp() then 'NOT YET VALID'
    else 'VALID'
  end as state,
  c.not_before,
  c.not_after,
  c.reported_at,
  c.address
from parley._p_broker_certificate as c
where c.reported_at > pg_catalog.clock_timestamp() - interval '1 day'
  and exists (select from parley._p_visible_class as v where v.class = 'database');

comment on view parley.broker_certificates is
'Certificates with which the daemons of this database prove to other brokers who they are.';
comment on column parley.broker_certificates.daemon is 'Name of the daemon.';
comment on column parley.broker_certificates.fingerprint is
'SHA-256 of its public key, in hexadecimal digits: what peers trust.';
comment on column parley.broker_certificates.state is 'VALID, NOT YET VALID or EXPIRED.';
comment on column parley.broker_certificates.not_before is 'From when it is valid.';
comment on column parley.broker_certificates.not_after is 'Until when it is valid.';
comment on column parley.broker_certificates.reported_at is 'When the daemon reported it last; it does every hour.';
comment on column parley.broker_certificates.address is
'Where other brokers reach it, tcp://host:port, as its operator has said with --advertise; null when nobody has.';

create function parley._p_advertised_address(fingerprint text default null) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case when count(distinct c.address) = 1 then min(c.address) end
  from parley.broker_certificates as c
  where c.fingerprint = coalesce(_p_advertised_address.fingerprint, c.fingerprint) and c.address is not null
$$;

comment on function parley._p_advertised_address(text) is
'Gives the address under which the daemons of this database say that others reach them; null when none says
so, or they say different things.
Arguments: fingerprint, of the key of the daemon that is meant; null: any.';
