-- Which dialogs are secured, how, and with whose certificates (spec 7.3, 7.4).
--
-- Which binding counts is recorded when the dialog first finds its way out of the database (conversation/far_side.sql).
-- How it is sealed is asked once, by the daemon of the initiator, when its first message is about to leave the
-- server; the answer stands in _p_dialog_security as long as the dialog lives, and with it is_encrypted of the
-- endpoint is true. A target learns it with the first message that it can open. From then on a message counts only
-- when it was sealed the same way, and by the same role: _p_bind_dialog. Inside one server nothing is sealed, and
-- nothing of this is read (docs/reference/differences.md). Secrets come in here sealed under the master key of the
-- daemon and leave as they came. Locks: the dialog's row in _p_dialog_security, before its endpoint. Cost: none for
-- SEND; one row for each secured dialog.

create table parley._p_dialog_security (
  conversation_id uuid not null,
  is_initiator boolean not null,
  mode text not null check (mode in ('anonymous', 'full')),
  far_principal parley._p_role_oid check ((mode = 'anonymous') or (far_principal is not null)),
  key_id bytea check ((mode = 'anonymous') = (key_id is not null)),
  secured_at timestamptz not null default clock_timestamp(),
  opened_at timestamptz,
  primary key (conversation_id, is_initiator)
);

comment on table parley._p_dialog_security is
'The sides here of dialogs that are secured: for whom, and by whom, messages are sealed (spec 7.3).';
comment on column parley._p_dialog_security.far_principal is
'Role that stands for the other side; null for an initiator that is anonymous.';
comment on column parley._p_dialog_security.key_id is
'The session key of an anonymous dialog, which both sides use; in full security each side makes its own.';
comment on column parley._p_dialog_security.opened_at is
'When the dialog began at a target; null where it has not, and for initiators. Such a row outlives its
dialog: see transport/replays.sql.';

create index on parley._p_dialog_security (key_id) where key_id is not null;

create function parley._p_security_mode(
  has_certificate boolean, is_encrypted boolean, is_bound boolean, is_anonymous boolean
) returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select case
    when is_bound and is_anonymous then 'anonymous'
    when is_bound and has_certificate then 'full'
    when is_bound then '9731'
    when is_encrypted then '9727'
    else 'none'
  end
$$;

comment on function parley._p_security_mode(boolean, boolean, boolean, boolean) is
'The table of decisions: none, anonymous or full, or the number of the reason why messages must not leave.
Arguments: has_certificate, whether the owner of the initiator''s service has one to sign with; is_encrypted, ENCRYPTION
of BEGIN DIALOG; is_bound, whether a remote service binding names the target; is_anonymous, its ANONYMOUS.
Source: spec 7.3.';

create function parley._p_find_dialog_certificate(
  principal oid, is_own boolean, out fingerprint bytea, out certificate bytea, out private_key bytea, out status text
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_problem integer;
begin
  select c.fingerprint, c.certificate, c.private_key into fingerprint, certificate, private_key
  from parley._p_certificate as c
  where c.owner = principal
    and c.revoked_at is null
    and c.is_active_for_begin_dialog
    and c.start_date <= clock_timestamp()
    and c.expiry_date > clock_timestamp()
    and (c.private_key is not null or not is_own)
  order by c.expiry_date desc, c.certificate_id desc
  limit 1;
  if found then
    return;
  end if;
  -- The best of those that will not do has the reason.
  select max(
    case
      when is_own and c.private_key is null then 9733
      when c.expiry_date <= clock_timestamp() then 28025
      when c.start_date > clock_timestamp() then 28024
      else 9767
    end
  ) into v_problem
  from parley._p_certificate as c
  where c.owner = principal and c.revoked_at is null;
  if not exists (select from pg_roles as r where r.oid = principal) then
    v_problem := 9728;
  end if;
  status := case v_problem
    when 9728 then parley._p_numbered_status(9728, 'role dropped', principal::regrole::text)
    when 9733 then parley._p_numbered_status(9733, 'no private key', pg_get_userbyid(principal))
    when 9767 then parley._p_numbered_status(9767, 'not active', pg_get_userbyid(principal))
    when 28024 then parley._p_numbered_status(28024, 'certificate not yet valid', pg_get_userbyid(principal))
    when 28025 then parley._p_numbered_status(28025, 'certificate expired', pg_get_userbyid(principal))
    else parley._p_numbered_status(9731, 'no certificate', pg_get_userbyid(principal))
  end;
end
$$;

comment on function parley._p_find_dialog_certificate(oid, boolean) is
'Picks the certificate of a role that is good to sign with, or to seal for: active, valid now, the latest to expire.
Otherwise status says what is wrong.
Arguments: principal, the role; is_own, whether the private key is needed.
Source: spec 7.4.';

create function parley._p_plan_dialogs(
  endpoint_ids bigint[], is_link_encrypted boolean,
  out endpoint_id bigint, out mode text, out own_principal oid, out far_principal oid, out key_id bytea,
  out is_recorded boolean, out status text
) returns setof record
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint record;
  v_has_certificate boolean;
begin
  for v_endpoint in
    select e.endpoint_id, e.conversation_id, e.is_initiator, e.is_encrypted, e.owner, e.far_service,
      s.mode, s.far_principal, s.key_id, b.remote_principal, b.is_anonymous
    from parley._p_endpoint as e
    left join parley._p_dialog_security as s using (conversation_id, is_initiator)
    -- A dialog that has begun unsealed goes on unsealed, or the target would not know what to believe.
    left join parley._p_remote_service_binding as b
      on e.is_initiator
      and (
        b.remote_service_binding_id = e.remote_service_binding_id
          or b.to_service = e.far_service and e.is_encrypted and not is_link_encrypted
      )
    where e.endpoint_id = any (endpoint_ids)
  loop
    endpoint_id := v_endpoint.endpoint_id;
    own_principal := v_endpoint.owner;
    mode := v_endpoint.mode;
    far_principal := v_endpoint.far_principal;
    key_id := v_endpoint.key_id;
    status := null;
    is_recorded := mode is not null;
    if not is_recorded and v_endpoint.is_initiator then
      v_has_certificate := v_endpoint.remote_principal is not null and not v_endpoint.is_anonymous
        and (parley._p_find_dialog_certificate(v_endpoint.owner, true)).status is null;
      far_principal := v_endpoint.remote_principal;
      mode := parley._p_security_mode(
        v_has_certificate, v_endpoint.is_encrypted and not is_link_encrypted, far_principal is not null,
        v_endpoint.is_anonymous
      );
      if mode = '9731' then
        -- There it says "no certificate"; which one is missing or not usable is what the owner wants to know.
        status := (parley._p_find_dialog_certificate(v_endpoint.owner, true)).status;
        mode := null;
      elsif mode = '9727' then
        status := parley._p_numbered_status(9727, 'no binding', v_endpoint.far_service);
        mode := null;
      end if;
    elsif not is_recorded then
      mode := 'none';
      if v_endpoint.is_encrypted and not is_link_encrypted then
        mode := null;
        status := parley._p_numbered_status(9727, 'began in clear');
      end if;
    end if;
    return next;
  end loop;
end
$$;

comment on function parley._p_plan_dialogs(bigint[], boolean) is
'Shows how the messages of endpoints are to be sealed: mode none, anonymous or full; own_principal, whose certificate
signs in full security; far_principal, for whose certificate; key_id, with which key in an anonymous dialog that has
one. is_recorded is false for a dialog that is not secured yet (_p_secure_dialog). When they must not leave now, mode is
null and status says why. An endpoint that is gone has no row.
Arguments: endpoint_ids; is_link_encrypted, whether the link to the next broker is: then a dialog that is to be
encrypted needs no binding, and the next broker does not pass on what is unsealed.
Source: spec 7.3.';

create function parley._p_secure_dialog(
  inout endpoint_id bigint, inout mode text, inout far_principal oid, inout key_id bytea
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = _p_secure_dialog.endpoint_id;
  if not found then
    endpoint_id := null;
    return;
  end if;
  insert into parley._p_dialog_security (conversation_id, is_initiator, mode, far_principal, key_id)
  values (v_endpoint.conversation_id, v_endpoint.is_initiator, mode, far_principal, key_id)
  on conflict do nothing;
  select s.mode, s.far_principal, s.key_id into mode, far_principal, key_id
  from parley._p_dialog_security as s
  where s.conversation_id = v_endpoint.conversation_id and s.is_initiator = v_endpoint.is_initiator;
  if not v_endpoint.is_encrypted or v_endpoint.is_initiator and v_endpoint.remote_service_binding_id is null then
    update parley._p_endpoint as e
    set is_encrypted = true, remote_service_binding_id = coalesce(e.remote_service_binding_id, 0)
    where e.endpoint_id = v_endpoint.endpoint_id;
  end if;
end
$$;

comment on function parley._p_secure_dialog(bigint, text, oid, bytea) is
'Records for good how a dialog is secured, before its first message leaves, and gives what is recorded, perhaps by
another daemon before. Gives endpoint_id null when the endpoint is gone.
Arguments: endpoint_id; mode, anonymous or full; far_principal; key_id of an anonymous dialog.';

create function parley._p_bind_dialog(
  conversation_id uuid, is_initiator boolean, mode text, far_principal oid, key_id bytea
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_recorded parley._p_dialog_security;
  v_is_new boolean := false;
  v_is_open boolean;
begin
  if not is_initiator then
    insert into parley._p_dialog_security (conversation_id, is_initiator, mode, far_principal, key_id)
    values (conversation_id, is_initiator, mode, far_principal, key_id)
    on conflict do nothing;
    v_is_new := found;
  end if;
  select * into v_recorded
  from parley._p_dialog_security as s
  where s.conversation_id = _p_bind_dialog.conversation_id and s.is_initiator = _p_bind_dialog.is_initiator
  for update;
  if not found then
    return false;
  end if;
  v_is_open := exists (
    select from parley._p_endpoint as e
    where e.conversation_id = _p_bind_dialog.conversation_id and e.is_initiator = _p_bind_dialog.is_initiator
  );
  if v_is_new then
    if v_is_open then
      -- It was begun in clear.
      delete from parley._p_dialog_security as s
      where s.conversation_id = _p_bind_dialog.conversation_id and s.is_initiator = _p_bind_dialog.is_initiator;
    end if;
    return not v_is_open;
  -- An anonymous initiator knows the target by the key alone: nobody else could unseal the message.
  elsif v_recorded.mode = mode
    and v_recorded.key_id is not distinct from key_id
    and (mode = 'anonymous' or v_recorded.far_principal = far_principal) then
    return true;
  -- A record of a dialog that was never opened may be forged: the message that opens the dialog replaces it.
  elsif is_initiator or v_is_open or v_recorded.opened_at is not null then
    return false;
  end if;
  update parley._p_dialog_security as s
  set mode = _p_bind_dialog.mode, far_principal = _p_bind_dialog.far_principal, key_id = _p_bind_dialog.key_id,
    secured_at = clock_timestamp()
  where s.conversation_id = _p_bind_dialog.conversation_id and s.is_initiator = _p_bind_dialog.is_initiator;
  return true;
end
$$;

comment on function parley._p_bind_dialog(uuid, boolean, text, oid, bytea) is
'Reports whether a message that was opened comes from the other side of its dialog: sealed the same way, by
a certificate of the same role or with the same key. The first message of a dialog settles it for the
target. It belongs in the transaction in which the message is accepted: it holds the dialog''s row until
then, so nobody else comes between.
Arguments: conversation_id; is_initiator, of the side here; mode; far_principal, who has signed; key_id.
Source: spec 7.3.';

create function parley._p_find_downgraded(conversation_ids uuid[], is_initiators boolean[]) returns setof bigint
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select r.ordinal
  from unnest(conversation_ids, is_initiators) with ordinality as r (conversation_id, is_initiator, ordinal)
  join parley._p_dialog_security as s using (conversation_id, is_initiator)
  join parley._p_endpoint as e using (conversation_id, is_initiator)
$$;

comment on function parley._p_find_downgraded(uuid[], boolean[]) is
'Finds the messages that came in clear for a dialog that is secured, by their place in the arrays, from 1.
They are not of the other side.
Arguments: conversation_ids; is_initiators, of the sides here.';

create function parley._p_judge_certificates(
  signer bytea, receiver bytea, service text, out signer_principal oid, out signer_certificate bytea,
  out private_key bytea, out status text
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_receiver parley._p_certificate;
  v_signer parley._p_certificate;
  v_service parley._p_service;
begin
  select * into v_receiver from parley._p_certificate as c where c.fingerprint = receiver;
  private_key := v_receiver.private_key;
  if v_receiver.fingerprint is null or v_receiver.revoked_at is not null or private_key is null then
    status := parley._p_numbered_status(9733, 'not for here', encode(receiver, 'hex'));
  elsif v_receiver.expiry_date <= clock_timestamp() then
    status := parley._p_numbered_status(28025, 'certificate expired', pg_get_userbyid(v_receiver.owner));
  elsif v_receiver.start_date > clock_timestamp() then
    status := parley._p_numbered_status(28024, 'certificate not yet valid', pg_get_userbyid(v_receiver.owner));
  end if;
  select * into v_service from parley._p_service as s where s.name = service;
  -- A service that does not exist is refused for that reason.
  if status is null and v_service.service_id is not null
    and parley._p_has_permission(
      v_receiver.owner, 'CONTROL', 'service', v_service.service_id, v_service.owner
    ) is not true then
    status := parley._p_numbered_status(28056, 'no CONTROL', pg_get_userbyid(v_receiver.owner), service);
  end if;
  if signer is null or status is not null then
    return;
  end if;
  select * into v_signer from parley._p_certificate as c where c.fingerprint = signer;
  signer_principal := v_signer.owner;
  signer_certificate := v_signer.certificate;
  if v_signer.fingerprint is null or v_signer.revoked_at is not null then
    status := parley._p_numbered_status(9731, 'unknown signer', encode(signer, 'hex'));
  elsif v_signer.expiry_date <= clock_timestamp() then
    status := parley._p_numbered_status(28025, 'certificate expired', pg_get_userbyid(v_signer.owner));
  elsif v_signer.start_date > clock_timestamp() then
    status := parley._p_numbered_status(28024, 'certificate not yet valid', pg_get_userbyid(v_signer.owner));
  end if;
end
$$;

comment on function parley._p_judge_certificates(bytea, bytea, text) is
'Looks up by fingerprint the certificates that a sealed message names, whether they are active or not: signer_principal,
in whose name it was signed, the certificate that verifies it, and the sealed private key that opens it. Where the
message must not be opened status says why.
Arguments: signer, null in an anonymous dialog; receiver, for whom it is sealed; service, to which it goes.
Source: spec 7.4.';

create function parley._p_role_of_certificate(fingerprint text) returns oid
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select c.owner::oid
  from parley._p_certificate as c
  where c.fingerprint = decode(_p_role_of_certificate.fingerprint, 'hex')
    and c.revoked_at is null
    and c.start_date <= clock_timestamp()
    and c.expiry_date > clock_timestamp()
$$;

comment on function parley._p_role_of_certificate(text) is
'Gives the role in whose name a certificate signs; null when it is unknown, revoked or not valid now.
Arguments: fingerprint, 64 hexadecimal digits.';
