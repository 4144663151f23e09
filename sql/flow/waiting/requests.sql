-- Requests: messages of receive ports that respond, and what waits for their answers.
--
-- A request has a token, a random number that stands in its written properties as CorrelationToken and leads to its
-- row. The first message that is published with the token is the answer. It is stored as any message, and its delivery
-- is the row of the request: the nodes in which the client waits are notified, read it, and record that it was given.
--
--   waiting    answer_id is null, nodes has who waits
--   expired    answer_id is null, nodes is empty: the client has gone. The row stays for late answers and for repeats
--   answered   answer_id is set, nodes has those that have not taken it yet
--   kept       answer_id is set, nodes is empty: for repeats of an idempotency key, until due_at
--
-- Invariants, and what keeps each:
--   a request has one answer   the lock of its row, and answer_id is set once
--   an answer is given, kept, suspended or dropped, and one of these   whoever ends the row decides under its lock
--   a node that dies leaves nothing behind   due_at, at which maintenance ends what nobody has
-- Locks: the row of the request, before rows of _p_message.

create table parley_flow._p_request (
  request_id bigint primary key,
  token uuid not null default gen_random_uuid() unique,
  host_id integer not null,
  receive_port_id integer not null,
  nodes text[] not null,
  expires_at timestamptz not null,
  keep interval,
  answer_id bigint,
  failure text,
  was_given boolean not null default false,
  due_at timestamptz not null
) with (fillfactor = 70);

comment on table parley_flow._p_request is
'Requests that wait for an answer, or have one. request_id: the first message of the request; token: what an answer
carries; nodes: where clients wait; keep: for how long its answer stays for repeats, null: it has no idempotency key;
failure: the code for which nothing answers it unless an operator helps; was_given: a client got the answer; due_at:
when maintenance sees to it.';

create index _p_request_due on parley_flow._p_request (due_at);

create function parley_flow._p_answer_channel(node text) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$ select format('parley_flow_answers_%s', to_hex(hashtextextended(node, 0))) $$;

comment on function parley_flow._p_answer_channel(text) is
'Gives the channel on which a node is notified of answers. Everybody may listen: the payload is the number of the
request, and nothing of it.';

create function parley_flow._p_channel_of_node(node text, caller parley.caller default parley.current_caller())
returns text
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if not parley_flow._p_may_maintain(parley.caller_role(caller)) then
    found := parley_flow._p_raise('host role', 'of any name', pg_get_userbyid(parley.caller_role(caller)));
  end if;
  return parley_flow._p_answer_channel(node);
end
$$;

comment on function parley_flow._p_channel_of_node(text, parley.caller) is
'Gives the channel on which a node is notified of answers: the payload is the number of the request.
Errors: PF001 who may serve no host.';

create function parley_flow._p_token(token text) returns uuid
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return case when token ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then token::uuid end;
end
$$;

comment on function parley_flow._p_token(text) is 'Reads a token; null of what is none.';

create function parley_flow._p_reach_request(id bigint, token text) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_request parley_flow._p_request;
begin
  select * into v_request from parley_flow._p_request as r where r.token = parley_flow._p_token($2) for update;
  if v_request.answer_id is null and (
    v_request.keep is not null or v_request.nodes <> '{}' and v_request.expires_at > clock_timestamp()
  ) then
    update parley_flow._p_request as r
    set answer_id = id,
      due_at = case when r.nodes = '{}' then clock_timestamp() + r.keep else r.due_at end
    where r.request_id = v_request.request_id;
    perform parley_store.notify(parley_flow._p_answer_channel(n.node), v_request.request_id::text)
    from unnest(v_request.nodes) as n (node);
    return 1;
  end if;
  perform parley_flow._p_count('', array['answers_late'], array[1]);
  return case
    when (
      select p.late_answers from parley_flow._p_receive_port as p where p.receive_port_id = v_request.receive_port_id
    ) = 'drop' then -2
    else -1
  end;
end
$$;

comment on function parley_flow._p_reach_request(bigint, text) is
'Makes a message the answer to the request with a token; gives 1, or where it is too late, or no request has the token,
-1: suspend it, -2: drop it. A session that answers at the same time is waited for.
Arguments: id, of the message; token.';

create function parley_flow._p_fail_request_of(message_id bigint, code text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_token text;
  v_request parley_flow._p_request;
begin
  -- Where it had several deliveries another one may answer it.
  select m.written ->> 'CorrelationToken' into v_token
  from parley_flow._p_message as m
  where m.message_id = $1 and m.deliveries <= 1;
  if v_token is null then
    return;
  end if;
  -- A session that is answering it now is not waited for: then it has not failed.
  select * into v_request
  from parley_flow._p_request as r
  where r.token = parley_flow._p_token(v_token) and r.answer_id is null
  for update skip locked;
  if v_request.request_id is null then
    return;
  end if;
  update parley_flow._p_request as r set failure = code where r.request_id = v_request.request_id;
  perform parley_store.notify(parley_flow._p_answer_channel(n.node), v_request.request_id::text)
  from unnest(v_request.nodes) as n (node);
end
$$;

comment on function parley_flow._p_fail_request_of(bigint, text) is
'Has the clients of a request told at once that its message was given up, unless another delivery may answer it. An
answer may come all the same, when an operator has resumed the message.
Arguments: message_id, of any message; code of the failure.';

create function parley_flow._p_answers(
  host text, node text, requests bigint[] default null, caller parley.caller default parley.current_caller()
) returns table (
  request_id bigint, message_id bigint, interchange_id bigint, parent_id bigint, message_type text,
  received_at timestamptz, size bigint, promoted jsonb, written jsonb, parts jsonb, content_id bigint, body bytea,
  failure text
)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_host constant parley_flow._p_host := parley_flow._p_require_host(parley.caller_role(caller), host);
begin
  return query
  select r.request_id, m.message_id, coalesce(m.interchange_id, m.message_id), m.parent_id, m.message_type,
    m.received_at, m.size, m.promoted, m.written, m.parts, m.content_id, m.body,
    case when r.answer_id is null then r.failure end
  from parley_flow._p_request as r
  left join parley_flow._p_message as m on m.message_id = r.answer_id
  where (m.message_id is not null or r.answer_id is null and r.failure is not null)
    and r.host_id = v_host.host_id and $2 = any (r.nodes) and ($3 is null or r.request_id = any ($3));
end
$$;

comment on function parley_flow._p_answers(text, text, bigint[], parley.caller) is
'Gives the answers that have come to requests for which clients wait in a node of a host, and failures of those that
nothing answers: message_id is null then. Record with _p_end_requests
what became of them.
Arguments: host; node; requests, null: all.
Errors: PF001.';
