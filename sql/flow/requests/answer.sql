-- Answering a request from an application: select parley_flow.answer(...) is part of the caller's transaction.
--
-- The token says which request; that the caller may answer is a right of its own: ANSWER, of the receive port, its
-- application, or all. A token alone opens nothing, and the right alone answers nothing.

create function parley_flow._p_answer(
  caller oid, token text, body bytea, properties jsonb, message_type text, written jsonb
) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_request record;
  v_number constant integer := parley._p_number_of(caller);
  v_ids bigint[];
begin
  if body is null then
    found := parley_flow._p_raise('missing', 'body');
  end if;
  select r.request_id, p.name, p.application into v_request
  from parley_flow._p_request as r
  join parley_flow._p_receive_port as p on p.receive_port_id = r.receive_port_id
  where r.token = parley_flow._p_token($2);
  if parley_flow._p_holds(caller, 'ANSWER', v_request.application, v_request.name) is not true then
    found := parley_flow._p_raise('right', 'ANSWER', pg_get_userbyid(caller), '');
  elsif v_request.request_id is null then
    found := parley_flow._p_raise('request');
  end if;
  found := parley_flow._p_require_all_properties(array[properties], false);
  found := parley_flow._p_require_all_properties(array[written], false);
  if message_type is not null then
    found := parley_flow._p_require_type(message_type);
  end if;
  found := parley_flow._p_count_against_quota(caller, v_number, array[body]);
  v_ids := parley_flow._p_new_ids(1);
  perform parley_flow._p_publish_drafts(
    parley_flow._p_answer_drafts(
      parley_flow._p_make_drafts(
        v_ids, array[body], array[properties], array[written], array[message_type], '{"InboundTransportType": "SQL"}'
      ), array[v_request.request_id], array[v_request.request_id], array[token]
    ), row(null, null, v_request.application, false, v_number)::parley_flow._p_origin
  );
  perform parley_flow._p_count('', array['documents_received'], array[1]);
  return case
    when exists (
      select from parley_flow._p_request as r where r.request_id = v_request.request_id and r.answer_id = v_ids[1]
    ) then 'ANSWERED'
    else 'LATE'
  end;
end
$$;

comment on function parley_flow._p_answer(oid, text, bytea, jsonb, text, jsonb) is
'Answers a request for a role.
Errors: those of parley_flow.answer.';

create function parley_flow._p_answer_drafts(
  drafts parley_flow._p_draft[], parents bigint[], interchanges bigint[], tokens text[]
) returns parley_flow._p_draft[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  for i in 1..cardinality(drafts) loop
    drafts[i].parent_id := parents[i];
    drafts[i].interchange_id := interchanges[i];
    if tokens[i] is not null then
      drafts[i].promoted := drafts[i].promoted || jsonb_build_object('CorrelationToken', tokens[i]);
    end if;
  end loop;
  return drafts;
end
$$;

comment on function parley_flow._p_answer_drafts(parley_flow._p_draft[], bigint[], bigint[], text[]) is
'Gives drafts of answers what they have of the messages that they answer.
Arguments: drafts; parents; interchanges; tokens, null where no request waits.';

create function parley_flow.answer(
  token text, body text, properties jsonb default '{}', message_type text default null, written jsonb default null,
  caller parley.caller default parley.current_caller()
) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return parley_flow._p_answer(
    parley.caller_role(caller), token, convert_to(body, 'UTF8'), coalesce(properties, '{}'), message_type, written
  );
end
$$;

comment on function parley_flow.answer(text, text, jsonb, text, jsonb, parley.caller) is
'Answers a request in this transaction: its client gets the body when this commits, wherever it waits. Every send port
whose filter the answer satisfies gets it too. Gives ANSWERED, or LATE: the client has gone, or somebody else has
answered. A late answer is suspended or dropped, as the receive port says.
Arguments: token, the property CorrelationToken of the request; body, stored in UTF-8; properties, promoted,
{"namespace#Name": scalar}, of which urn:parley:http#Status is the status of the HTTP response; message_type; written,
properties that are carried and not routed by.
Errors: PF001 without ANSWER for the receive port, its application or all, PF006 no request has the token, PF010
malformed, PF013 more than the quota.';

create function parley_flow.answer(
  token text, body bytea, properties jsonb default '{}', message_type text default null, written jsonb default null,
  caller parley.caller default parley.current_caller()
) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return parley_flow._p_answer(
    parley.caller_role(caller), token, body, coalesce(properties, '{}'), message_type, written
  );
end
$$;

comment on function parley_flow.answer(text, bytea, jsonb, text, jsonb, parley.caller) is
'Does what parley_flow.answer does with a text, with bytes as they are.
Errors: PF001, PF006, PF010, PF013.';

create function parley_flow.answer(
  token text, body jsonb, properties jsonb default '{}', message_type text default null, written jsonb default null,
  caller parley.caller default parley.current_caller()
) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return parley_flow._p_answer(
    parley.caller_role(caller), token, convert_to(body::text, 'UTF8'), coalesce(properties, '{}'), message_type, written
  );
end
$$;

comment on function parley_flow.answer(text, jsonb, jsonb, text, jsonb, parley.caller) is
'Does what parley_flow.answer does with a text, with a value of JSON.
Errors: PF001, PF006, PF010, PF013.';
