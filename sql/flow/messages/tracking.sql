-- Tracking: what happened to each message, in the store's tracking, system flow.
--
-- While a message is there its row says where it came from. When a delivery ends, an event SEND says that too, so that
-- no event has to be written before. Messages that end in one call and are alike share a row: its message_id is b and
-- the number of a block of 64 numbers, and its fields have an array with an element for each. One for itself has its
-- number. A property that is tracked has a row under p and the hash of its name and value. That a message has a child
-- stands under its own number.
-- Cost: for a batch of 100 messages two or three rows.

create function parley_flow._p_block(message_id bigint) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$ select format('b%s', (message_id - 1) / 64) $$;

comment on function parley_flow._p_block(bigint) is 'Gives under which number tracking has a message among others.';

create function parley_flow._p_property_number(property text, value text) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$ select format('p%s', encode(sha256(convert_to(format('%s=%s', property, value), 'UTF8')), 'hex')) $$;

comment on function parley_flow._p_property_number(text, text) is
'Gives under which number tracking has the messages with a value of a property.';

create function parley_flow._p_alike(elements anyarray) returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when elements = array_fill(elements[1], array[cardinality(elements)]) then to_jsonb(elements[1])
    else to_jsonb(elements)
  end
$$;

comment on function parley_flow._p_alike(anyarray) is
'Gives elements as an array, or as one when all are the same: most are, and a small row is not compressed.';

create function parley_flow._p_element(fields jsonb, field text, place integer) returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case jsonb_typeof(fields -> field) when 'array' then fields -> field -> (place - 1) else fields -> field end
$$;

comment on function parley_flow._p_element(jsonb, text, integer) is
'Gives what a row of tracking has in a field of one of its messages, from 1 on.';

create function parley_flow._p_place_of(fields jsonb, message_id bigint) returns integer
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when fields ? 'ids' then (
      select e.n::integer
      from jsonb_array_elements(fields -> 'ids') with ordinality as e (id, n)
      where e.id::bigint = $2
    )
    when $2 between (fields -> 'first')::bigint and (fields -> 'last')::bigint
      then ($2 - (fields -> 'first')::bigint + 1)::integer
  end
$$;

comment on function parley_flow._p_place_of(jsonb, bigint) is
'Gives which of the messages of a row of tracking one is, from 1 on; null when it is none of them.';

create type parley_flow._p_sent as (
  block bigint,
  first_id bigint,
  location_id integer,
  receive_port_id integer,
  published_by integer,
  message_type text,
  ids bigint[],
  received bigint[],
  sizes bigint[],
  attempts integer[],
  interchanges bigint[],
  parents bigint[],
  details jsonb[]
);

comment on type parley_flow._p_sent is
'Messages of a block that were sent by one port and are alike, in the order of their numbers: what tracking has of them,
an element for each.';

create function parley_flow._p_track_sent(host text, send_port text, sent parley_flow._p_sent[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_numbers text[];
  v_fields jsonb;
begin
  select
    array_agg(case when cardinality(b.ids) = 1 then b.first_id::text else format('b%s', b.block) end),
    jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
      'send_port', send_port, 'location_id', b.location_id, 'receive_port_id', b.receive_port_id,
      'published_by', b.published_by, 'message_type', b.message_type, 'received', parley_flow._p_alike(b.received),
      'sizes', parley_flow._p_alike(b.sizes), 'attempts', parley_flow._p_alike(b.attempts),
      'interchanges', nullif(parley_flow._p_alike(b.interchanges), '0'),
      'parents', nullif(parley_flow._p_alike(b.parents), '0'),
      'details', case when array_remove(b.details, null) <> '{}' then parley_flow._p_alike(b.details) end
    )) || case
      when b.first_id + cardinality(b.ids) - 1 = b.ids[cardinality(b.ids)]
        then jsonb_build_object('first', b.first_id, 'last', b.ids[cardinality(b.ids)])
      else jsonb_build_object('ids', b.ids)
    end)
  into v_numbers, v_fields
  from unnest(sent) as b;
  perform parley_store.track(
    'flow', array_fill('SEND'::text, array[cardinality(v_numbers)]), v_numbers, fields => v_fields,
    sources => array_fill(host, array[cardinality(v_numbers)])
  );
end
$$;

comment on function parley_flow._p_track_sent(text, text, parley_flow._p_sent[]) is
'Tracks that messages were sent by a port: a row for each element. Its fields have the numbers of the messages, or the
first and the last; when each was received, in milliseconds since 1970, bytes and attempts, and where any has them
interchange and parent (0: none) and details: an array, or one value where all are the same.';

create function parley_flow._p_track_one(event text, host text, send_port text, message_id bigint, fields jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley_store.track(
    'flow', array[event], array[message_id::text],
    fields => jsonb_build_array(jsonb_build_object('send_port', nullif(send_port, '')) || coalesce(fields, '{}')),
    sources => array[host]
  );
end
$$;

comment on function parley_flow._p_track_one(text, text, text, bigint, jsonb) is
'Tracks what happened to one message.
Arguments: event; host, '''' for none; send_port, '''' for none; message_id; fields.';

create function parley_flow._p_track_properties(ids bigint[], promoted jsonb[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_numbers text[];
  v_fields jsonb;
begin
  select array_agg(parley_flow._p_property_number(v.property, v.value)),
    jsonb_agg(jsonb_build_object('property', v.property, 'value', left(v.value, 1000), 'messages', v.ids))
  into v_numbers, v_fields
  from (
    select p.name as property, u.promoted ->> p.name as value, array_agg(u.id order by u.id) as ids
    from unnest(ids, promoted) as u (id, promoted)
    join parley_flow._p_property as p on p.is_tracked and not p.is_sensitive and u.promoted ->> p.name is not null
    group by 1, 2
  ) as v;
  if v_numbers is not null then
    perform parley_store.track(
      'flow', array_fill('PROPERTY'::text, array[cardinality(v_numbers)]), v_numbers, fields => v_fields
    );
  end if;
end
$$;

comment on function parley_flow._p_track_properties(bigint[], jsonb[]) is
'Tracks which messages have which values of properties that are tracked and not sensitive.';
