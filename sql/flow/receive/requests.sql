-- Taking in requests: inputs of a location whose port responds get a token, and repeats wait for the same answer.
--
-- The file flow/waiting/requests.sql says what a request is, and which locks it takes.

create function parley_flow._p_open_requests(
  location parley_flow._p_receive_location, drafts parley_flow._p_draft[], node text, ns integer[], inputs integer[],
  keys text[]
) returns parley_flow._p_draft[]
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_port parley_flow._p_receive_port;
  v_tokens jsonb;
begin
  select * into v_port from parley_flow._p_receive_port as p where p.receive_port_id = location.receive_port_id;
  if not v_port.responds then
    return drafts;
  end if;
  with opened as (
    insert into parley_flow._p_request (request_id, host_id, receive_port_id, nodes, expires_at, keep, due_at)
    select coalesce(d.interchange_id, d.message_id), location.host_id, v_port.receive_port_id, array[node],
      clock_timestamp() + v_port.response_timeout,
      case when bool_or(keys[inputs[ns[d.n]]] is not null) then v_port.keep_answers end,
      clock_timestamp() + v_port.response_timeout + interval '30 seconds'
    from unnest(drafts) with ordinality as d (
      message_id, interchange_id, parent_id, size, content_id, message_type, promoted, written, parts, body, code,
      error, n
    )
    group by coalesce(d.interchange_id, d.message_id)
    on conflict on constraint _p_request_pkey do nothing
    returning request_id, token
  )
  select jsonb_object_agg(o.request_id, o.token) into v_tokens from opened as o;
  if v_tokens is null then
    -- Other messages of the request came before.
    select jsonb_build_object(r.request_id, r.token) into v_tokens
    from parley_flow._p_request as r
    where r.request_id = drafts[1].interchange_id;
  end if;
  for i in 1..cardinality(drafts) loop
    drafts[i].written := coalesce(drafts[i].written, '{}') || jsonb_build_object(
      'CorrelationToken', v_tokens -> coalesce(drafts[i].interchange_id, drafts[i].message_id)::text
    );
  end loop;
  return drafts;
end
$$;

comment on function parley_flow._p_open_requests(
  parley_flow._p_receive_location, parley_flow._p_draft[], text, integer[], integer[], text[]
) is
'Makes requests of drafts of a location whose port responds, one of each input, and gives the drafts with their tokens.
Arguments: location; drafts; node, in which the clients wait; ns, inputs and keys, as _p_receive has them.';

create function parley_flow._p_join_requests(
  location parley_flow._p_receive_location, requests bigint[], node text
) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_timeout constant interval := (
    select p.response_timeout
    from parley_flow._p_receive_port as p
    where p.receive_port_id = location.receive_port_id
  );
  v_joined bigint[];
begin
  with locked as (
    select r.request_id
    from parley_flow._p_request as r
    where r.request_id = any (requests)
    order by r.request_id
    for update
  ),

  joined as (
    update parley_flow._p_request as r
    set nodes = array_remove(r.nodes, node) || node, failure = null,
      expires_at = greatest(r.expires_at, clock_timestamp() + v_timeout),
      due_at = greatest(r.due_at, clock_timestamp() + v_timeout + interval '30 seconds')
    from locked as l
    where r.request_id = l.request_id
    returning r.request_id
  )

  select array_agg(j.request_id) into v_joined from joined as j;
  return coalesce(v_joined, '{}');
end
$$;

comment on function parley_flow._p_join_requests(parley_flow._p_receive_location, bigint[], text) is
'Has a node wait for the answers of requests that were repeated; gives those that are there still.';
