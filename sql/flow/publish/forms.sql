-- parley_flow.publish in its forms, and publish_many.

create function parley_flow._p_type_of_xml(body xml) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_root text;
  v_namespace text;
begin
  if not body is document then
    return null;
  end if;
  v_root := (xpath('local-name(/*)', body))[1]::text;
  v_namespace := (xpath('namespace-uri(/*)', body))[1]::text;
  return case when coalesce(v_namespace, '') = '' then v_root else v_namespace || '#' || v_root end;
end
$$;

comment on function parley_flow._p_type_of_xml(xml) is
'Gives the message type of a document: namespace#root, or root without a namespace; null when it is no document.';

create function parley_flow.publish(
  body text, properties jsonb default '{}', message_type text default null, receive_port text default null,
  written jsonb default null, idempotency_key text default null, caller parley.caller default parley.current_caller()
) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return ((parley_flow._p_publish(
    parley.caller_role(caller), array[convert_to(body, 'UTF8')], array[coalesce(properties, '{}')],
    case when message_type is not null then array[message_type] end, receive_port,
    case when written is not null then array[written] end, idempotency_key
  )).ids)[1];
end
$$;

comment on function parley_flow.publish(text, jsonb, text, text, jsonb, text, parley.caller) is
'Publishes a message in this transaction, and gives its number: each send port whose filter it satisfies gets it. A
message that satisfies none is suspended, or routed as a failed message, and the call succeeds.
Arguments: body, stored in UTF-8; properties, promoted, {"namespace#Name": scalar}, of which a value longer than 8,192
bytes is written instead; message_type, namespace#root or another name; receive_port, as whose message it comes, or
none; written, properties that are carried and not routed by; idempotency_key, under which a second message of this role
is the first one.
Errors: PF001 without PUBLISH for all, the port or its application, PF004 no such port, PF005 the engine is not
configured, PF010 malformed, PF011 another body under the key, PF013 more than the quota.';

create function parley_flow.publish(
  body bytea, properties jsonb default '{}', message_type text default null, receive_port text default null,
  written jsonb default null, idempotency_key text default null, caller parley.caller default parley.current_caller()
) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return ((parley_flow._p_publish(
    parley.caller_role(caller), array[body], array[coalesce(properties, '{}')],
    case when message_type is not null then array[message_type] end, receive_port,
    case when written is not null then array[written] end, idempotency_key
  )).ids)[1];
end
$$;

comment on function parley_flow.publish(bytea, jsonb, text, text, jsonb, text, parley.caller) is
'Publishes bytes; otherwise as parley_flow.publish of a text.
Errors: as parley_flow.publish of a text.';

create function parley_flow.publish(
  body jsonb, properties jsonb default '{}', message_type text default null, receive_port text default null,
  written jsonb default null, idempotency_key text default null, caller parley.caller default parley.current_caller()
) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return ((parley_flow._p_publish(
    parley.caller_role(caller), array[convert_to(body::text, 'UTF8')], array[coalesce(properties, '{}')],
    case when message_type is not null then array[message_type] end, receive_port,
    case when written is not null then array[written] end, idempotency_key
  )).ids)[1];
end
$$;

comment on function parley_flow.publish(jsonb, jsonb, text, text, jsonb, text, parley.caller) is
'Publishes a JSON document; otherwise as parley_flow.publish of a text.
Errors: as parley_flow.publish of a text.';

create function parley_flow.publish(
  body xml, properties jsonb default '{}', message_type text default null, receive_port text default null,
  written jsonb default null, idempotency_key text default null, caller parley.caller default parley.current_caller()
) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_type constant text := coalesce(message_type, parley_flow._p_type_of_xml(body));
begin
  return ((parley_flow._p_publish(
    parley.caller_role(caller), array[convert_to(xmlserialize(content body as text), 'UTF8')],
    array[coalesce(properties, '{}')], case when v_type is not null then array[v_type] end, receive_port,
    case when written is not null then array[written] end, idempotency_key
  )).ids)[1];
end
$$;

comment on function parley_flow.publish(xml, jsonb, text, text, jsonb, text, parley.caller) is
'Publishes an XML document, whose type without message_type is that of its root, namespace#root; otherwise as
parley_flow.publish of a text. It is stored in UTF-8: a declaration must not say otherwise.
Errors: as parley_flow.publish of a text.';

create function parley_flow.publish_many(
  bodies bytea[], properties jsonb[] default null, message_types text[] default null, receive_port text default null,
  written jsonb[] default null, caller parley.caller default parley.current_caller()
) returns bigint[]
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if cardinality(bodies) = 0 then
    found := parley_flow._p_publisher_of(parley.caller_role(caller), receive_port) is not null;
    return '{}'::bigint[];
  end if;
  return (parley_flow._p_publish(
    parley.caller_role(caller), bodies, properties, message_types, receive_port, written, null
  )).ids;
end
$$;

comment on function parley_flow.publish_many(bytea[], jsonb[], text[], text, jsonb[], parley.caller) is
'Publishes many messages in one statement, and gives their numbers, in order. It costs a fraction of as many calls of
parley_flow.publish.
Arguments: bodies; properties, message_types and written, null or one for each; receive_port, of all.
Errors: as parley_flow.publish of a text, PF010 also when arrays differ in length.';

create function parley_flow.publish_each(
  bodies bytea[], properties jsonb[] default null, message_types text[] default null, receive_port text default null,
  written jsonb[] default null, idempotency_key text default null, caller parley.caller default parley.current_caller()
) returns table (n integer, message_id bigint, outcome text)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_published record;
begin
  if cardinality(bodies) = 0 then
    found := parley_flow._p_publisher_of(parley.caller_role(caller), receive_port) is not null;
    return;
  elsif idempotency_key is not null and cardinality(bodies) > 1 then
    found := parley_flow._p_raise('key of many', cardinality(bodies)::text);
  end if;
  v_published := parley_flow._p_publish(
    parley.caller_role(caller), bodies, properties, message_types, receive_port, written, idempotency_key
  );
  return query
  select p.n::integer, p.message_id, p.outcome
  from unnest(v_published.ids, v_published.outcomes) with ordinality as p (message_id, outcome, n)
  order by p.n;
end
$$;

comment on function parley_flow.publish_each(bytea[], jsonb[], text[], text, jsonb[], text, parley.caller) is
'Publishes messages in one statement, and gives the number and the outcome of each, in order: PUBLISHED, somebody gets
it; SUSPENDED, nobody did, and it waits for an operator; FAILED_ROUTED, nobody did, and it was routed as a failed
message; REPEATED, the key was used before, and the number is that of the first message.
Arguments: as parley_flow.publish_many; idempotency_key, of a single message, as parley_flow.publish.
Errors: as parley_flow.publish_many; PF010 also for a key with several messages.';
