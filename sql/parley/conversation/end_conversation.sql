-- END CONVERSATION in its three forms, and what ends conversations from the broker's side.
--
-- Locks: the group of this side, then both endpoint rows in the order of their ids; this side's FOR UPDATE, so that no
-- send on it is under way, the far side's FOR NO KEY UPDATE, so that its senders are not held up. A reader of the far
-- side holds only its group row and is never waited for: when a side that ended before goes too, its group is locked
-- only if it is free, and otherwise the alarms remove that side a little later.

create function parley._p_lock_group_of(endpoint_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_group_id bigint;
begin
  loop
    select e.group_id into v_group_id from parley._p_endpoint as e where e.endpoint_id = _p_lock_group_of.endpoint_id;
    exit when not found;
    perform from parley._p_conversation_group as g where g.group_id = v_group_id for update;
    -- MOVE may have changed the group while we waited. Now it cannot any more (keeps S9).
    exit when exists (
      select from parley._p_endpoint as e where e.endpoint_id = _p_lock_group_of.endpoint_id and e.group_id = v_group_id
    );
  end loop;
end
$$;

comment on function parley._p_lock_group_of(bigint) is
'Locks the group that an endpoint is in, waiting for its holder; does nothing when the endpoint is gone.';

create function parley._p_lock_to_end(handle uuid) returns parley._p_endpoint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_found record;
  v_endpoint parley._p_endpoint;
begin
  loop
    select e.endpoint_id, e.group_id, e.far_endpoint_id, f.endpoint_id as locked_id into v_found
    from parley._p_endpoint as e
    join parley._p_conversation_group as g on g.group_id = e.group_id
    left join parley._p_endpoint as f on f.endpoint_id = e.far_endpoint_id
    where e.conversation_handle = handle
    for update of g;
    if not found then
      v_endpoint := parley._p_find_endpoint(handle, 'END');
      -- MOVE has left the group empty while we waited for it.
      continue when exists (select from parley._p_conversation_group as g where g.group_id = v_endpoint.group_id);
      perform from parley._p_endpoint as e where e.endpoint_id = v_endpoint.endpoint_id for update;
      return v_endpoint;
    elsif v_found.locked_id > v_found.endpoint_id then
      select e.* into v_endpoint
      from parley._p_endpoint as e
      join parley._p_endpoint as f on f.endpoint_id = e.far_endpoint_id
      where e.endpoint_id = v_found.endpoint_id and e.group_id = v_found.group_id
      for update of e for no key update of f;
    elsif v_found.locked_id < v_found.endpoint_id then
      select e.* into v_endpoint
      from parley._p_endpoint as e
      join parley._p_endpoint as f on f.endpoint_id = e.far_endpoint_id
      where e.endpoint_id = v_found.endpoint_id and e.group_id = v_found.group_id
      for no key update of f for update of e;
    else
      select e.* into v_endpoint
      from parley._p_endpoint as e
      where e.endpoint_id = v_found.endpoint_id
        and e.group_id = v_found.group_id
        and e.far_endpoint_id is not distinct from v_found.far_endpoint_id
      for update;
    end if;
    -- While we waited, MOVE may have changed the group, the first send may have made the far side, and that may have
    -- gone. With the locks neither can (keeps S9).
    exit when found;
  end loop;
  return v_endpoint;
end
$$;

comment on function parley._p_lock_to_end(uuid) is
'Locks a side of a conversation, its group and its far side, in the order that all follow.
Errors: 8418, 8426, 8427.';

create function parley._p_end_without_error(conversation_handle uuid, caller parley.caller) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley._p_end(parley._p_caller(caller), conversation_handle, 2, null);
  return true;
end
$$;

comment on function parley._p_end_without_error(uuid, parley.caller) is
'Does what end_conversation does. The argument caller is none of that: with it calls of its three forms
could be taken for one another.
Errors: those of end_conversation.';

create function parley.end_conversation(conversation_handle uuid) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley._p_end_without_error(conversation_handle, parley.current_caller());
end
$$;

comment on function parley.end_conversation(uuid) is
'Ends this side of a conversation: what waits for it is removed, and the other side gets an EndDialog
message after everything sent before; what was sent for later comes when it is due, and EndDialog behind the last of it.
Arguments: conversation_handle.
Errors: 229 not allowed, 8418 missing, 8426 not found, 8427 ended already.
Source: spec 4.6.';

create function parley.end_conversation(
  conversation_handle uuid, error_code integer, description text,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  if error_code is null and description is null then
    found := parley._p_raise(8424, 'null');
  elsif error_code is null then
    found := parley._p_raise(8419, 'null');
  elsif description is null then
    found := parley._p_raise(8422, 'null');
  elsif error_code <= 0 then
    found := parley._p_raise(8402, 'code', error_code::text);
  elsif length(description) > 3000 then
    found := parley._p_raise(8402, 'description', length(description)::text);
  end if;
  found := parley._p_end(v_caller, conversation_handle, 1, parley._p_error_body(error_code, description));
end
$$;

comment on function parley.end_conversation(uuid, integer, text, parley.caller) is
'Ends this side of a conversation with an error: the other side gets an Error message. Messages that were sent before
and are not delivered yet, or not due, are dropped.
Arguments: conversation_handle; error_code, greater than zero; description, at most 3000 characters.
Errors: 229 not allowed, 8402 code or description out of range, 8418 missing,
8419, 8422 and 8424 code or description missing, 8426 not found, 8427 ended already.
Source: spec 4.6.';

create function parley._p_error_body(error_code integer, description text) returns bytea
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return convert_to(
    xmlelement(
      name "Error",
      xmlattributes('http://schemas.microsoft.com/SQL/ServiceBroker/Error' as xmlns),
      xmlelement(name "Code", error_code),
      xmlelement(
        name "Description", regexp_replace(description, E'[\\u0001-\\u0008\\u000b\\u000c\\u000e-\\u001f]', '?', 'g')
      )
    )::text,
    'UTF8'
  );
end
$$;

comment on function parley._p_error_body(integer, text) is 'Gives the body of an Error message (spec 4.9), in UTF-8.';

create function parley._p_end(caller oid, handle uuid, message_type_id integer, body bytea) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  -- Before any row, as SEND does.
  perform pg_sequence_last_value('parley._p_broker_switch');
  v_endpoint := parley._p_lock_to_end(handle);
  found := parley._p_require_conversation_owner(caller, v_endpoint, 'END CONVERSATION');
  found := parley._p_end_side(v_endpoint, message_type_id, body);
  return true;
end
$$;

comment on function parley._p_end(oid, uuid, integer, bytea) is
'Ends one side with EndDialog (2) or Error (1), when the caller may.
Errors: 229, 8418, 8426, 8427.';

create function parley._p_end_side(endpoint parley._p_endpoint, message_type_id integer, body bytea) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_subclass integer := case message_type_id when 1 then 3 else 2 end;
begin
  case endpoint.state
    when 'SO' then
      perform parley._p_remove_endpoint(endpoint);
    when 'CO' then
      if message_type_id = 1 or not parley._p_end_here(endpoint) then
        if message_type_id = 2 and endpoint.has_delayed and parley._p_end_later(endpoint) then
          perform parley._p_trace_dialog(endpoint, v_subclass);
          return true;
        end if;
        perform parley._p_discard_messages(endpoint.endpoint_id);
        if message_type_id = 1 then
          message_type_id := parley._p_drop_unsent(endpoint);
        end if;
        perform parley._p_set_state(endpoint.endpoint_id, 'DO');
        if message_type_id is null then
          perform parley._p_remove_endpoint(endpoint);
        else
          perform parley._p_send_end(endpoint, message_type_id, body);
        end if;
      end if;
    when 'DI' then
      perform parley._p_close_both(endpoint);
    when 'ER' then
      if exists (
        select from parley._p_endpoint as f where f.endpoint_id = endpoint.far_endpoint_id and f.state in ('CO', 'DI')
      ) then
        perform parley._p_discard_messages(endpoint.endpoint_id);
        perform parley._p_set_state(endpoint.endpoint_id, 'DO');
        perform parley._p_send_end(endpoint, message_type_id, body);
      elsif parley._p_has_unacknowledged_error(endpoint) then
        perform parley._p_discard_messages(endpoint.endpoint_id);
        perform parley._p_set_state(endpoint.endpoint_id, 'DO');
      else
        perform parley._p_close_both(endpoint);
      end if;
    else
      found := parley._p_raise(
        8427, 'ended', parley._p_state_name(endpoint.state), endpoint.conversation_handle::text, endpoint.state
      );
  end case;
  perform parley._p_trace_dialog(endpoint, v_subclass);
  return true;
end
$$;

comment on function parley._p_end_side(parley._p_endpoint, integer, bytea) is
'Ends one side, locked by _p_lock_to_end, with EndDialog (2) or Error (1); the transitions of spec 3.2.
Errors: 8427.';

create function parley._p_end_here(endpoint parley._p_endpoint) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_far parley._p_endpoint;
begin
  select * into v_far from parley._p_endpoint as e where e.endpoint_id = endpoint.far_endpoint_id and e.state = 'CO';
  if not found or endpoint.has_delayed or pg_sequence_last_value('parley._p_broker_switch') is not null then
    return false;
  end if;
  if exists (select from parley._p_retained as r where r.endpoint_id = endpoint.endpoint_id)
    or exists (select from parley._p_expedited as x where x.endpoint_id = endpoint.endpoint_id) then
    perform parley._p_discard_messages(endpoint.endpoint_id);
  end if;
  perform parley._p_end_sides(array[endpoint.endpoint_id], array[v_far.endpoint_id]);
  perform parley._p_trace_dialog(v_far, 7);
  if not v_far.is_initiator then
    perform parley._p_set_alarm(
      v_far.endpoint_id, 'abandoned', clock_timestamp() + make_interval(secs => b.abandoned_seconds)
    )
    from parley._p_broker as b;
  end if;
  return true;
end
$$;

comment on function parley._p_end_here(parley._p_endpoint) is
'Ends a side, in state CO and locked by _p_lock_to_end, whose far side in this database is in state CO too: what
_p_discard_messages, _p_set_state and _p_send_end do, in one statement. Gives false, and has done nothing, for any
other, for one that has sent for later, and while the broker is disabled.
Source: spec 3.2, 4.6.';

create function parley._p_end_sides(endpoints bigint[], far_endpoints bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  with discarded_messages as (
    delete from parley._p_message as m where m.endpoint_id = any (endpoints)
  ), discarded_alarms as (
    delete from parley._p_alarm as a where a.endpoint_id = any (endpoints)
  ), ended as (
    update parley._p_endpoint as e
    set state = case when e.endpoint_id = any (endpoints) then 'DO' else 'DI' end, state_since = clock_timestamp(),
      destination_lane = null
    where e.endpoint_id = any (endpoints || far_endpoints)
    returning e.endpoint_id, e.state, e.service_id, e.priority
  )
  insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id)
  select nextval(q.position_sequence) * 1024, e.endpoint_id,
    case
      when pg_sequence_last_value(q.wakeup_sequence) > 0
        then parley._p_admit(parley._p_lane(q.queue_id, e.priority), q.wakeup_sequence, null)
      else clock_timestamp()
    end,
    parley._p_lane(q.queue_id, e.priority), 2
  from ended as e
  join parley._p_service as s on s.service_id = e.service_id
  join parley._p_queue as q on q.queue_id = s.queue_id
  where e.state = 'DI';
end
$$;

comment on function parley._p_end_sides(bigint[], bigint[]) is
'Ends sides of conversations, and puts EndDialog into the queues of their far sides. The caller has locked all of them.
Arguments: endpoints, in state CO; far_endpoints, of this database and in state CO.';

create function parley._p_send_end(endpoint parley._p_endpoint, message_type_id integer, body bytea) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_far parley._p_endpoint;
  v_reason text := parley._p_delay_reason(endpoint);
begin
  if endpoint.far_endpoint_id < 0 then
    perform parley._p_send_end_far(endpoint.endpoint_id, message_type_id, body);
    return;
  elsif endpoint.far_endpoint_id is null or v_reason is not null then
    if endpoint.far_endpoint_id is not null
      or (
        message_type_id = 2 and exists (
          select from parley._p_transmission as t where t.endpoint_id = endpoint.endpoint_id
        )
      ) then
      insert into parley._p_transmission (endpoint_id, message_type_id, enqueued_at, body, transmission_status)
      values (endpoint.endpoint_id, message_type_id, clock_timestamp(), body, coalesce(v_reason, ''));
    else
      -- The far database never knew of this conversation.
      perform parley._p_remove_endpoint(endpoint);
    end if;
    return;
  end if;
  select * into v_far from parley._p_endpoint as e where e.endpoint_id = endpoint.far_endpoint_id for no key update;
  if not found then
    perform parley._p_remove_endpoint(endpoint);
  elsif v_far.state = 'DO' then
    perform parley._p_close_both(endpoint);
  elsif v_far.state in ('CO', 'SO') then
    perform parley._p_enqueue(v_far, message_type_id, body);
    perform parley._p_set_state(v_far.endpoint_id, case message_type_id when 2 then 'DI' else 'ER' end);
    if message_type_id = 2 then
      perform parley._p_trace_dialog(v_far, 7);
    else
      perform parley._p_trace_received_error(v_far, body);
    end if;
    if not v_far.is_initiator then
      perform parley._p_set_alarm(
        v_far.endpoint_id, 'abandoned', clock_timestamp() + make_interval(secs => b.abandoned_seconds)
      )
      from parley._p_broker as b;
    end if;
  end if;
end
$$;

comment on function parley._p_send_end(parley._p_endpoint, integer, bytea) is
'Informs the far side that this side has ended, with EndDialog (2) or Error (1), after everything sent before; a far
side in another database also with an Error that stands outside the order (-1).';
