-- Send ports that respond: the answer of a destination becomes a message, in the transaction that records the send.

create function parley_flow._p_complete_answered(
  host text, leases bigint[], items bigint[], details jsonb[], answered integer[], bodies bytea[],
  promoted jsonb[] default null, message_types text[] default null, written jsonb[] default null,
  contents bigint[] default null, parts jsonb[] default null, failure_codes text[] default null,
  failure_errors text[] default null, caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_host constant parley_flow._p_host := parley_flow._p_require_host(parley.caller_role(caller), host);
  v_ids bigint[];
  v_drafts parley_flow._p_draft[];
  v_port record;
begin
  found := parley_flow._p_require_read_committed();
  found := parley_flow._p_require_arrays(
    bodies, promoted, message_types, written, answered, contents, parts, failure_codes, failure_errors
  );
  if exists (select from unnest(answered) as a (n) where (a.n between 1 and cardinality(items)) is not true) then
    found := parley_flow._p_raise('input', 'null', 'null', cardinality(items)::text);
  end if;
  perform parley_flow._p_require_code(f.code) from unnest(failure_codes) as f (code) where f.code is not null;
  found := parley_flow._p_require_all_properties(promoted, true);
  found := parley_flow._p_require_all_properties(written, true);
  v_ids := parley_flow._p_new_ids(cardinality(bodies));
  if contents is not null then
    v_ids := parley_flow._p_use_contents(v_host.host_id, v_ids, contents);
  end if;
  v_drafts := parley_flow._p_complete_drafts(
    parley_flow._p_make_drafts(v_ids, bodies, promoted, written, message_types, '{}'), v_host.host_id, null, contents,
    parts, failure_codes, failure_errors, null,
    array(select g.n from generate_series(1, cardinality(v_ids)) as g (n)), null
  );
  for v_port in
    select parley_flow._p_port_of_lane(l.lane) as name, s.application, s.routes_failed, s.adapter, s.address,
      array_agg(a.n::integer order by a.n) as ns, array_agg(m.message_id order by a.n) as parents,
      array_agg(coalesce(m.interchange_id, m.message_id) order by a.n) as interchanges,
      array_agg(m.written ->> 'CorrelationToken' order by a.n) as tokens
    from unnest(answered) with ordinality as a (place, n)
    join parley_store.leased_items(v_host.system, leases) as l
      on l.lease_id = leases[a.place] and l.item_id = items[a.place]
    join parley_flow._p_message as m on m.message_id = l.subject
    join parley_flow._p_send_port as s on s.name = parley_flow._p_port_of_lane(l.lane)
    group by 1, 2, 3, 4, 5
    order by 1
  loop
    perform parley_flow._p_publish_drafts(
      parley_flow._p_answer_drafts(
        array(
          select row(
            d.message_id, d.interchange_id, d.parent_id, d.size, d.content_id, d.message_type,
            d.promoted || jsonb_build_object(
              'SendPortName', v_port.name, 'InboundTransportType', v_port.adapter, 'InboundTransportLocation',
              v_port.address
            ), d.written, d.parts, d.body, d.code, d.error
          )::parley_flow._p_draft
          from unnest(v_port.ns) with ordinality as u (n, place)
          cross join lateral (select (v_drafts[u.n]).*) as d
          order by u.place
        ), v_port.parents, v_port.interchanges, v_port.tokens
      ), row(null, null, v_port.application, v_port.routes_failed, null)::parley_flow._p_origin
    );
  end loop;
  perform parley_flow._p_count(v_host.name, array['documents_received'], array[cardinality(v_ids)]);
  -- At the end: it removes the messages that are answered, and refuses what is not in the hands of the host.
  return parley_flow._p_complete(host, leases, items, details, caller);
end
$$;

comment on function parley_flow._p_complete_answered(
  text, bigint[], bigint[], jsonb[], integer[], bytea[], jsonb[], text[], jsonb[], bigint[], jsonb[], text[], text[],
  parley.caller
) is
'Ends deliveries that were sent, and publishes the answers of their destinations, in this transaction. An answer to a
message that came of a request goes to the client of that. Gives how many deliveries ended.
Arguments: host, leases, items and details, as _p_complete has them; answered, of which of those each answer is, from 1
on; bodies to failure_errors, as _p_receive has them, of answers.
Errors: PF001, PF006 no such content, PF007 one is not in the hands of this host: roll back, PF010, PF016.';
