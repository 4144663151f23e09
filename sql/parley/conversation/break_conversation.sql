-- Endings of conversations from outside: cleanup by an administrator, and errors of the broker.

create function parley._p_close_both(endpoint parley._p_endpoint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_far parley._p_endpoint;
begin
  select * into v_far from parley._p_endpoint as e where e.endpoint_id = endpoint.far_endpoint_id;
  if endpoint.is_plain and v_far.is_plain and v_far.state = 'DO' and not parley._p_keeps_snapshot() then
    -- Our own group END holds; who delivers what was delayed does not.
    perform
    from parley._p_conversation_group as g
    join parley._p_conversation_group as f on f.group_id = v_far.group_id
    where g.group_id = endpoint.group_id
    for update skip locked;
    if found then
      found := parley._p_remove_both(endpoint, v_far);
      return;
    end if;
  end if;
  perform parley._p_remove_endpoint(endpoint);
  if v_far.state = 'DO' then
    perform parley._p_remove_endpoint(v_far);
  end if;
end
$$;

comment on function parley._p_close_both(parley._p_endpoint) is
'Closes a side, and the far side too when that had ended before.';

create function parley._p_clean_up(conversation_handle uuid, cleanup boolean, caller parley.caller) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_endpoint parley._p_endpoint;
begin
  if not coalesce(cleanup, false) then
    perform parley._p_end_without_error(conversation_handle, caller);
    return true;
  end if;
  if exists (select from parley._p_tombstone as t where t.conversation_handle = _p_clean_up.conversation_handle) then
    if parley._p_is_administrator(v_caller) is not true then
      found := parley._p_raise(28006, 'cleanup', conversation_handle::text, 'CD');
    end if;
    delete from parley._p_tombstone as t where t.conversation_handle = _p_clean_up.conversation_handle;
    return true;
  end if;
  v_endpoint := parley._p_find_shown(conversation_handle);
  v_endpoint := parley._p_settle(parley._p_lock_to_end(conversation_handle));
  if parley._p_is_administrator(v_caller) is not true
    and (pg_has_role(v_caller, v_endpoint.owner, 'usage') and v_endpoint.state <> 'DO') is not true then
    found := parley._p_raise(28006, 'cleanup', conversation_handle::text, v_endpoint.state);
  end if;
  perform parley._p_forget_routes(array[v_endpoint.far_endpoint_id]);
  -- The other side stays as it is: without messages and progress of this one its dialog would look unsent
  -- (conversation/first_send.sql).
  update parley._p_endpoint as e set bound_version = null
  where e.endpoint_id = v_endpoint.far_endpoint_id and e.bound_version is not null;
  perform parley._p_remove_endpoint(v_endpoint);
  -- Removed is removed: not even a tombstone stays (spec 3.2).
  delete from parley._p_tombstone as t where t.conversation_handle = _p_clean_up.conversation_handle;
  perform parley._p_trace_dialog(v_endpoint, 13);
  return true;
end
$$;

comment on function parley._p_clean_up(uuid, boolean, parley.caller) is
'Does what end_conversation with cleanup does.
Errors: those of end_conversation with cleanup.';

create function parley.end_conversation(conversation_handle uuid, cleanup boolean) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley._p_clean_up(conversation_handle, cleanup, parley.current_caller());
end
$$;

comment on function parley.end_conversation(uuid, boolean) is
'Removes one side of a conversation at once, without a message to the other side: for
administrators, when nothing else helps.
Arguments: conversation_handle; cleanup, true (false: the plain form).
Errors: 8418 missing, 8426 not found, 28006 not an administrator.
Source: spec 4.6.';

create function parley._p_broker_error_body(error parley._p_error) returns bytea
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select parley._p_error_body(-error.error_number, error.description)
$$;

comment on function parley._p_broker_error_body(parley._p_error) is
'Gives the body of an Error message of the broker: its code is the negative number.';

create function parley._p_break_conversations(
  endpoints bigint[], error parley._p_error, far_error parley._p_error default null
) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
  v_error parley._p_error;
  v_broken integer := 0;
begin
  perform parley._p_settle_unsent(endpoints);
  -- Both sides of each, locked in their order; against senders too where their messages are held from now on.
  perform
  from parley._p_endpoint as e
  where e.endpoint_id = any (endpoints) and e.far_endpoint_id < 0
  order by e.endpoint_id
  for update of e;
  for v_endpoint in
    select e.*
    from parley._p_endpoint as e
    where e.endpoint_id = any (endpoints)
      or e.endpoint_id in (select f.far_endpoint_id from parley._p_endpoint as f where f.endpoint_id = any (endpoints))
    order by e.endpoint_id
    for no key update of e
  loop
    case v_endpoint.state
      when 'CO', 'SO', 'DI', 'SI' then
        v_error := case when v_endpoint.endpoint_id = any (endpoints) then error else coalesce(far_error, error) end;
        perform parley._p_enqueue(v_endpoint, 1, parley._p_broker_error_body(v_error));
        perform parley._p_set_state(v_endpoint.endpoint_id, 'ER');
        perform parley._p_trace_dialog(v_endpoint, 4, -v_error.error_number, v_error.description);
        v_broken := v_broken + 1;
        if v_endpoint.far_endpoint_id < 0 then
          perform parley._p_hold_outgoing(v_endpoint, parley._p_status(9784, 'Error made'));
          if far_error.error_number > 0 then
            perform parley._p_send_end_far(v_endpoint.endpoint_id, -1, parley._p_broker_error_body(far_error));
          end if;
        end if;
        if not v_endpoint.is_initiator then
          perform parley._p_expect_no_end(v_endpoint.endpoint_id);
        end if;
      when 'DO' then
        -- It has ended by itself and gets no end (spec 3.2).
        perform parley._p_remove_endpoint(v_endpoint);
      else
        null;
    end case;
  end loop;
  return v_broken;
end
$$;

comment on function parley._p_break_conversations(bigint[], parley._p_error, parley._p_error) is
'Ends conversations with an error of the broker: both sides get an Error message with the negative number and are in
state ER (spec 3.2). A far side gets far_error, when that is given; one in another database gets nothing otherwise: it
has its own clock, or has caused the error. Gives the number of sides that got an error.';

create function parley._p_drop_endpoints_of_service(service_id integer, error parley._p_error) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
  v_far parley._p_endpoint;
begin
  perform
  from parley._p_conversation_group as g
  where g.service_id = _p_drop_endpoints_of_service.service_id
  order by g.group_id
  for update;
  perform parley._p_settle_unsent(array(
    select e.endpoint_id from parley._p_endpoint as e where e.service_id = _p_drop_endpoints_of_service.service_id
  ));
  for v_endpoint in
    select e.*
    from parley._p_endpoint as e
    where e.service_id = _p_drop_endpoints_of_service.service_id
    order by e.endpoint_id
    for update
  loop
    select * into v_far from parley._p_endpoint as e where e.endpoint_id = v_endpoint.far_endpoint_id for no key update;
    if v_far.state in ('CO', 'DI', 'SO') and v_far.service_id <> v_endpoint.service_id then
      perform parley._p_enqueue(v_far, 1, parley._p_broker_error_body(error));
      perform parley._p_set_state(v_far.endpoint_id, 'ER');
      perform parley._p_trace_dialog(v_far, 4, -error.error_number, error.description);
    elsif v_far.state = 'DO' and v_far.service_id <> v_endpoint.service_id then
      -- It only waited for this side to end.
      perform parley._p_remove_endpoint(v_far);
    end if;
    if v_endpoint.far_endpoint_id < 0 and v_endpoint.state = 'CO' then
      -- It stays until the far side has received the Error.
      perform parley._p_discard_messages(v_endpoint.endpoint_id);
      perform parley._p_set_state(v_endpoint.endpoint_id, 'DO');
      perform parley._p_drop_outgoing(v_endpoint);
      perform parley._p_send_end_far(v_endpoint.endpoint_id, -1, parley._p_broker_error_body(error));
    else
      perform parley._p_remove_endpoint(v_endpoint);
    end if;
    perform parley._p_trace_dialog(v_endpoint, 5, null, error.description);
  end loop;
  delete from parley._p_tombstone as t where t.service_id = _p_drop_endpoints_of_service.service_id;
end
$$;

comment on function parley._p_drop_endpoints_of_service(integer, parley._p_error) is
'Removes all endpoints of a service that is dropped and informs the far sides, with the error.';

create function parley._p_move_service(service parley._p_service, queue parley._p_queue) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  -- No message may be on the way to the old queue: the far sides' rows are locked against their senders.
  perform from parley._p_endpoint as e
  where e.endpoint_id in (select f.far_endpoint_id from parley._p_endpoint as f where f.service_id = service.service_id)
  order by e.endpoint_id
  for update;
  -- A message from another database, and a timer that fires, lock the receiving row itself.
  perform from parley._p_endpoint as e where e.service_id = service.service_id order by e.endpoint_id for update;
  perform parley._p_forget_routes(
    array(select f.far_endpoint_id from parley._p_endpoint as f where f.service_id = service.service_id)
  );
  perform parley._p_forget_routes(
    array(select e.endpoint_id from parley._p_endpoint as e where e.service_id = service.service_id)
  );
  update parley._p_service as s set queue_id = queue.queue_id where s.service_id = service.service_id;
  for v_endpoint in
    select e.* from parley._p_endpoint as e where e.service_id = service.service_id order by e.endpoint_id
  loop
    perform from parley._p_conversation_group as g where g.group_id = v_endpoint.group_id for update;
    perform parley._p_use_priority(queue, v_endpoint.priority);
    -- Copies come first: their positions would be given once more in the other queue.
    update parley._p_retained as r
    set queue_id = queue.queue_id, position = o.position
    from (
      select k.row_id, nextval(queue.position_sequence) * 1024 as position
      from (
        select c.ctid as row_id
        from parley._p_retained as c
        where c.endpoint_id = v_endpoint.endpoint_id
        order by c.position, c.status
      ) as k
    ) as o
    where r.ctid = o.row_id;
    if found then
      delete from parley._p_copy_progress as p where p.endpoint_id = v_endpoint.endpoint_id;
    end if;
    with moved as (
      delete from parley._p_message as m where m.endpoint_id = v_endpoint.endpoint_id
      returning m.position, m.enqueued_at, m.message_type_id, m.body, m.frame, m.trace_context
    )
    insert into parley._p_message (
      position, endpoint_id, enqueued_at, lane, message_type_id, body, frame, trace_context
    )
    select nextval(queue.position_sequence) * 1024, v_endpoint.endpoint_id, o.enqueued_at,
      parley._p_lane(queue.queue_id, v_endpoint.priority),
      o.message_type_id, o.body, o.frame, o.trace_context
    from (
      select m.position, m.enqueued_at, m.message_type_id, m.body, m.frame, m.trace_context
      from moved as m
      order by m.position
    ) as o;
    -- A conversation that is set aside stays so: in the new queue it gets out of the way again.
    update parley._p_set_aside as a set position = 0, moved_position = 0 where a.endpoint_id = v_endpoint.endpoint_id;
  end loop;
end
$$;

comment on function parley._p_move_service(parley._p_service, parley._p_queue) is
'Moves a service, its waiting messages and the copies that retention keeps, in their order, to another queue. The caller
has called _p_forget_later_routes.';
