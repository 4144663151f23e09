-- Certificates of roles, for dialogs (spec 2.11, 7.3 to 7.5): whom a sealed message is for, and who has signed it.
--
-- A certificate is a pair of public keys, X25519 to seal for and Ed25519 to verify with, a subject and a validity, in
-- one value of bytes: PARLEYC1, start and expiry as 8 bytes each (seconds since 1970, big-endian), the signing key and
-- the sealing key (32 bytes each), the subject in UTF-8. The SHA-256 of these bytes is its fingerprint. It has no
-- signature of an authority: it is trusted because it was installed, under a role, and proves that its holder acts for
-- that role (spec 7.2). The same bytes are installed at both ends; here and there the role may differ. A private key is
-- only ever here sealed under a master key that lives outside the database, in a file of the daemon, so the database
-- and its backups open nothing. Its first bytes name the master key: 1, then the first 8 bytes of that key's SHA-256.
-- Locks: the certificate's row. Cost: none for who sends or receives; the daemon reads once a second what it uses.

create table parley._p_certificate (
  certificate_id integer primary key,
  name text collate "C" not null unique check (name <> '' and length(name) <= 128),
  owner parley._p_role_oid not null,
  fingerprint bytea not null unique,
  certificate bytea not null,
  subject text not null,
  signing_key bytea not null,
  sealing_key bytea not null,
  start_date timestamptz not null,
  expiry_date timestamptz not null,
  private_key bytea,
  is_active_for_begin_dialog boolean not null,
  revoked_at timestamptz,
  create_date timestamptz not null default now()
);

comment on table parley._p_certificate is
'Certificates of dialogs (spec 2.11); with a sealed private key when they are ours.';

create trigger _p_number_roles after insert or update of owner on parley._p_certificate
for each row execute function parley._p_number_roles('owner');

create index on parley._p_certificate (owner);

create function parley._p_read_certificate(
  certificate bytea,
  out fingerprint bytea, out subject text, out signing_key bytea, out sealing_key bytea, out start_date timestamptz,
  out expiry_date timestamptz
)
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_dates bigint[];
begin
  if length(certificate) not between 89 and 344
    or substring(certificate from 1 for 8) <> convert_to('PARLEYC1', 'UTF8') then
    found := parley._p_raise(15297, 'form');
  end if;
  v_dates := array[
    ('x' || encode(substring(certificate from 9 for 8), 'hex'))::bit(64)::bigint,
    ('x' || encode(substring(certificate from 17 for 8), 'hex'))::bit(64)::bigint
  ];
  if v_dates[1] < 0 or v_dates[1] >= v_dates[2] or v_dates[2] > 253402300799 then
    found := parley._p_raise(15297, 'validity');
  end if;
  fingerprint := sha256(certificate);
  start_date := to_timestamp(v_dates[1]);
  expiry_date := to_timestamp(v_dates[2]);
  signing_key := substring(certificate from 25 for 32);
  sealing_key := substring(certificate from 57 for 32);
  subject := convert_from(substring(certificate from 89), 'UTF8');
exception
  when character_not_in_repertoire or untranslatable_character then
    found := parley._p_raise(15297, 'subject');
end
$$;

comment on function parley._p_read_certificate(bytea) is
'Takes a certificate apart.
Errors: 15297 malformed.';

create function parley._p_find_certificate(caller oid, name text, permission text) returns parley._p_certificate
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_certificate parley._p_certificate;
begin
  select * into v_certificate from parley._p_certificate as c where c.name = _p_find_certificate.name for update;
  if not found then
    found := parley._p_raise(
      15151, 'object', 'certificate', name, parley._p_did_you_mean(caller, 'certificate', name), 'certificates'
    );
  end if;
  found := parley._p_require_permission(
    caller, permission, 'certificate', v_certificate.certificate_id, name, v_certificate.owner
  );
  return v_certificate;
end
$$;

comment on function parley._p_find_certificate(oid, text, text) is
'Finds and locks a certificate that the caller may use for something.
Errors: 229, 15151.';

create function parley._p_notify_security_change() returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  select parley._p_notify('parley', 'transmission')
$$;

comment on function parley._p_notify_security_change() is
'Notifies the daemons that messages which could not be sealed may be tried again.';

create function parley._p_add_certificate(
  name text, certificate bytea, owner oid, private_key bytea, active_for_begin_dialog boolean
) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_id integer;
  v_parts record := parley._p_read_certificate(certificate);
begin
  insert into parley._p_certificate (
    certificate_id, name, owner, fingerprint, certificate, subject, signing_key, sealing_key, start_date, expiry_date,
    private_key, is_active_for_begin_dialog
  )
  values (
    nextval('parley._p_object_id'), name, owner, v_parts.fingerprint, certificate, v_parts.subject, v_parts.signing_key,
    v_parts.sealing_key, v_parts.start_date, v_parts.expiry_date, private_key, active_for_begin_dialog
  )
  on conflict do nothing
  returning certificate_id into v_id;
  return v_id;
end
$$;

comment on function parley._p_add_certificate(text, bytea, oid, bytea, boolean) is
'Adds a certificate, and gives its id; null when there is one of this name, or the same one.
Errors: 15297 malformed.';

create function parley.create_certificate(
  name text,
  certificate bytea,
  "authorization" text default null,
  private_key bytea default null,
  active_for_begin_dialog boolean default true,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_id integer;
  v_owner oid;
begin
  found := parley._p_require_permission(v_caller, 'CREATE CERTIFICATE', 'database', 0, null, null);
  v_owner := parley._p_new_owner(v_caller, "authorization");
  -- 1 and the id of the master key (9 bytes), nonce (12), two keys (64) and the tag (16).
  if length(private_key) <> 101 or substring(private_key from 1 for 1) <> E'\\x01' then
    found := parley._p_raise(15297, 'private key');
  end if;
  v_id := parley._p_add_certificate(
    parley._p_name('certificate', create_certificate.name), certificate, v_owner, private_key, active_for_begin_dialog
  );
  if v_id is null then
    found := parley._p_raise(2714, 'certificate', name, encode(sha256(certificate), 'hex'));
  end if;
  perform parley._p_notify_security_change();
  return v_id;
end
$$;

comment on function parley.create_certificate(text, bytea, text, bytea, boolean, parley.caller) is
'Installs a certificate and returns its id: of somebody else, whom its owner stands for here, or our own with its
private key. New ones of our own are made by the command parley certificate create, which has the master key.
Arguments: name; certificate, the bytes that parley dialog-certificate export writes; authorization, the owner
(default: the caller): what is signed with it is done in the name of this role; private_key, sealed under the
master key, or null; active_for_begin_dialog, whether new messages may be sealed for it or signed with it: what
arrives is opened in either case.
Errors: 229 not allowed, 2714 exists, 9609 bad name, 15151 unknown owner, 15297 malformed.
Source: spec 2.11, CREATE CERTIFICATE.';

create function parley.alter_certificate(
  name text,
  active_for_begin_dialog boolean default null,
  revoked boolean default null,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_certificate parley._p_certificate := parley._p_find_certificate(v_caller, name, 'ALTER');
begin
  if active_for_begin_dialog is null and revoked is null then
    found := parley._p_raise(8493, 'certificate', name);
  end if;
  update parley._p_certificate as c
  set is_active_for_begin_dialog = coalesce(active_for_begin_dialog, c.is_active_for_begin_dialog),
    revoked_at = case
      when revoked is null then c.revoked_at
      when revoked then coalesce(c.revoked_at, clock_timestamp())
    end
  where c.certificate_id = v_certificate.certificate_id;
  perform parley._p_notify_security_change();
end
$$;

comment on function parley.alter_certificate(text, boolean, boolean, parley.caller) is
'Changes what is given of a certificate. Daemons know within a second.
Arguments: name; active_for_begin_dialog, whether new messages may be sealed for it or signed with it; revoked, whether
nothing that it has to do with is opened or sealed any more.
Errors: 229 not allowed, 8493 nothing to change, 15151 not found.
Source: spec 2.11, 7.5, ALTER CERTIFICATE.';

create function parley.drop_certificate(name text, caller parley.caller default parley.current_caller()) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_certificate parley._p_certificate := parley._p_find_certificate(v_caller, name, 'CONTROL');
begin
  delete from parley._p_permission as p where p.class = 'certificate' and p.object_id = v_certificate.certificate_id;
  delete from parley._p_certificate as c where c.certificate_id = v_certificate.certificate_id;
  perform parley._p_notify_security_change();
end
$$;

comment on function parley.drop_certificate(text, parley.caller) is
'Drops a certificate with its private key. A message that was sealed for it and has not arrived yet cannot be opened any
more; its sender seals it again for the certificate that is left.
Errors: 229 not allowed, 15151 not found.
Source: spec 7.5, DROP CERTIFICATE.';

create view parley.certificates with (security_barrier) as
select
  c.name,
  c.certificate_id,
  c.owner::oid as principal_id,
  case when c.private_key is null then 'NA' else 'MK' end as pvt_key_encryption_type,
  case
    when c.private_key is null then 'NO_PRIVATE_KEY'
    else 'ENCRYPTED_BY_MASTER_KEY'
  end as pvt_key_encryption_type_desc,
  c.is_active_for_begin_dialog,
  c.subject as issuer_name,
  pg_catalog.encode(pg_catalog.substring(c.fingerprint, 1, 16), 'hex') as cert_serial_number,
  c.subject,
  c.start_date,
  c.expiry_date,
  c.fingerprint as thumbprint,
  c.certificate,
  pg_catalog.encode(pg_catalog.substring(c.private_key, 2, 8), 'hex') as master_key,
  c.revoked_at,
  case
    when c.revoked_at is not null then 'REVOKED'
    when c.expiry_date <= pg_catalog.clock_timestamp() then 'EXPIRED'
    when c.start_date > pg_catalog.clock_timestamp() then 'NOT YET VALID'
    when not c.is_active_for_begin_dialog then 'NOT ACTIVE'
    else 'VALID'
  end as state
from parley._p_certificate as c
where pg_catalog.pg_has_role(c.owner, 'usage')
  or exists (select from parley._p_visible_class as v where v.class = 'certificate')
  or c.certificate_id in (select v.object_id from parley._p_permitted_object as v where v.class = 'certificate');

comment on view parley.certificates is
'Certificates of dialogs. They are made by their owners, so issuer_name is the subject. The
columns from certificate on are ours.';
comment on column parley.certificates.name is 'Compared byte by byte.';
comment on column parley.certificates.certificate_id is 'Identity of the certificate.';
comment on column parley.certificates.principal_id is 'Oid of the owner, in whose name it signs.';
comment on column parley.certificates.pvt_key_encryption_type is
'MK when the private key is here, sealed under the master key; NA when it is not.';
comment on column parley.certificates.pvt_key_encryption_type_desc is 'ENCRYPTED_BY_MASTER_KEY or NO_PRIVATE_KEY.';
comment on column parley.certificates.is_active_for_begin_dialog is
'Whether new messages may be sealed for it or signed with it.';
comment on column parley.certificates.issuer_name is 'As subject.';
comment on column parley.certificates.cert_serial_number is 'The first half of the fingerprint, in hexadecimal digits.';
comment on column parley.certificates.subject is 'The name that its owner gave it.';
comment on column parley.certificates.start_date is 'From when it is valid.';
comment on column parley.certificates.expiry_date is 'Until when it is valid.';
comment on column parley.certificates.thumbprint is 'Fingerprint: the SHA-256 of certificate.';
comment on column parley.certificates.certificate is
'The certificate itself, for parley.create_certificate elsewhere. It is no secret.';
comment on column parley.certificates.master_key is
'Which master key seals the private key, in hexadecimal digits; null without private key.';
comment on column parley.certificates.revoked_at is 'When it was revoked.';
comment on column parley.certificates.state is 'VALID, NOT ACTIVE, NOT YET VALID, EXPIRED or REVOKED.';
