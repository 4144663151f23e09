-- _p_receive: the one call by which a host brings messages.

create function parley_flow._p_ids_of_inputs(ids bigint[], inputs integer[], keys text[]) returns bigint[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select array_agg(
    (select ids[i.n] from unnest(inputs) with ordinality as i (input, n) where i.input = k.n order by i.n limit 1)
    order by k.n
  )
  from unnest(keys) with ordinality as k (key, n)
$$;

comment on function parley_flow._p_ids_of_inputs(bigint[], integer[], text[]) is
'Gives the first message of each input; null of one that gave none.';

create function parley_flow._p_new_inputs(
  location_id integer, ids bigint[], inputs integer[], keys text[], entries jsonb[]
) returns boolean[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wrong integer;
  v_new text[];
begin
  if cardinality(entries) <> cardinality(keys) then
    found := parley_flow._p_raise('lengths', 'keys', cardinality(keys)::text, 'entries', cardinality(entries)::text);
  end if;
  select i.n into v_wrong
  from unnest(inputs) with ordinality as i (input, n)
  where (i.input between 1 and cardinality(keys)) is not true
  limit 1;
  if found then
    found := parley_flow._p_raise(
      'input', v_wrong::text, coalesce(inputs[v_wrong]::text, 'null'), cardinality(keys)::text
    );
  end if;
  v_new := parley_flow._p_enter(location_id, keys, entries, parley_flow._p_ids_of_inputs(ids, inputs, keys));
  -- Of a key that is there twice the first input counts.
  return array(
    select k.key is null or (k.key = any (v_new) and array_position(keys, k.key) = k.n)
    from unnest(keys) with ordinality as k (key, n)
    order by k.n
  );
end
$$;

comment on function parley_flow._p_new_inputs(integer, bigint[], integer[], text[], jsonb[]) is
'Writes inputs into the ledger, and reports of each whether it is new.
Errors: PF010.';

create function parley_flow._p_receive(
  host text, location text, bodies bytea[], promoted jsonb[] default null, message_types text[] default null,
  written jsonb[] default null, inputs integer[] default null, keys text[] default null, entries jsonb[] default null,
  contents bigint[] default null, parts jsonb[] default null, failure_codes text[] default null,
  failure_errors text[] default null, epoch bigint default null, matched_messages integer[] default null,
  matched_ports bigint[] default null, resubmission_lease bigint default null, resubmission_item bigint default null,
  interchange_id bigint default null, node text default null, caller parley.caller default parley.current_caller()
) returns table (n integer, message_id bigint, outcome text)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_host constant parley_flow._p_host := parley_flow._p_require_host(parley.caller_role(caller), host);
  v_location constant parley_flow._p_receive_location := parley_flow._p_require_location(v_host, location);
  v_ids bigint[];
  v_are_new boolean[];
  v_ns integer[];
  v_drafts parley_flow._p_draft[];
  v_parent bigint;
  v_joined bigint[];
begin
  found := parley_flow._p_require_read_committed();
  if not v_location.is_enabled and resubmission_item is null then
    found := parley_flow._p_raise('disabled', location);
  end if;
  found := parley_flow._p_require_arrays(
    bodies, promoted, message_types, written, inputs, contents, parts, failure_codes, failure_errors
  );
  if keys is not null and inputs is null then
    inputs := array(select g.n from generate_series(1, cardinality(bodies)) as g (n));
  end if;
  if cardinality(failure_codes) > 0 then
    perform parley_flow._p_require_code(f.code) from unnest(failure_codes) as f (code) where f.code is not null;
  end if;
  v_ids := parley_flow._p_new_ids(cardinality(bodies));
  if contents is not null then
    v_ids := parley_flow._p_use_contents(v_host.host_id, v_ids, contents);
  end if;
  if keys is not null then
    v_are_new := parley_flow._p_new_inputs(v_location.location_id, v_ids, inputs, keys, entries);
    if node is not null then
      v_joined := parley_flow._p_join_requests(v_location, array(
        select l.message_id
        from unnest(keys) with ordinality as k (key, n)
        join parley_flow._p_ledger as l on l.location_id = v_location.location_id and l.key = k.key
        where not v_are_new[k.n]
      ), node);
    end if;
    return query
    select i.n::integer, l.message_id, case when l.message_id = any (v_joined) then 'JOINED' else 'REPEATED' end
    from unnest(inputs) with ordinality as i (input, n)
    join parley_flow._p_ledger as l on l.location_id = v_location.location_id and l.key = keys[i.input]
    where not v_are_new[i.input];
  end if;
  v_ns := array(
    select g.n
    from generate_series(1, cardinality(bodies)) as g (n)
    where v_are_new is null or v_are_new[inputs[g.n]]
    order by g.n
  );
  if contents is not null and cardinality(v_ns) < cardinality(bodies) then
    perform parley_store.release_content('flow', array(select i.id from unnest(v_ids) with ordinality as i (id, n)
      where i.n <> all (v_ns)));
  end if;
  if resubmission_item is not null then
    v_parent := parley_flow._p_end_resubmission(v_host, location, resubmission_lease, resubmission_item);
  end if;
  if v_ns = '{}' then
    return;
  end if;
  v_drafts := parley_flow._p_drafts_of(v_location, v_ids, bodies, promoted, written, message_types, v_ns);
  if inputs is not null or contents is not null or parts is not null or failure_codes is not null
    or v_parent is not null or interchange_id is not null then
    v_drafts := parley_flow._p_complete_drafts(
      v_drafts, v_host.host_id, inputs, contents, parts, failure_codes, failure_errors, v_parent, v_ns, interchange_id
    );
  end if;
  if node is not null then
    v_drafts := parley_flow._p_open_requests(v_location, v_drafts, node, v_ns, inputs, keys);
  end if;
  return query
  select v_ns[p.n], p.message_id, p.outcome
  from parley_flow._p_publish_drafts(
    v_drafts, parley_flow._p_origin_of(v_location),
    case when cardinality(v_ns) = cardinality(bodies) then epoch end, matched_messages, matched_ports
  ) as p;
  perform parley_flow._p_count(v_host.name, array['documents_received'], array[cardinality(v_ns)]);
end
$$;

comment on function parley_flow._p_receive(
  text, text, bytea[], jsonb[], text[], jsonb[], integer[], text[], jsonb[], bigint[], jsonb[], text[], text[], bigint,
  integer[], bigint[], bigint, bigint, bigint, text, parley.caller
) is
'Takes in messages of a receive location: stores them, writes their inputs into the ledger and makes their deliveries,
all or nothing. Gives of each what became of it: PUBLISHED; SUSPENDED or FAILED_ROUTED, because it failed or nobody asks
for it; REPEATED, because the key of its input is in the ledger: then nothing of that input is stored, and message_id is
the first message that came of it; JOINED, the same of a request that waits for its answer, or has one. A session that
brings the same key at the same time is waited for.
Arguments: host; location; bodies, one for each message, null where contents has it; promoted, {"name": scalar}, without
those that follow from the location; message_types; written; inputs, of which input each message is, from 1 on (null:
each is one of its own); keys of inputs, null for one without; entries, what the ledger keeps of each input whose
source has to be removed afterwards (null: none has); contents, as _p_begin_body gave them; parts; failure_codes and
failure_errors, of messages that failed in the pipeline; epoch, matched_messages and matched_ports, when the host has
matched them: which message, from 1 on, goes to which send port; resubmission_lease and resubmission_item, of
stage RECEIVE, which this completes; interchange_id, the first message of an input of which this transaction has brought
others before; node, in which clients wait for answers, of a location whose port responds, null: none waits.
Errors: PF001, PF006 no such location or content, PF007 the lease is over, PF010 malformed, PF015 the location is
disabled, PF016.';

create function parley_flow._p_drafts_of(
  location parley_flow._p_receive_location, ids bigint[], bodies bytea[], promoted jsonb[], written jsonb[],
  message_types text[], ns integer[]
) returns parley_flow._p_draft[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_common constant jsonb := parley_flow._p_common_of(location);
begin
  found := parley_flow._p_require_all_properties(promoted, true);
  found := parley_flow._p_require_all_properties(written, true);
  if cardinality(ns) < cardinality(ids) then
    return parley_flow._p_make_drafts(
      array(select ids[u.n] from unnest(ns) with ordinality as u (n, place) order by u.place),
      array(select bodies[u.n] from unnest(ns) with ordinality as u (n, place) order by u.place),
      array(select promoted[u.n] from unnest(ns) with ordinality as u (n, place) order by u.place),
      array(select written[u.n] from unnest(ns) with ordinality as u (n, place) order by u.place),
      array(select message_types[u.n] from unnest(ns) with ordinality as u (n, place) order by u.place), v_common
    );
  end if;
  return parley_flow._p_make_drafts(ids, bodies, promoted, written, message_types, v_common);
end
$$;

comment on function parley_flow._p_drafts_of(
  parley_flow._p_receive_location, bigint[], bytea[], jsonb[], jsonb[], text[], integer[]
) is
'Makes drafts of those messages of a call of _p_receive that are new.
Errors: PF010.';
