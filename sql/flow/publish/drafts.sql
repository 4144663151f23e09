-- Publishing: messages become rows, and items of work for who gets them, in the transaction of the caller.
--
-- A draft is a message on its way into the box. publish, publish_many and _p_receive make drafts; everything behind
-- them is one path: match, store, deliver, and what matched nothing fails (flow/publish/fail.sql).
-- Cost: for a batch one insert of all messages, and put_work for each host and priority that gets any.

create type parley_flow._p_draft as (
  message_id bigint,
  interchange_id bigint,
  parent_id bigint,
  size bigint,
  content_id bigint,
  message_type text,
  promoted jsonb,
  written jsonb,
  parts jsonb,
  body bytea,
  code text,
  error text
);

comment on type parley_flow._p_draft is
'A message on its way into the box. code and error: why it failed before it came here; null: it did not.';

create type parley_flow._p_origin as (
  location_id integer,
  receive_port_id integer,
  application text,
  routes_failed boolean,
  published_by integer
);

comment on type parley_flow._p_origin is
'Where drafts come from. routes_failed: what fails is published; published_by: the number of the role that published in
SQL.';

create function parley_flow._p_new_ids(n integer) returns bigint[]
language sql
set search_path = pg_catalog, pg_temp
as $$
  select array(select nextval('parley_flow._p_message_id') from generate_series(1, $1))
$$;

comment on function parley_flow._p_new_ids(integer) is 'Gives numbers for messages.';

create function parley_flow._p_put_bodies(ids bigint[], bodies bytea[]) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_at integer[] := array(
    select b.n from unnest(bodies) with ordinality as b (body, n) where octet_length(b.body) > 8000 order by b.n
  );
  v_contents bigint[];
  v_of_all bigint[] := array_fill(null::bigint, array[cardinality(ids)]);
begin
  if cardinality(v_at) = 1 then
    v_of_all[v_at[1]] := parley_store.put_body('flow', ids[v_at[1]], bodies[v_at[1]]);
    return v_of_all;
  end if;
  v_contents := parley_store.put_content(
    'flow', array(select ids[a.n] from unnest(v_at) with ordinality as a (n, place) order by a.place),
    array(select bodies[a.n] from unnest(v_at) with ordinality as a (n, place) order by a.place)
  );
  for i in 1..cardinality(v_at) loop
    v_of_all[v_at[i]] := v_contents[i];
  end loop;
  return v_of_all;
end
$$;

comment on function parley_flow._p_put_bodies(bigint[], bytea[]) is
'Stores those of some bodies that are too large for the rows of their messages; gives the number of the content for each
of all, or null.';

create function parley_flow._p_make_drafts(
  ids bigint[], bodies bytea[], promoted jsonb[], written jsonb[], message_types text[], common jsonb
) returns parley_flow._p_draft[]
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_contents bigint[];
  v_drafts parley_flow._p_draft[];
begin
  if exists (select from unnest(bodies) as b (body) where octet_length(b.body) > 8000) then
    v_contents := parley_flow._p_put_bodies(ids, bodies);
  end if;
  v_drafts := array(
    select row(
      i.id, null, null, octet_length(i.body), i.content_id, i.message_type,
      case when i.promoted is null then common else jsonb_strip_nulls(i.promoted) || common end
        || case
          when i.message_type is null then '{}' else jsonb_build_object('MessageType', i.message_type)
        end,
      i.written, null, case when i.content_id is null then i.body end, null, null
    )::parley_flow._p_draft
    from unnest(ids, bodies, v_contents, promoted, written, message_types)
      with ordinality as i (id, body, content_id, promoted, written, message_type, n)
    where i.id is not null
    order by i.n
  );
  if exists (select from unnest(promoted) as p (promoted) where pg_column_size(p.promoted) > 8192) then
    v_drafts := parley_flow._p_without_long(v_drafts);
  end if;
  return v_drafts;
end
$$;

comment on function parley_flow._p_make_drafts(bigint[], bytea[], jsonb[], jsonb[], text[], jsonb) is
'Makes drafts of messages whose bodies are in memory, and stores those bodies that are large.
Arguments: ids; bodies, promoted, written, message_types, one for each; common, properties that all of them get.';

create function parley_flow._p_without_long(drafts parley_flow._p_draft[]) returns parley_flow._p_draft[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_split record;
  v_long integer := 0;
begin
  for i in 1..cardinality(drafts) loop
    v_split := parley_flow._p_split_long(drafts[i].promoted);
    if v_split.long is not null then
      drafts[i].promoted := coalesce(v_split.short, '{}');
      drafts[i].written := coalesce(drafts[i].written, '{}') || v_split.long;
      v_long := v_long + 1;
    end if;
  end loop;
  perform parley_flow._p_count('', array['values_too_long'], array[v_long]);
  return drafts;
end
$$;

comment on function parley_flow._p_without_long(parley_flow._p_draft[]) is
'Writes instead of promoting what is longer than 8,192 bytes, and counts the messages of which that is so.';

create function parley_flow._p_store_drafts(
  drafts parley_flow._p_draft[], origin parley_flow._p_origin, deliveries integer[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
  insert into parley_flow._p_message (
    message_id, interchange_id, parent_id, location_id, receive_port_id, published_by, deliveries, size, content_id,
    message_type, promoted, written, parts, body
  )
  select d.message_id, d.interchange_id, d.parent_id, origin.location_id, origin.receive_port_id, origin.published_by,
    deliveries[d.n], d.size, d.content_id, d.message_type, d.promoted, d.written, d.parts, d.body
  from unnest(drafts) with ordinality as d (
    message_id, interchange_id, parent_id, size, content_id, message_type, promoted, written, parts, body, code, error,
    n
  )
  where deliveries[d.n] > 0;
  if (select c.tracks_properties from parley_flow._p_configuration as c) then
    perform parley_flow._p_track_properties(array_agg(drafts[u.n].message_id), array_agg(drafts[u.n].promoted))
    from unnest(deliveries) with ordinality as u (deliveries, n)
    where u.deliveries > 0;
  end if;
end
$$;

comment on function parley_flow._p_store_drafts(parley_flow._p_draft[], parley_flow._p_origin, integer[]) is
'Makes rows of drafts, and tracks their properties.
Arguments: drafts; origin; deliveries, how many each begins with: what has none is not stored.';

create function parley_flow._p_suspend_undelivered(ids bigint[], ns integer[], ports integer[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lost record;
begin
  for v_lost in
    select ids[m.n] as message_id, m.send_port_id
    from unnest(ns, ports) as m (n, send_port_id)
    where not exists (select from parley_flow._p_send_port as s where s.send_port_id = m.send_port_id)
    order by m.n
  loop
    perform parley_flow._p_suspend_message(
      v_lost.message_id, 'SEND', null, null, 'send.port-gone',
      format('the send port of number %s was dropped while the message was published', v_lost.send_port_id), true, 0
    );
    perform parley_flow._p_track_one(
      'SUSPEND', '', '', v_lost.message_id, jsonb_build_object('code', 'send.port-gone')
    );
    perform parley_flow._p_count('', array['documents_suspended'], array[1]);
  end loop;
end
$$;

comment on function parley_flow._p_suspend_undelivered(bigint[], integer[], integer[]) is
'Suspends messages whose send ports were dropped since they matched, as those that are on their way to one.
Arguments: as _p_deliver.';

create function parley_flow._p_deliver(
  ids bigint[], promoted jsonb[], ns integer[], ports integer[], due_at timestamptz default null
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_target record;
  v_done text[] := array[]::text[];
  v_made integer := 0;
begin
  -- Most batches go to one port, whose lane is the same for all.
  if cardinality(ns) > 8 then
    for v_target in
      select h.system, s.item_priority, s.order_key, s.name, p.ns
      from (
        select m.send_port_id, array_agg(m.n order by m.n) as ns
        from unnest(ns, ports) as m (n, send_port_id)
        group by m.send_port_id
        having count(*) > 8
      ) as p
      join parley_flow._p_send_port as s on s.send_port_id = p.send_port_id
      join parley_flow._p_host as h on h.host_id = s.host_id
      where s.order_key is null and s.convoy is null
      order by s.send_port_id
    loop
      perform parley_store.put_work(
        v_target.system, array_fill(v_target.name, array[cardinality(v_target.ns)]),
        array(select ids[u.n] from unnest(v_target.ns) as u (n)), priority => v_target.item_priority,
        deliver_at => due_at
      );
      v_done := v_done || v_target.name;
      v_made := v_made + cardinality(v_target.ns);
    end loop;
  end if;
  for v_target in
    select h.system, s.item_priority,
      array_agg(
        case when k.key is null then s.name else parley_flow._p_lane_of_port(s.name, k.key) end order by m.n
      ) as lanes,
      array_agg(ids[m.n] order by m.n) as subjects,
      case when bool_or(k.key is not null) then array_agg(convert_to(k.key, 'UTF8') order by m.n) end as data
    from unnest(ns, ports) as m (n, send_port_id)
    join parley_flow._p_send_port as s on s.send_port_id = m.send_port_id and s.name <> all (v_done)
    join parley_flow._p_host as h on h.host_id = s.host_id
    cross join lateral (
      select case
        when s.order_key is not null then parley_flow._p_key_of(promoted[m.n] ->> s.order_key)
        when s.convoy is not null then 'k' || parley_flow._p_convoy_key(promoted[m.n], s.convoy)
      end as key
    ) as k
    group by h.system, s.item_priority
    order by h.system, s.item_priority
  loop
    perform parley_store.put_work(
      v_target.system, v_target.lanes, v_target.subjects, data => v_target.data, priority => v_target.item_priority,
      deliver_at => due_at
    );
    v_made := v_made + cardinality(v_target.lanes);
  end loop;
  if v_made < cardinality(ns) then
    perform parley_flow._p_suspend_undelivered(ids, ns, ports);
  end if;
end
$$;

comment on function parley_flow._p_deliver(bigint[], jsonb[], integer[], integer[], timestamptz) is
'Makes the deliveries of messages: items of the systems of the hosts of their send ports.
Arguments: ids, of messages, and their promoted properties, one for each; ns and ports, which of them, from 1 on, goes
to which send port; due_at, not before that time, null: now. A message whose port was dropped since it matched is
suspended.';

create function parley_flow._p_without_tokens(
  drafts parley_flow._p_draft[], reached integer[], deliveries integer[], awaited integer[]
) returns parley_flow._p_draft[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  for i in 1..cardinality(drafts) loop
    -- The host of an instance finds by the token which of its receives waits for the answer.
    if drafts[i].promoted ? 'CorrelationToken' and drafts[i].code is null and (i = any (awaited)) is not true then
      drafts[i].promoted := drafts[i].promoted - 'CorrelationToken';
      if reached[i] = -1 and deliveries[i] = 0 then
        drafts[i].code := 'routing.late-answer';
        drafts[i].error := 'nobody waits for the answer: it came too late, or the request had one';
      end if;
    end if;
  end loop;
  return drafts;
end
$$;

comment on function parley_flow._p_without_tokens(parley_flow._p_draft[], integer[], integer[], integer[]) is
'Takes the tokens from drafts of answers, which they have served, and marks those as failed that reach nobody.
Arguments: drafts; reached, as _p_reach_waiters gives it; deliveries, how many send ports get each; awaited, which of
them, from 1 on, go to instances that wait for them: these keep the token.';
