-- Taking in: what a host brings from a receive location becomes messages, in one transaction with the ledger.

create function parley_flow._p_require_arrays(
  bodies bytea[], promoted jsonb[], message_types text[], written jsonb[], inputs integer[], contents bigint[],
  parts jsonb[], failure_codes text[], failure_errors text[]
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wrong record;
begin
  if bodies is null then
    found := parley_flow._p_raise('missing', 'bodies');
  end if;
  select l.name, l.length into v_wrong
  from (
    values ('promoted', cardinality(promoted)), ('message_types', cardinality(message_types)),
      ('written', cardinality(written)), ('inputs', cardinality(inputs)), ('contents', cardinality(contents)),
      ('parts', cardinality(parts)), ('failure_codes', cardinality(failure_codes)),
      ('failure_errors', cardinality(failure_errors))
  ) as l (name, length)
  where l.length <> cardinality(bodies)
  limit 1;
  if found then
    found := parley_flow._p_raise(
      'lengths', 'bodies', cardinality(bodies)::text, v_wrong.name, v_wrong.length::text
    );
  end if;
  if array_position(bodies, null) is not null and exists (
    select
    from unnest(bodies, contents, failure_codes) with ordinality as b (body, content_id, code, n)
    where b.body is null and b.content_id is null
  ) then
    found := parley_flow._p_raise('no body', array_position(bodies, null)::text);
  end if;
  return true;
end
$$;

comment on function parley_flow._p_require_arrays(
  bytea[], jsonb[], text[], jsonb[], integer[], bigint[], jsonb[], text[], text[]
) is
'Refuses arrays that do not fit.
Errors: PF010.';

create function parley_flow._p_origin_of(location parley_flow._p_receive_location) returns parley_flow._p_origin
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select row(
    location.location_id, p.receive_port_id, p.application, p.routes_failed, null
  )::parley_flow._p_origin
  from parley_flow._p_receive_port as p
  where p.receive_port_id = location.receive_port_id
$$;

comment on function parley_flow._p_origin_of(parley_flow._p_receive_location) is
'Gives where messages of a receive location come from.';

create function parley_flow._p_common_of(location parley_flow._p_receive_location) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'ReceivePortName', p.name, 'ReceiveLocationName', location.name, 'InboundTransportType', location.adapter,
    'InboundTransportLocation', location.address
  )
  from parley_flow._p_receive_port as p
  where p.receive_port_id = location.receive_port_id
$$;

comment on function parley_flow._p_common_of(parley_flow._p_receive_location) is
'Gives the properties that all messages of a receive location get.';

create function parley_flow._p_use_contents(
  host_id integer, ids bigint[], contents bigint[]
) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  for i in 1..cardinality(ids) loop
    if contents[i] is not null then
      ids[i] := parley_flow._p_require_begun(host_id, contents[i]);
    end if;
  end loop;
  delete from parley_flow._p_begun_body as b where b.content_id = any (contents);
  return ids;
end
$$;

comment on function parley_flow._p_use_contents(integer, bigint[], bigint[]) is
'Gives the numbers of messages, where those with a body that was begun have the number of its holder.
Errors: PF006.';

create function parley_flow._p_use_parts(host_id integer, id bigint, parts jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_part record;
  v_holder bigint;
begin
  for v_part in
    select (p.part ->> 'content_id')::bigint as content_id
    from jsonb_array_elements(parts) as p (part)
    where p.part ->> 'content_id' is not null
  loop
    select b.message_id into v_holder
    from parley_flow._p_begun_body as b
    where b.content_id = v_part.content_id and b.host_id = $1;
    -- That of the body is held by the message already.
    continue when not found and exists (
      select from parley_store.open_content(v_part.content_id, 'flow', id)
    );
    v_holder := parley_flow._p_require_begun(host_id, v_part.content_id);
    perform parley_store.share_content(v_part.content_id, 'flow', v_holder, id);
    perform parley_store.release_content('flow', array[v_holder]);
    delete from parley_flow._p_begun_body as b where b.content_id = v_part.content_id;
  end loop;
end
$$;

comment on function parley_flow._p_use_parts(integer, bigint, jsonb) is
'Has a message hold the contents of its parts, which the host has begun.
Errors: PF006.';

create function parley_flow._p_complete_drafts(
  drafts parley_flow._p_draft[], host_id integer, inputs integer[], contents bigint[], parts jsonb[],
  failure_codes text[], failure_errors text[], parent_id bigint, ns integer[], interchange_id bigint
) returns parley_flow._p_draft[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_first jsonb := jsonb_build_object();
  v_n integer;
begin
  for i in 1..cardinality(drafts) loop
    v_n := ns[i];
    drafts[i].parent_id := parent_id;
    if interchange_id is not null then
      drafts[i].interchange_id := interchange_id;
    elsif inputs is not null then
      if v_first ? inputs[v_n]::text then
        drafts[i].interchange_id := (v_first ->> inputs[v_n]::text)::bigint;
      else
        v_first := v_first || jsonb_build_object(inputs[v_n]::text, drafts[i].message_id);
      end if;
    end if;
    if contents[v_n] is not null then
      drafts[i].content_id := contents[v_n];
      drafts[i].size := (
        select o.bytes from parley_store.open_content(contents[v_n], 'flow', drafts[i].message_id) as o
      );
    end if;
    if parts[v_n] is not null then
      perform parley_flow._p_use_parts(host_id, drafts[i].message_id, parts[v_n]);
      drafts[i].parts := parts[v_n];
    end if;
    if failure_codes[v_n] is not null then
      drafts[i].code := failure_codes[v_n];
      drafts[i].error := coalesce(failure_errors[v_n], failure_codes[v_n]);
    end if;
  end loop;
  return drafts;
end
$$;

comment on function parley_flow._p_complete_drafts(
  parley_flow._p_draft[], integer, integer[], bigint[], jsonb[], text[], text[], bigint, integer[], bigint
) is
'Gives drafts what few messages have: others of their input, streamed bodies, parts, failures, a parent.
Arguments: drafts; host_id; inputs to failure_errors, as _p_receive has them; parent_id; ns, of which of those each
draft is; interchange_id, null: the first message of each input.';
