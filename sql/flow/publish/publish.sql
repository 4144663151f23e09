-- Publishing from an application: select parley_flow.publish(...) is part of the caller's transaction.
--
-- A rollback leaves nothing. A message that matches nothing is suspended, or routed as a failed message, and the call
-- succeeds: a missing subscription is no fault of the publisher.

create table parley_flow._p_idempotency (
  published_by integer not null,
  key text not null,
  content_hash bytea not null,
  message_id bigint not null,
  at timestamptz not null default clock_timestamp(),
  primary key (published_by, key)
);

comment on table parley_flow._p_idempotency is
'Keys under which roles, by their numbers, have published messages, for a week: a second message of one key is the first
one, or refused.';

create index _p_idempotency_at on parley_flow._p_idempotency (at);

create type parley_flow._p_publisher as (
  role oid,
  number integer,
  origin parley_flow._p_origin,
  common jsonb
);

comment on type parley_flow._p_publisher is
'The role that publishes in SQL, from where, and the properties that the messages get by that.';

create function parley_flow._p_publisher_of(caller oid, receive_port text) returns parley_flow._p_publisher
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_publisher parley_flow._p_publisher;
  v_port parley_flow._p_receive_port;
begin
  select * into v_port from parley_flow._p_receive_port as p where p.name = receive_port;
  if parley_flow._p_holds(caller, 'PUBLISH', v_port.application, receive_port) is not true then
    found := parley_flow._p_raise('right', 'PUBLISH', pg_get_userbyid(caller), case
      when receive_port is null then '' else format(' for receive port "%s"', receive_port)
    end);
  end if;
  if not (select c.is_set_up from parley_flow._p_configuration as c) then
    found := parley_flow._p_raise('set up');
  elsif receive_port is not null and v_port.receive_port_id is null then
    found := parley_flow._p_raise('absent', 'receive port', receive_port);
  end if;
  v_publisher.role := caller;
  v_publisher.number := parley._p_number_of(caller);
  v_publisher.origin := row(
    null, v_port.receive_port_id, v_port.application, coalesce(v_port.routes_failed, false), v_publisher.number
  );
  v_publisher.common := jsonb_strip_nulls(jsonb_build_object(
    'InboundTransportType', 'SQL', 'ReceivePortName', v_port.name
  ));
  return v_publisher;
end
$$;

comment on function parley_flow._p_publisher_of(oid, text) is
'Gives who publishes by a receive port, or by none.
Errors: PF001 it may not, PF004 no such port, PF005 the engine is not configured.';

create function parley_flow._p_require_type(message_type text) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if octet_length(message_type) not between 1 and 1000 or message_type ~ '[[:cntrl:]]' then
    found := parley_flow._p_raise('message type', format('It has %s bytes.', octet_length(message_type)));
  end if;
  return true;
end
$$;

comment on function parley_flow._p_require_type(text) is
'Refuses a message type that is no name.
Errors: PF010.';

create function parley_flow._p_first_under_key(publisher integer, key text, body bytea, message_id bigint)
returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_hash constant bytea := sha256(body);
  v_first record;
begin
  if octet_length(key) not between 1 and 1000 then
    found := parley_flow._p_raise('key', format('It has %s bytes.', octet_length(key)));
  end if;
  loop
    -- A session that publishes under the same key at the same time is waited for: if it commits, its message is the
    -- one.
    insert into parley_flow._p_idempotency as i (published_by, key, content_hash, message_id)
    values (publisher, _p_first_under_key.key, v_hash, _p_first_under_key.message_id)
    on conflict on constraint _p_idempotency_pkey do nothing;
    if found then
      return null;
    end if;
    select i.content_hash, i.message_id into v_first
    from parley_flow._p_idempotency as i
    where i.published_by = publisher and i.key = _p_first_under_key.key;
    exit when found;
  end loop;
  if v_first.content_hash <> v_hash then
    found := parley_flow._p_raise('other content', key, v_first.message_id::text);
  end if;
  return v_first.message_id;
end
$$;

comment on function parley_flow._p_first_under_key(integer, text, bytea, bigint) is
'Gives the message that was published under a key before; null: this is the first, and the key is its own.
Errors: PF010, PF011 with another body.';

create function parley_flow._p_publish(
  caller oid, bodies bytea[], properties jsonb[], message_types text[], receive_port text, written jsonb[],
  idempotency_key text, out ids bigint[], out outcomes text[]
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_publisher parley_flow._p_publisher := parley_flow._p_publisher_of(caller, receive_port);
  v_first bigint;
begin
  if bodies is null or array_position(bodies, null) is not null then
    found := parley_flow._p_raise('missing', 'body');
  end if;
  found := parley_flow._p_require_lengths(cardinality(bodies), properties, message_types, written);
  found := parley_flow._p_require_all_properties(properties, false);
  found := parley_flow._p_require_all_properties(written, false);
  perform parley_flow._p_require_type(t.message_type)
  from (select distinct u.message_type from unnest(message_types) as u (message_type)) as t;
  found := parley_flow._p_count_against_quota(v_publisher.role, v_publisher.number, bodies);
  ids := parley_flow._p_new_ids(cardinality(bodies));
  if idempotency_key is not null then
    v_first := parley_flow._p_first_under_key(v_publisher.number, idempotency_key, bodies[1], ids[1]);
    if v_first is not null then
      ids := array[v_first];
      outcomes := array['REPEATED'];
      return;
    end if;
  end if;
  select array_agg(d.outcome order by d.n) into outcomes
  from parley_flow._p_publish_drafts(
    parley_flow._p_make_drafts(ids, bodies, properties, written, message_types, v_publisher.common),
    v_publisher.origin
  ) as d;
  perform parley_flow._p_count('', array['documents_received'], array[cardinality(ids)]);
end
$$;

comment on function parley_flow._p_publish(oid, bytea[], jsonb[], text[], text, jsonb[], text) is
'Publishes messages for a role; gives their numbers and outcomes, in order. An argument that is not given for any is
null.
Errors: those of parley_flow.publish.';

create function parley_flow._p_require_lengths(
  messages integer, properties jsonb[], message_types text[], written jsonb[]
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wrong record;
begin
  select l.name, l.length into v_wrong
  from (
    values ('properties', cardinality(properties)), ('message_types', cardinality(message_types)),
      ('written', cardinality(written))
  ) as l (name, length)
  where l.length <> messages
  limit 1;
  if found then
    found := parley_flow._p_raise('lengths', 'bodies', messages::text, v_wrong.name, v_wrong.length::text);
  end if;
  return true;
end
$$;

comment on function parley_flow._p_require_lengths(integer, jsonb[], text[], jsonb[]) is
'Refuses arrays that do not fit.
Errors: PF010.';
