-- The end of requests: an answer was given to its client, or came too late for it.
--
-- A node ends what its clients have, many at a time and behind their backs: no client waits for a commit. Maintenance
-- ends what no node has ended in time, since its node is gone.

create function parley_flow._p_end_late(request parley_flow._p_request) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from parley_flow._p_request as r where r.request_id = request.request_id;
  if request.answer_id is null then
    return;
  end if;
  if request.was_given then
    perform parley_flow._p_end_deliveries(array[request.answer_id], null);
    return;
  end if;
  perform parley_flow._p_count('', array['answers_late'], array[1]);
  if (
    select p.late_answers from parley_flow._p_receive_port as p where p.receive_port_id = request.receive_port_id
  ) = 'drop' then
    perform parley_flow._p_track_one('DROP', '', '', request.answer_id, jsonb_build_object(
      'request', request.request_id
    ));
    perform parley_flow._p_end_deliveries(array[request.answer_id], null);
    return;
  end if;
  perform parley_flow._p_suspend_message(
    request.answer_id, 'ROUTE', null, null, 'routing.late-answer',
    format('nobody waits any more for the answer to request %s', request.request_id), false, 0
  );
  perform parley_flow._p_count('', array['documents_suspended'], array[1]);
end
$$;

comment on function parley_flow._p_end_late(parley_flow._p_request) is
'Removes a request, whose row the caller has locked. An answer that no client has got is suspended, or dropped, as the
receive port says.';

create function parley_flow._p_give_answer(request parley_flow._p_request, host text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley_flow._p_track_one('ANSWER', host, '', request.answer_id, jsonb_build_object(
    'request', request.request_id
  ));
  if request.keep is null and request.nodes = '{}' then
    delete from parley_flow._p_request as r where r.request_id = request.request_id;
    perform parley_flow._p_end_deliveries(array[request.answer_id], null);
    return;
  end if;
  update parley_flow._p_request as r
  set nodes = request.nodes, was_given = true,
    due_at = greatest(r.due_at, clock_timestamp() + coalesce(request.keep, '0 seconds'))
  where r.request_id = request.request_id;
end
$$;

comment on function parley_flow._p_give_answer(parley_flow._p_request, text) is
'Records that a client got an answer, which stays for repeats where the request has an idempotency key.
Arguments: request, as it is then, whose row the caller has locked; host.';

create function parley_flow._p_give_answers(host parley_flow._p_host, node text, requests bigint[]) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_requests bigint[];
  v_answers bigint[];
begin
  with locked as (
    select r.request_id
    from parley_flow._p_request as r
    where r.request_id = any (requests) and r.host_id = host.host_id and r.keep is null and r.nodes = array[node]
      and r.answer_id is not null
    order by r.request_id
    for update skip locked
  ),

  gone as (
    delete from parley_flow._p_request as r
    using locked as l
    where r.request_id = l.request_id
    returning r.request_id, r.answer_id
  )

  select array_agg(g.request_id order by g.request_id), array_agg(g.answer_id order by g.request_id)
  into v_requests, v_answers
  from gone as g;
  if v_requests is null then
    return 0;
  end if;
  perform parley_store.track(
    'flow', array_fill('ANSWER'::text, array[cardinality(v_requests)]), v_answers::text[],
    fields => (select jsonb_agg(jsonb_build_object('request', u.id) order by u.n)
      from unnest(v_requests) with ordinality as u (id, n)),
    sources => array_fill(host.name, array[cardinality(v_requests)])
  );
  perform parley_flow._p_end_deliveries(v_answers, null);
  return cardinality(v_requests);
end
$$;

comment on function parley_flow._p_give_answers(parley_flow._p_host, text, bigint[]) is
'Ends requests whose clients got their answers, all at once: those without an idempotency key, for which this node alone
waits, as most are. Gives how many; the others are left.';

create function parley_flow._p_end_requests(
  host text, node text, requests bigint[], outcomes text[], errors text[] default null,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_host constant parley_flow._p_host := parley_flow._p_require_host(parley.caller_role(caller), host);
  v_one record;
  v_request parley_flow._p_request;
  v_ended integer := 0;
begin
  found := parley_flow._p_require_read_committed();
  if cardinality(requests) is distinct from cardinality(outcomes) then
    found := parley_flow._p_raise(
      'lengths', 'requests', coalesce(cardinality(requests)::text, 'null'), 'outcomes',
      coalesce(cardinality(outcomes)::text, 'null')
    );
  end if;
  v_ended := parley_flow._p_give_answers(v_host, node, array(
    select u.request_id from unnest(requests, outcomes) as u (request_id, outcome) where u.outcome = 'GIVEN'
  ));
  if v_ended = cardinality(requests) then
    return v_ended;
  end if;
  for v_one in
    select r.request_id, u.outcome, u.error
    from unnest(requests, outcomes, errors) as u (request_id, outcome, error)
    join parley_flow._p_request as r on r.request_id = u.request_id and r.host_id = v_host.host_id
      and node = any (r.nodes)
    order by r.request_id
  loop
    -- One that is being answered now is found by the node, or by maintenance, when that is over.
    select * into v_request
    from parley_flow._p_request as r
    where r.request_id = v_one.request_id and node = any (r.nodes)
    for update skip locked;
    continue when not found;
    v_ended := v_ended + 1;
    v_request.nodes := array_remove(v_request.nodes, node);
    if v_one.outcome = 'GIVEN' and v_request.answer_id is not null then
      perform parley_flow._p_give_answer(v_request, v_host.name);
    elsif v_one.outcome = 'REFUSED' and v_request.answer_id is not null then
      delete from parley_flow._p_request as r where r.request_id = v_request.request_id;
      perform parley_flow._p_suspend_message(
        v_request.answer_id, 'ROUTE', null, null, 'send.pipeline', v_one.error, false, 0
      );
      perform parley_flow._p_count('', array['documents_suspended'], array[1]);
    elsif v_one.outcome = 'VOID' and v_request.answer_id is null then
      delete from parley_flow._p_request as r where r.request_id = v_request.request_id;
    elsif v_request.answer_id is not null and v_request.nodes = '{}' and not v_request.was_given
      and v_request.keep is null then
      perform parley_flow._p_end_late(v_request);
    else
      update parley_flow._p_request as r
      set nodes = v_request.nodes,
        due_at = case
          when v_request.nodes <> '{}' then r.due_at
          when v_request.answer_id is null then clock_timestamp() + interval '1 day'
          else greatest(r.due_at, clock_timestamp() + coalesce(r.keep, '0 seconds'))
        end
      where r.request_id = v_request.request_id;
    end if;
  end loop;
  return v_ended;
end
$$;

comment on function parley_flow._p_end_requests(text, text, bigint[], text[], text[], parley.caller) is
'Records what became of requests for which clients waited in a node; gives how many were there.
Arguments: host; node; requests; outcomes, one for each: GIVEN, the client got the answer; REFUSED, the pipeline of the
response refused it; EXPIRED, the client has gone, or was told that there is none; VOID, no answer can come; errors,
null, or one for each, of those that are REFUSED.
Errors: PF001, PF010, PF016.';

create function parley_flow._p_sweep_requests() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_request parley_flow._p_request;
  v_swept integer := 0;
begin
  for v_request in
    select r.*
    from parley_flow._p_request as r
    where r.due_at < clock_timestamp()
    order by r.due_at
    limit 1000
    for update skip locked
  loop
    v_swept := v_swept + 1;
    if v_request.nodes <> '{}' and (v_request.answer_id is null or v_request.keep is not null) then
      -- Its node has gone without a word. A late answer, or a repeat, may come yet.
      update parley_flow._p_request as r
      set nodes = '{}', due_at = clock_timestamp() + case
        when v_request.answer_id is null then interval '1 day' else v_request.keep
      end
      where r.request_id = v_request.request_id;
    else
      perform parley_flow._p_end_late(v_request);
    end if;
  end loop;
  return v_swept;
end
$$;

comment on function parley_flow._p_sweep_requests() is
'Ends requests whose time is over, some of them: those whose node is gone, answers that were kept, what nobody has
answered; gives how many.';
