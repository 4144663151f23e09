-- Messages that instances publish: through the same path as all others, or to the send port to which a logical port is
-- bound.

create type parley_flow._p_publication as (
  step integer,
  copied_id bigint,
  body bytea,
  message_type text,
  promoted jsonb,
  written jsonb,
  parent_id bigint,
  send_port text,
  content_type text,
  charset text
);

comment on type parley_flow._p_publication is
'A message that an instance publishes. step: of which step of the call, from 1 on, 0: of an instance without a row;
copied_id: the message of the box whose body it has; send_port: where it goes whatever is subscribed, null: it is routed
by its content; content_type and charset: of its own body.';

create function parley_flow._p_publication_drafts(ids bigint[], publications parley_flow._p_publication[])
returns parley_flow._p_draft[]
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_contents bigint[];
  v_drafts parley_flow._p_draft[];
  v_part record;
begin
  if exists (select from unnest(publications) as p where octet_length(p.body) > 8000) then
    v_contents := parley_flow._p_put_bodies(
      ids, array(
        select p.body
        from unnest(publications) with ordinality
          as p (
            step, copied_id, body, message_type, promoted, written, parent_id, send_port, content_type, charset, n
          )
        order by p.n
      )
    );
  end if;
  v_drafts := array(
    select row(
      ids[p.n], null, p.parent_id, coalesce(octet_length(p.body), m.size, 0),
      case when p.body is null then m.content_id else v_contents[p.n] end, p.message_type,
      jsonb_strip_nulls(p.promoted) || case
        when p.message_type is null then '{}' else jsonb_build_object('MessageType', p.message_type)
      end, p.written, case
        when p.body is null then m.parts
        when p.content_type is not null or p.charset is not null then jsonb_build_array(jsonb_strip_nulls(
          jsonb_build_object(
            'name', 'body', 'content_type', p.content_type, 'charset', p.charset, 'bytes', octet_length(p.body),
            'is_body', true
          )
        ))
      end,
      case
        when p.body is null then coalesce(m.body, case when m.content_id is null then ''::bytea end)
        when v_contents[p.n] is null then p.body
      end, null, null
    )::parley_flow._p_draft
    from unnest(publications) with ordinality
      as p (
        step, copied_id, body, message_type, promoted, written, parent_id, send_port, content_type, charset, n
      )
    left join parley_flow._p_message as m on p.body is null and m.message_id = p.copied_id
    order by p.n
  );
  for v_part in
    select p.copied_id, ids[p.n] as new_id, c.content_id
    from unnest(publications) with ordinality
      as p (
        step, copied_id, body, message_type, promoted, written, parent_id, send_port, content_type, charset, n
      )
    join parley_flow._p_message as m on m.message_id = p.copied_id
    cross join lateral (
      select m.content_id where m.content_id is not null
      union
      select (e.part ->> 'content_id')::bigint
      from jsonb_array_elements(m.parts) as e (part)
      where e.part ->> 'content_id' is not null
    ) as c (content_id)
    where p.body is null and (m.content_id is not null or m.parts is not null)
  loop
    perform parley_store.share_content(v_part.content_id, 'flow', v_part.copied_id, v_part.new_id);
  end loop;
  if exists (select from unnest(publications) as p where pg_column_size(p.promoted) > 8192) then
    v_drafts := parley_flow._p_without_long(v_drafts);
  end if;
  return v_drafts;
end
$$;

comment on function parley_flow._p_publication_drafts(bigint[], parley_flow._p_publication[]) is
'Makes drafts of what instances publish. One that has the body of a message of the box shares it.';

create function parley_flow._p_publish_direct(
  drafts parley_flow._p_draft[], ports text[], origin parley_flow._p_origin
) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_numbers integer[] := array(
    select s.send_port_id
    from unnest(ports) with ordinality as u (name, n)
    left join parley_flow._p_send_port as s on s.name = u.name and s.state <> 'Bound'
    order by u.n
  );
  v_deliveries integer[] := array(
    select (u.number is not null)::integer from unnest(v_numbers) with ordinality as u (number, n) order by u.n
  );
  v_ns integer[] := array(
    select u.n::integer
    from unnest(v_numbers) with ordinality as u (number, n)
    where u.number is not null
    order by u.n
  );
begin
  perform parley_flow._p_store_drafts(drafts, origin, v_deliveries);
  perform parley_flow._p_deliver(
    array(select d.message_id from unnest(drafts) with ordinality as d (
      message_id, interchange_id, parent_id, size, content_id, message_type, promoted, written, parts, body, code,
      error, n
    ) order by d.n),
    array(select d.promoted from unnest(drafts) with ordinality as d (
      message_id, interchange_id, parent_id, size, content_id, message_type, promoted, written, parts, body, code,
      error, n
    ) order by d.n),
    v_ns, array_remove(v_numbers, null)
  );
  if 0 = any (v_deliveries) then
    perform parley_flow._p_fail_drafts(drafts, origin, array(
      select u.n::integer
      from unnest(v_deliveries) with ordinality as u (deliveries, n)
      where u.deliveries = 0
      order by u.n
    ));
  end if;
  return cardinality(v_ns);
end
$$;

comment on function parley_flow._p_publish_direct(parley_flow._p_draft[], text[], parley_flow._p_origin) is
'Publishes messages to the send ports that are named, whatever is subscribed. One whose port is not enlisted is
suspended, as one that nobody asks for.';

create function parley_flow._p_publish_of_instances(
  port parley_flow._p_send_port, publications parley_flow._p_publication[], instances bigint[], epoch bigint,
  matched_messages integer[], matched_ports bigint[]
) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_origin parley_flow._p_origin := row(null, null, port.application, false, null);
  v_drafts parley_flow._p_draft[];
  v_ns integer[];
begin
  if coalesce(cardinality(publications), 0) = 0 then
    return 0;
  end if;
  v_drafts := parley_flow._p_publication_drafts(
    parley_flow._p_new_ids(cardinality(publications)), publications
  );
  if not exists (select from unnest(publications) as p where p.send_port is not null) then
    perform parley_flow._p_publish_drafts(
      v_drafts, v_origin, epoch, matched_messages, matched_ports, case
        when exists (select from parley_flow._p_awaited_property) then array(
          select instances[nullif(p.step, 0)]
          from unnest(publications) with ordinality
            as p (
              step, copied_id, body, message_type, promoted, written, parent_id, send_port, content_type, charset, n
            )
          order by p.n
        )
      end, port.send_port_id
    );
    return cardinality(publications);
  end if;
  v_ns := array(
    select p.n::integer
    from unnest(publications) with ordinality
      as p (
        step, copied_id, body, message_type, promoted, written, parent_id, send_port, content_type, charset, n
      )
    where p.send_port is not null
    order by p.n
  );
  perform parley_flow._p_publish_direct(
    array(select v_drafts[u.n] from unnest(v_ns) with ordinality as u (n, place) order by u.place),
    array(select publications[u.n].send_port from unnest(v_ns) with ordinality as u (n, place) order by u.place),
    v_origin
  );
  v_ns := array(
    select g.n from generate_series(1, cardinality(publications)) as g (n) where g.n <> all (v_ns) order by g.n
  );
  if v_ns <> '{}' then
    perform parley_flow._p_publish_drafts(
      array(select v_drafts[u.n] from unnest(v_ns) with ordinality as u (n, place) order by u.place), v_origin,
      publishers => array(
        select instances[nullif(publications[u.n].step, 0)]
        from unnest(v_ns) with ordinality as u (n, place)
        order by u.place
      ), publisher => port.send_port_id
    );
  end if;
  return cardinality(publications);
end
$$;

comment on function parley_flow._p_publish_of_instances(
  parley_flow._p_send_port, parley_flow._p_publication[], bigint[], bigint, integer[], bigint[]
) is
'Publishes what instances of an orchestration publish. No instance gets what it has published itself, and none of the
orchestration is begun by it: one that sends on what it has received would begin itself for ever.
Arguments: port; publications; instances, by the number of the step; epoch, matched_messages and matched_ports, as
_p_publish_drafts has them.';
