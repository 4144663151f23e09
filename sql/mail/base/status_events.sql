-- Status events: what becomes of a message, for the Parley service that its submitter named.
--
-- The message type is parley_mail/Status, a JSON object; it is sent in the transaction that records the outcome, in
-- the name of the service parley_mail/Status, over a conversation of the pool.

create function parley_mail._p_may_send_to(role oid, service_id integer, owner oid) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  -- As for any conversation: its owner, or who was granted SEND on it.
  select coalesce(pg_has_role(role, owner, 'usage') or exists (
    select
    from parley.permissions as p
    where p.class = 'service' and p.object_id = $2 and p.permission in ('SEND', 'CONTROL')
      and case when p.grantee = 'PUBLIC' then true else pg_has_role(role, p.grantee, 'usage') end
  ), false)
$$;

comment on function parley_mail._p_may_send_to(oid, integer, oid) is
'Reports whether a role may send to a service of this database.';

create function parley_mail._p_may_send_from(role oid, service text) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  -- The service of status events is that of mail itself.
  select service = 'parley_mail/Status' or exists (
    select from parley.services as s where s.name = $2 and pg_has_role(role, s.principal_id, 'usage')
  )
$$;

comment on function parley_mail._p_may_send_from(oid, text) is
'Reports whether a role may have mail transport send in the name of a service: its owner may, and all in that of mail.';

create function parley_mail._p_require_status_service(role oid, service text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_service record;
begin
  select s.name, s.service_id, s.principal_id into v_service from parley.services as s where s.name = service;
  if not found then
    found := parley_mail._p_raise('service', service, 'There is none of this name in the database.');
  end if;
  if not exists (
    select
    from parley.service_contract_usages as u
    join parley.service_contracts as c using (service_contract_id)
    where u.service_id = v_service.service_id and c.name = 'parley_mail/Status'
  ) then
    found := parley_mail._p_raise('service', service, 'It does not accept the contract.');
  end if;
  if parley_mail._p_may_send_to(role, v_service.service_id, v_service.principal_id) is not true then
    found := parley_mail._p_raise('service', service, format('Role %I may not send to it.', pg_get_userbyid(role)));
  end if;
  return true;
end
$$;

comment on function parley_mail._p_require_status_service(oid, text) is
'Refuses a service that cannot be informed of what becomes of messages, or to which a role may not send.
Errors: PM010.';
