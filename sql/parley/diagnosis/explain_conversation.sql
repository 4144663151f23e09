-- Where is my message? The steps that one walks to find a message that did not arrive (spec 9.3), for both
-- directions of a conversation.
--
-- Steps 4 and 5 of the spec (duplicates, other brokers) are about dialogs between databases and have nothing to check
-- here. The checks of diagnosis say what keeps a message in a queue, so both report the same.

create function parley._p_visible_endpoints(caller oid, conversation uuid) returns setof parley._p_endpoint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids bigint[] := parley._p_endpoints_of(conversation);
begin
  return query
  select e.*
  from parley._p_endpoint as e
  where e.endpoint_id = any (v_ids)
    and parley._p_may_see_conversation(caller, e)
    and exists (select from parley._p_shown_endpoint as s where s.endpoint_id = e.endpoint_id)
  order by e.conversation_id, e.is_initiator desc;
  if not found and cardinality(v_ids) > 0 then
    found := parley._p_raise(229, 'explanation', pg_get_userbyid(caller));
  end if;
end
$$;

comment on function parley._p_visible_endpoints(oid, uuid) is
'Gives the sides of a conversation that the caller may see.
Errors: 229 none of them, 8426 not found.';

create function parley._p_find_why_unreceived(scope parley._p_scope) returns table (cause text, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select f.cause, f.cure from parley._p_find_poison(scope) as f
  union all
  select f.cause, f.cure from parley._p_find_held_groups(scope) as f
  union all
  select f.cause, f.cure from parley._p_find_failing_readers(scope) as f
  union all
  select f.cause, f.cure from parley._p_find_missing_daemon(scope) as f
  union all
  select f.cause, f.cure from parley._p_find_unread_queues(scope) as f
$$;

comment on function parley._p_find_why_unreceived(parley._p_scope) is
'Finds why messages that wait in a queue are not received.';

create function parley._p_explain_not_due(endpoint_id bigint) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select format(
      ' Sent for later (parley.delayed_sends): %s, the first due at %s.', count(*), date_trunc('second', min(d.due_at))
    )
    || case when min(d.due_at) < clock_timestamp() then ' A daemon sends it, or parley.fire_timers.' else '' end
  from parley._p_delayed_send as d
  where d.endpoint_id = $1 and d.message_type_id <> 2
  having count(*) > 0
$$;

comment on function parley._p_explain_not_due(bigint) is
'Says how many messages of one side wait for their time, and until when, as the end of a sentence; null when there are
none.';

create function parley.explain_conversation(conversation uuid, caller parley.caller default parley.current_caller())
returns table (step integer, conversation_handle uuid, side text, answer text, is_finding boolean, cure text)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_end parley._p_endpoint;
  v_far parley._p_endpoint;
  v_scope parley._p_scope;
  v_delayed bigint;
  v_waiting bigint;
  v_received bigint;
begin
  for v_end in select * from parley._p_visible_endpoints(v_caller, conversation) loop
    v_end.state := (select s.state from parley._p_shown_endpoint as s where s.endpoint_id = v_end.endpoint_id);
    conversation_handle := v_end.conversation_handle;
    side := case when v_end.is_initiator then 'initiator' else 'target' end;
    select * into v_far from parley._p_endpoint as e where e.endpoint_id = v_end.far_endpoint_id;
    v_delayed := (select count(*) from parley._p_transmission as t where t.endpoint_id = v_end.endpoint_id);
    if v_end.far_endpoint_id < 0 then
      return query select * from parley._p_explain_far_side(v_end, side);
      continue;
    end if;
    select coalesce(sum(coalesce(cardinality(m.frame), 1)), 0) into v_waiting
    from parley._p_message as m
    where m.endpoint_id = v_far.endpoint_id;
    select coalesce(max(p.sequence), 0) into v_received
    from parley._p_receive_progress as p
    where p.endpoint_id = v_far.endpoint_id;
    v_scope.endpoint_ids := array[v_end.endpoint_id];
    v_scope.patience := interval '0';
    v_scope.reader := v_caller;

    step := 1;
    is_finding := v_end.state = 'SO';
    answer := case
      when is_finding then 'Nothing that it has sent is committed.'
      else format(
        'It is in state %s (%s) since %s. Of its messages, received: %s, waiting there: %s, on their way: %s.%s',
        v_end.state, parley._p_state_name(v_end.state), date_trunc('second', v_end.state_since), v_received, v_waiting,
        v_delayed, parley._p_explain_not_due(v_end.endpoint_id)
      )
    end;
    cure := null;
    return next;

    step := 2;
    is_finding := true;
    for answer, cure in select f.cause, f.cure from parley._p_find_undeliverable(v_scope) as f loop
      return next;
    end loop;

    -- 3: it is there, but it still is the sender's.
    v_scope.endpoint_ids := array[v_far.endpoint_id];
    v_scope.queue_ids := array(select s.queue_id from parley._p_service as s where s.service_id = v_far.service_id);
    if v_waiting > 0 then
      step := 3;
      for answer, cure in
        select f.object_name || ': ' || f.cause, f.cure from parley._p_find_queues_off(v_scope) as f
      loop
        return next;
      end loop;
    end if;

    step := 6;
    if v_far.endpoint_id is null and v_end.far_endpoint_id is not null then
      answer :=
        'Its far side is closed or was removed: what it had received is processed, and no more can be sent to it.';
      cure := format('select parley.end_conversation(%L);', v_end.conversation_handle);
      return next;
    elsif v_waiting = 0 and v_delayed = 0 and v_far.state in ('DI', 'ER') then
      answer := format(
        'Everything was received there, and the far side is in state %s and not ended.',
        parley._p_state_name(v_far.state)
      );
      cure := format('select parley.end_conversation(%L);', v_far.conversation_handle);
      return next;
    elsif v_waiting = 0 and v_delayed = 0 and v_received > 0 then
      is_finding := false;
      answer := 'Everything that is committed was received there.';
      cure := null;
      return next;
    end if;

    if v_waiting > 0 then
      step := 7;
      is_finding := true;
      for answer, cure in select f.cause, f.cure from parley._p_find_why_unreceived(v_scope) as f loop
        return next;
      end loop;
    end if;
  end loop;
  if not found then
    step := 1;
    answer := 'Both sides are closed; what was sent was received, or dropped by who ended its side.';
    is_finding := false;
    return next;
  end if;
end
$$;

comment on function parley.explain_conversation(uuid, parley.caller) is
'Shows where the messages of a conversation are and what keeps them there, side by side, in the order of the steps of a
search for a lost message: 1 is it committed, 2 is it in the transmission queue, 3 is the queue of the other side off, 6
was it received, 7 does it wait to be received.
Columns: step; conversation_handle and side (initiator or target), the sender; answer; is_finding, whether that is
what is wrong; cure, a statement.
Arguments: conversation, a handle, a conversation id, or a group.
Errors: 229 not allowed, 8426 not found: never begun, rolled back, or forgotten.
Source: spec 9.3.';
