-- Delivery to services and tables of this database (spec mail 12.2).
--
-- Work is claimed under a lease, in a transaction of its own, and done and completed in one. Either the message is sent
-- or the row inserted, the recipient is delivered and the event recorded, or nothing of it. So it is delivered exactly
-- once, whenever a daemon dies. A message of which daemons die twice is poison (services/local_deliveries.sql). A
-- message that one binding refuses is tried again by itself.

create function parley_mail._p_conversation_key(conversation_key text, recipient text, payload jsonb) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case when length(k.key) > 200 then left(k.key, 168) || md5(k.key) else nullif(k.key, '') end
  from (select case conversation_key
    -- Programs that keep addresses change the case of local parts, and elsewhere here it distinguishes nobody.
    when 'PLUS_TAG' then substring(parley_mail._p_folded(recipient) from E'\\+(.*)@')
    when 'VERP' then parley_mail._p_folded(regexp_replace(
      substring(recipient from E'\\+(.+=[^=]+)@[^@]*$'), '^(.*)=([^=]*)$', E'\\1@\\2'
    ))
    when 'SENDER' then parley_mail._p_folded(payload ->> 'sender')
    when 'RECIPIENT' then parley_mail._p_folded(recipient)
    -- A message that names no other and has no name itself begins a conversation of its own.
    when 'IN_REPLY_TO' then coalesce(
      parley_mail._p_first_id(payload, 'in_reply_to'), nullif(payload ->> 'header_message_id', ''),
      payload ->> 'network_message_id'
    )
    when 'THREAD' then coalesce(
      parley_mail._p_first_id(payload, 'references'), parley_mail._p_first_id(payload, 'in_reply_to'),
      nullif(payload ->> 'header_message_id', ''), payload ->> 'network_message_id'
    )
  end as key) as k
$$;

comment on function parley_mail._p_conversation_key(text, text, jsonb) is
'Gives the key of the conversation to which a message goes for one of its recipients; null: any. A key of more than 200
characters ends with a hash of it.
Arguments: conversation_key, that of the binding; recipient; payload.
Source: spec mail 12.2.';

create function parley_mail._p_fire_timers() returns integer
language sql
set search_path = pg_catalog, pg_temp
as $$
  select parley.fire_timers(1000, caller => parley.current_caller())
$$;

comment on function parley_mail._p_fire_timers() is
'Has timers of the broker fire for the owner of mail, whose conversations with services end when their time is over;
gives how many.';

create function parley_mail._p_require_binding_rights(binding parley_mail._p_service_pattern) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_author constant oid := parley._p_role_with(binding.author);
  v_lacks text;
begin
  if v_author is null then
    v_lacks := 'do anything: it is gone';
  elsif binding.target_table is not null then
    if has_table_privilege(v_author, to_regclass(binding.target_table)::oid, 'insert') is not true then
      v_lacks := format('insert into %s', binding.target_table);
    elsif exists (
      select
      from pg_class as c
      join pg_roles as a on a.oid = v_author
      where c.oid = to_regclass(binding.target_table) and c.relrowsecurity and not (a.rolsuper or a.rolbypassrls)
        and (c.relforcerowsecurity or pg_has_role(a.oid, c.relowner, 'usage') is not true)
    ) then
      -- The insert has the rights of the owner of the schema, and so is asked no policy.
      v_lacks := format('pass by the row level security of %s', binding.target_table);
    end if;
  elsif parley_mail._p_may_send_from(v_author, binding.from_service) is not true then
    v_lacks := format('send as service %s', binding.from_service);
  elsif exists (
    select
    from parley.services as s
    where s.name = binding.service
      and parley_mail._p_may_send_to(v_author, s.service_id, s.principal_id) is not true
  ) then
    v_lacks := format('send to service %s', binding.service);
  end if;
  if v_lacks is not null then
    found := parley_mail._p_raise('binding', binding.binding, coalesce(
      pg_get_userbyid(v_author)::text, parley._p_name_with(binding.author), 'that is not known'
    ), v_lacks);
  end if;
  return true;
end
$$;

comment on function parley_mail._p_require_binding_rights(parley_mail._p_service_pattern) is
'Refuses to deliver for a binding whose author may not do himself what it does: rights are taken back, and services and
tables come after bindings that name them.
Errors: PM001.';

create function parley_mail._p_deliver_to_binding(
  binding text, message_id bigint, addresses text[], parsed bytea
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
-- Mail for others waits behind this one.
set lock_timeout = '2s'
as $$
declare
  v_binding parley_mail._p_service_pattern;
  v_payload jsonb;
  v_size bigint;
  v_key text;
  v_shared record;
  v_has_sent boolean := false;
begin
  select m.size into v_size
  from parley_mail._p_message as m
  where m.message_id = _p_deliver_to_binding.message_id;
  select * into v_binding
  from parley_mail._p_service_pattern as p
  where p.binding = _p_deliver_to_binding.binding;
  if not found then
    found := parley_mail._p_raise('absent', 'service binding', binding);
  end if;
  if v_size > v_binding.max_size then
    found := parley_mail._p_raise(
      'size', v_size::text, v_binding.max_size::text, format('max_size of service binding "%s"', binding)
    );
  end if;
  found := parley_mail._p_require_binding_rights(v_binding);
  -- The error would come when the message counts as delivered.
  if parley_mail._p_accepts_contract(v_binding.service, v_binding.contract) is false then
    found := parley_mail._p_raise('contract', binding, v_binding.service, v_binding.contract);
  end if;
  v_payload := parley_mail._p_payload(
    message_id, addresses, parsed, parley_mail._p_keep_body(message_id, v_binding)
  );
  if v_binding.target_table is not null then
    perform parley_mail._p_insert_into_table(v_binding.target_table::regclass, v_payload);
    return;
  end if;
  if v_binding.conversation_key not in ('PLUS_TAG', 'VERP', 'RECIPIENT') then
    -- All recipients have the same one: it is read once.
    v_key := parley_mail._p_conversation_key(v_binding.conversation_key, null, v_payload);
  end if;
  for v_shared in
    select k.key, array_agg(a.address order by a.n) as addresses
    from unnest(addresses) with ordinality as a (address, n)
    cross join lateral (
      select coalesce(v_key, parley_mail._p_conversation_key(v_binding.conversation_key, a.address, null)) as key
    ) as k
    group by k.key
    order by k.key
  loop
    if v_shared.addresses <> addresses then
      v_payload := v_payload || jsonb_build_object(
        'recipient', v_shared.addresses[1], 'recipients', to_jsonb(v_shared.addresses)
      );
    end if;
    if v_has_sent and v_payload ? 'raw_reference' then
      -- A receiver that releases one must not take it from the other.
      v_payload := v_payload || jsonb_build_object(
        'raw_reference', parley_mail._p_keep_body(message_id, v_binding)
      );
    end if;
    v_has_sent := true;
    perform parley.send(
      parley.get_conversation(
        v_binding.from_service, v_binding.service, v_binding.contract, key => v_shared.key,
        max_age => case when v_shared.key is null then 3600 else v_binding.conversation_age end,
        caller => parley.current_caller()
      ), v_binding.message_type, v_payload
    );
  end loop;
end
$$;

comment on function parley_mail._p_deliver_to_binding(text, bigint, text[], bytea) is
'Sends a message to the service of a binding, once for each conversation to which its recipients belong, or inserts it
into its table. It waits two seconds for what is locked.
Arguments: binding; message_id; addresses, the recipients; parsed, as _p_parsed.
Errors: 55P03 what it needs is locked, PM001 its author may not do it, PM003 the service does not accept the contract,
PM004 the binding is gone, PM012 too large, and those of the service or the table.';

create function parley_mail._p_finish_item(
  item parley_store.claimed_item, state text, reason text, began timestamptz
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_outcome constant text := case
    when state = '00000' then 'DELIVERED'
    when state = 'PM012' or item.expires_at < clock_timestamp() then 'FAILED'
    else 'DEFERRED'
  end;
begin
  if v_outcome = 'DEFERRED' then
    perform parley_store.retry_work(item.lease_id, array[item.item_id], reason, 'mail_message');
  else
    perform parley_store.complete_work(item.lease_id, array[item.item_id]);
  end if;
  perform parley_mail._p_finish_recipients(array(
    select (
      null, null, item.subject, r.ordinal, v_outcome, null,
      case v_outcome
        when 'DELIVERED' then '2.0.0' when 'DEFERRED' then '4.3.0'
        else case state when 'PM012' then '5.3.4' else '5.4.7' end
      end, reason, null, null,
      null, extract(epoch from clock_timestamp() - began) * 1000, null
    )::parley_mail._p_outcome
    from parley_mail._p_recipient as r
    where r.message_id = item.subject and r.lane = item.lane
    order by r.ordinal
  ));
end
$$;

comment on function parley_mail._p_finish_item(parley_store.claimed_item, text, text, timestamptz) is
'Records what became of one message for a service or a table: it is delivered, tried again, or given up.
Arguments: item; state, 00000 when it was delivered, otherwise the SQLSTATE of what went wrong; reason; began, when.';

create function parley_mail._p_deliver_item(item parley_store.claimed_item, parsed bytea) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_addresses text[];
  v_reason text;
  v_state text := '00000';
  v_began constant timestamptz := clock_timestamp();
begin
  select array_agg(r.address order by r.ordinal) into v_addresses
  from parley_mail._p_recipient as r
  where r.message_id = item.subject and r.lane = item.lane;
  if v_addresses is null then
    perform parley_store.complete_work(item.lease_id, array[item.item_id]);
    return null;
  end if;
  begin
    perform parley_mail._p_deliver_to_binding(p.connector, item.subject, v_addresses, parsed)
    from parley_mail._p_parts_of_lane(item.lane) as p;
  exception
    -- A deadlock may be about what this transaction has locked before: it has to begin anew. Code of others, such as a
    -- trigger, raises whatever it likes.
    when transaction_rollback then
      raise;
    when assert_failure or others then
      v_reason := sqlerrm;
      v_state := sqlstate;
  end;
  perform parley_mail._p_finish_item(item, v_state, v_reason, v_began);
  return v_state;
end
$$;

comment on function parley_mail._p_deliver_item(parley_store.claimed_item, bytea) is
'Delivers one message to a service or a table, or has it tried again; gives the SQLSTATE of what went wrong, 00000 when
it was delivered, and null where it is for nobody any more. The caller removes what is finished.
Arguments: item; parsed, as _p_parsed.
Errors: those of class 40, and 57014.';
