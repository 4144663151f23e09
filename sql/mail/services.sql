-- Delivery to services and tables of this database (spec mail 12.2).
--
-- Work is claimed under a lease, in a transaction of its own, and done and completed in one: the message is sent or the
-- row inserted, the recipient is delivered and the event recorded, or nothing of it. So it is delivered exactly once,
-- whoever dies when; what somebody dies of twice is poison (mail/local_deliveries.sql). What one binding refuses is
-- tried again by itself.

create function parley_mail._p_unfolded_headers(content bytea) returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(
    jsonb_build_array(split_part(h.line, ':', 1), btrim(substr(h.line, strpos(h.line, ':') + 1))) order by h.n
  ), '[]')
  from regexp_split_to_table(
    regexp_replace(
      encode(substring(content from 1 for greatest(position(E'\\x0d0a0d0a'::bytea in content) - 1, 0)), 'escape'),
      E'\r\n[ \t]+', ' ', 'g'
    ), E'\r\n'
  ) with ordinality as h (line, n)
  where strpos(h.line, ':') > 1
$$;

comment on function parley_mail._p_unfolded_headers(bytea) is
'Gives the header fields of a message, unfolded, in their order: a list of name and value. Bytes that are not ASCII
stand as backslash and three octal digits.';

create function parley_mail._p_body_of(message_id bigint) returns bytea
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_holder record;
begin
  select b.message_id, b.content_id, b.body into v_holder
  from parley_mail._p_message as m
  join parley_mail._p_message as b on b.message_id = coalesce(m.body_message_id, m.message_id)
  where m.message_id = _p_body_of.message_id;
  if v_holder.content_id is null then
    return v_holder.body;
  end if;
  return coalesce(
    (select o.body from parley_store.open_content(v_holder.content_id, 'mail', v_holder.message_id) as o),
    (
      select string_agg(k.body, '' order by k.number)
      from parley_store.read_content(v_holder.content_id, 'mail', v_holder.message_id) as k
    )
  );
end
$$;

comment on function parley_mail._p_body_of(bigint) is 'Gives the whole body of a message, wherever it stands.';

create function parley_mail._p_payload(message_id bigint, addresses text[]) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'message_id', m.message_id, 'network_message_id', m.network_message_id, 'header_message_id', m.header_message_id,
    'received_at', m.received_at, 'sender', m.sender, 'recipient', addresses[1], 'recipients', to_jsonb(addresses),
    'subject', m.subject, 'size', m.size, 'source', m.source, 'source_ip', m.source_ip, 'helo', m.helo,
    'authenticated_as', m.authenticated_as, 'verdicts', m.verdicts, 'headers', parley_mail._p_unfolded_headers(b.body),
    -- In one line: not every decoder takes the line ends that encode writes.
    'raw', translate(encode(b.body, 'base64'), E'\n', '')
  )
  from parley_mail._p_message as m
  cross join (select parley_mail._p_body_of(_p_payload.message_id) as body offset 0) as b
  where m.message_id = _p_payload.message_id
$$;

comment on function parley_mail._p_payload(bigint, text[]) is
'Gives a message as the JSON object that services get: envelope, verdicts, header fields, and the whole of it as raw, in
base64.
Source: spec mail 12.2.';

create function parley_mail._p_conversation_key(binding parley_mail._p_service_pattern, payload jsonb) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select left(case binding.conversation_key
    when 'PLUS_TAG' then substring(payload ->> 'recipient' from E'\\+(.*)@')
    when 'SENDER' then parley_mail._p_folded(payload ->> 'sender')
    when 'RECIPIENT' then parley_mail._p_folded(payload ->> 'recipient')
    when 'IN_REPLY_TO' then coalesce(
      (
        select h.v ->> 1
        from jsonb_array_elements(payload -> 'headers') as h (v)
        where lower(h.v ->> 0) = 'in-reply-to'
        limit 1
      ),
      payload ->> 'header_message_id'
    )
  end, 200)
$$;

comment on function parley_mail._p_conversation_key(parley_mail._p_service_pattern, jsonb) is
'Gives the key of the conversation that a message goes to; null: any.';

create function parley_mail._p_require_binding_rights(binding parley_mail._p_service_pattern) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_author text := (select r.rolname from pg_roles as r where r.oid = binding.author);
  v_lacks text;
begin
  if v_author is null then
    v_lacks := 'do anything: it is gone';
  elsif binding.target_table is not null then
    if has_table_privilege(binding.author, to_regclass(binding.target_table)::oid, 'insert') is not true then
      v_lacks := format('insert into %s', binding.target_table);
    elsif exists (
      select
      from pg_class as c
      join pg_roles as a on a.oid = binding.author
      where c.oid = to_regclass(binding.target_table) and c.relrowsecurity and not (a.rolsuper or a.rolbypassrls)
        and (c.relforcerowsecurity or pg_has_role(a.oid, c.relowner, 'usage') is not true)
    ) then
      -- The insert has the rights of the owner of the schema, and so is asked no policy.
      v_lacks := format('pass by the row level security of %s', binding.target_table);
    end if;
  elsif parley_mail._p_may_send_from(binding.author, binding.from_service) is not true then
    v_lacks := format('send as service %s', binding.from_service);
  elsif exists (
    select
    from parley.services as s
    where s.name = binding.service
      and parley_mail._p_may_send_to(binding.author, s.service_id, s.principal_id) is not true
  ) then
    v_lacks := format('send to service %s', binding.service);
  end if;
  if v_lacks is not null then
    found := parley_mail._p_raise('binding', binding.binding, coalesce(v_author, binding.author::text), v_lacks);
  end if;
  return true;
end
$$;

comment on function parley_mail._p_require_binding_rights(parley_mail._p_service_pattern) is
'Refuses to deliver for a binding whose author may not do himself what it does: rights are taken back, and services and
tables come after bindings that name them.
Errors: PM001.';

create function parley_mail._p_deliver_to_binding(binding text, message_id bigint, addresses text[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_binding parley_mail._p_service_pattern;
  v_payload jsonb;
  v_size bigint;
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
  v_payload := parley_mail._p_payload(message_id, addresses);
  if v_binding.target_table is not null then
    perform parley_mail._p_insert_into_table(v_binding.target_table::regclass, v_payload);
  else
    perform parley.send(
      parley.get_conversation(
        v_binding.from_service, v_binding.service, v_binding.contract,
        key => parley_mail._p_conversation_key(v_binding, v_payload), caller => parley.current_caller()
      ), v_binding.message_type, v_payload
    );
  end if;
end
$$;

comment on function parley_mail._p_deliver_to_binding(text, bigint, text[]) is
'Sends a message to the service of a binding, or inserts it into its table.
Errors: PM001 its author may not do it, PM004 the binding is gone, PM012 too large, and those of the service or the
table.';

create function parley_mail._p_deliver_item(item parley_store.claimed_item) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_recipients record;
  v_reason text;
  v_state text;
  v_outcome text := 'DELIVERED';
  v_began constant timestamptz := clock_timestamp();
begin
  select array_agg(r.ordinal order by r.ordinal) as ordinals, array_agg(r.address order by r.ordinal) as addresses
  into v_recipients
  from parley_mail._p_recipient as r
  where r.message_id = item.subject and r.lane = item.lane;
  if v_recipients.ordinals is null then
    perform parley_store.complete_work(item.lease_id, array[item.item_id]);
    return false;
  end if;
  begin
    perform parley_mail._p_deliver_to_binding(split_part(item.lane, '/', 2), item.subject, v_recipients.addresses);
  exception
    when transaction_rollback or insufficient_resources or operator_intervention or system_error then
      raise;
    when others then
      v_reason := sqlerrm;
      v_state := sqlstate;
      v_outcome := case
        when v_state = 'PM012' or item.expires_at < clock_timestamp() then 'FAILED' else 'DEFERRED'
      end;
  end;
  if v_outcome = 'DEFERRED' then
    perform parley_store.retry_work(item.lease_id, array[item.item_id], v_reason, 'mail_message');
  else
    perform parley_store.complete_work(item.lease_id, array[item.item_id]);
  end if;
  perform parley_mail._p_finish_recipients(array(
    select (
      null, null, item.subject, u.ordinal, v_outcome, null,
      case v_outcome
        when 'DELIVERED' then '2.0.0' when 'DEFERRED' then '4.3.0'
        else case v_state when 'PM012' then '5.3.4' else '5.4.7' end
      end, v_reason, null, null,
      null, extract(epoch from clock_timestamp() - v_began) * 1000, null
    )::parley_mail._p_outcome
    from unnest(v_recipients.ordinals) as u (ordinal)
  ));
  return v_outcome = 'DELIVERED';
end
$$;

comment on function parley_mail._p_deliver_item(parley_store.claimed_item) is
'Delivers one message to a service or a table, or has it tried again; gives whether it was delivered. The caller removes
what is finished.';
