-- The rules of who may send which message to which side. SEND, a first message in this database and what comes from
-- other databases all ask here; each of them has its own number for what it refuses, because one is raised and the
-- others arrive.

create view parley._p_sendable_type as
select u.service_contract_id, d.is_from_initiator, t.message_type_id, t.name, t.is_validated
from parley._p_contract_message_type as u
join parley._p_message_type as t using (message_type_id)
cross join (values (true), (false)) as d (is_from_initiator)
where case when d.is_from_initiator then u.is_sent_by_initiator else u.is_sent_by_target end;

comment on view parley._p_sendable_type is
'The messages that each side of a conversation may send: the message types of a contract, by direction, and whether
their bodies are validated (spec 2.3).';

create function parley._p_type_fault(
  service_contract_id integer, message_type_id integer, is_from_initiator boolean
) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when parley._p_is_system_message(message_type_id) then 'not in the contract'
    when exists (
      select
      from parley._p_sendable_type as t
      where t.service_contract_id = _p_type_fault.service_contract_id
        and t.message_type_id = _p_type_fault.message_type_id
        and t.is_from_initiator = _p_type_fault.is_from_initiator
    ) then null
    when exists (
      select
      from parley._p_sendable_type as t
      where t.service_contract_id = _p_type_fault.service_contract_id
        and t.message_type_id = _p_type_fault.message_type_id
    ) then 'other side'
    else 'not in the contract'
  end
$$;

comment on function parley._p_type_fault(integer, integer, boolean) is
'Says why a side of a conversation may not send a message type: "not in the contract", or for the "other
side" to send; null when it may.';

create function parley._p_may_send(sender oid, service parley._p_service) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return case
    when sender is not null then parley._p_has_permission(sender, 'SEND', 'service', service.service_id, service.owner)
    else exists (
      select
      from parley._p_permission as p
      where p.class = 'service'
        and p.object_id = service.service_id
        and p.permission in ('SEND', 'CONTROL')
        and p.grantee = 0::regrole
    )
  end;
end
$$;

comment on function parley._p_may_send(oid, parley._p_service) is
'Reports whether a sender may SEND to a service here: as the role that owns the sending service or for which the
sender in another database stands, or, when it stands for none, as PUBLIC (spec 7.3).';

create function parley._p_refuse_dialog(
  service parley._p_service, contract text, sender oid, from_service text default null
) returns parley._p_error
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_contract integer;
begin
  if parley._p_may_send(sender, service) is not true then
    return case
      when from_service is null then parley._p_error_of(8494, 'sender', service.name)
      else parley._p_error_of(8494, 'owner', sender::regrole::text, from_service, service.name)
    end;
  end if;
  select c.service_contract_id into v_contract from parley._p_contract as c where c.name = contract;
  if not found then
    return parley._p_error_of(8425, 'unknown there', contract);
  elsif not exists (
    select from parley._p_service_contract as u
    where u.service_id = service.service_id and u.service_contract_id = v_contract
  ) then
    return parley._p_error_of(8408, 'not accepted', service.name, contract);
  end if;
  return null;
end
$$;

comment on function parley._p_refuse_dialog(parley._p_service, text, oid, text) is
'Explains why a service here does not take a dialog: the sender may not SEND to it (8494), the contract is unknown
(8425) or not accepted (8408); null when it does.
Arguments: service; contract, by name; sender, the role that _p_may_send asks for; from_service, the sending
service when it is in this database.
Source: spec 6.10, 7.3.';
