-- GET CONVERSATION GROUP and MOVE CONVERSATION. Many groups at once: receive/lock_groups.sql.

create function parley.get_conversation_group(
  queue text, timeout integer default null,
  caller parley.caller default parley.current_caller()
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue;
  v_group bigint;
  v_has_fired boolean;
  v_wait parley._p_wait;
begin
  loop
    v_queue := parley._p_find_queue(v_caller, queue, 'RECEIVE');
    found := parley._p_require_receivable(v_caller, v_queue);
    found := parley._p_require_timeout(timeout);
    if parley._p_is_paused(v_queue, coalesce(timeout, 0)) then
      return null;
    end if;
    if coalesce(timeout, 0) <> 0 then
      v_wait := parley._p_begin_scan(null, timeout, v_wait);
    end if;
    v_has_fired := (coalesce(timeout, 0) = 0 or parley._p_has_due_alarm(v_queue.queue_id))
      and parley._p_fire_alarms(v_queue.queue_id, 8) > 0;
    v_group := (parley._p_lock_next_group(v_queue.queue_id, v_queue.priorities)).group_id;
    if v_group is not null then
      return (select g.conversation_group_id from parley._p_conversation_group as g where g.group_id = v_group);
    end if;
    if coalesce(timeout, 0) = 0 or parley._p_has_unseen() or v_has_fired then
      return null;
    end if;
    v_wait := parley._p_wait_for_turn(v_queue, timeout, v_wait);
    if v_wait.is_over then
      return null;
    end if;
  end loop;
end
$$;

comment on function parley.get_conversation_group(text, integer, parley.caller) is
'Locks the next group that has messages, to the end of the transaction, and returns its id; null when there is none.
Arguments: queue; timeout in milliseconds (null or 0: do not wait, -1: for ever); like receive
it returns nothing before its time when there is something to commit.
Errors: 208 no such queue, 229 not allowed, 8402 timeout negative and not -1, 9609 malformed
name, 9617 the queue is disabled.
Source: spec 4.4.';

create function parley.move_conversation(
  conversation_handle uuid, conversation_group_id uuid,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_endpoint parley._p_endpoint := parley._p_find_shown(conversation_handle, 'MOVE');
  v_target parley._p_conversation_group;
  v_same_queue boolean;
  v_group_id bigint;
begin
  if conversation_group_id is null then
    found := parley._p_raise(8420, 'null');
  end if;
  found := parley._p_require_conversation_owner(v_caller, v_endpoint, 'MOVE CONVERSATION');
  loop
    v_group_id := v_endpoint.group_id;
    perform parley._p_lock_unclaimed(array(
      select g.group_id
      from parley._p_conversation_group as g
      where g.group_id = v_group_id or g.conversation_group_id = move_conversation.conversation_group_id
    ));
    v_endpoint := parley._p_find_endpoint(conversation_handle, 'MOVE');
    -- Another MOVE may have come first while we waited.
    exit when v_endpoint.group_id = v_group_id;
  end loop;
  select * into v_target
  from parley._p_conversation_group as g
  where g.conversation_group_id = move_conversation.conversation_group_id;
  if v_target.group_id <> v_endpoint.group_id then
    perform parley._p_make_group_shared(v_target.group_id, v_endpoint.endpoint_id);
    v_endpoint := parley._p_find_endpoint(conversation_handle, 'MOVE');
  end if;
  if v_target.group_id is null then
    found := parley._p_raise(8436, 'unknown', conversation_group_id::text);
  end if;
  select t.queue_id = s.queue_id into v_same_queue
  from parley._p_service as s, parley._p_service as t
  where s.service_id = v_endpoint.service_id and t.service_id = v_target.service_id;
  if not v_same_queue then
    found := parley._p_raise(8439, 'other queue', conversation_group_id::text);
  elsif v_endpoint.state = 'DO' then
    found := parley._p_raise(8438, 'ended', conversation_handle::text, parley._p_state_name(v_endpoint.state));
  elsif v_target.group_id = v_endpoint.group_id then
    return;
  end if;
  update parley._p_endpoint as e
  set group_id = v_target.group_id, is_plain = false
  where e.endpoint_id = v_endpoint.endpoint_id;
  delete from parley._p_conversation_group as g
  where g.group_id = v_endpoint.group_id
    and not exists (select from parley._p_endpoint as e where e.group_id = g.group_id);
end
$$;

comment on function parley.move_conversation(uuid, uuid, parley.caller) is
'Moves a conversation to another group of the same queue; locks both groups, and waits while one of them is being
delivered to a web address.
Arguments: conversation_handle, conversation_group_id.
Errors: 229 not allowed, 8418 and 8420 missing arguments, 8426 conversation not found, 8436 group not found, 8438 it has
ended, 8439 a group of another queue.
Source: spec 4.5.';
