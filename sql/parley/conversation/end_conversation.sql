-- END CONVERSATION in its three forms, and what ends conversations from the broker's side.
--
-- Locks: those of conversation/lock_to_end.sql. A reader of the far side holds only its group row and is never waited
-- for: when a side that ended before goes too, its group is locked only if it is free, and otherwise the alarms remove
-- that side a little later.
--
-- END of a usual side reads the columns that it needs and no whole rows: two rows of an endpoint are 60 columns. It
-- asks for all that may be left elsewhere in statements that begin when it has the locks, so that they see what those
-- have committed for whom it waited. It deletes only where something is left: a delete that finds nothing costs twice
-- as much as the question. Of two sides that BEGIN DIALOG has made the target has the greater endpoint_id.

create function parley._p_end_without_error(conversation_handle uuid, caller parley.caller) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  found := parley._p_end_usual_side(v_caller, conversation_handle)
    or parley._p_end_any_side(v_caller, conversation_handle, 2, null);
end
$$;

comment on function parley._p_end_without_error(uuid, parley.caller) is
'Does what end_conversation does. The argument caller is none of that: with it calls of its three forms
could be taken for one another.
Errors: those of end_conversation.';

create function parley.end_conversation(conversation_handle uuid) returns void
language sql
as $$
  select parley._p_end_without_error($1, current_user)
$$;

comment on function parley.end_conversation(uuid) is
'Ends this side of a conversation: what waits for it is removed, and the other side gets an EndDialog
message after everything sent before; what was sent for later comes when it is due, and EndDialog behind the last of it.
Arguments: conversation_handle.
Errors: 229 not allowed, 8418 missing, 8426 not found, 8427 ended already.
Source: spec 4.6.';

create function parley.end_conversation(
  conversation_handle uuid, error_code integer, description text,
  caller parley.caller default current_user
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
begin
  return message_type_id = 2 and parley._p_end_usual_side(caller, handle)
    or parley._p_end_any_side(caller, handle, message_type_id, body);
end
$$;

comment on function parley._p_end(oid, uuid, integer, bytea) is
'Ends one side with EndDialog (2) or Error (1), when the caller may.
Errors: 229, 8418, 8426, 8427.';

create function parley._p_end_any_side(caller oid, handle uuid, message_type_id integer, body bytea) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  -- The switch of the broker before any row, as SEND does.
  perform pg_sequence_last_value('parley._p_broker_switch');
  v_endpoint := parley._p_lock_to_end(handle);
  if v_endpoint.bound_version is not null and parley._p_is_hidden(v_endpoint) then
    found := parley._p_raise_unknown_handle(handle);
  end if;
  if pg_has_role(caller, v_endpoint.owner, 'usage') is not true then
    found := parley._p_require_conversation_owner(caller, v_endpoint, 'END CONVERSATION');
  end if;
  if v_endpoint.bound_version is not null and parley._p_is_unsent(v_endpoint) then
    return parley._p_end_unsent(v_endpoint);
  end if;
  return parley._p_end_side(v_endpoint, message_type_id, body);
end
$$;

comment on function parley._p_end_any_side(oid, uuid, integer, bytea) is
'Ends one side with EndDialog (2) or Error (1), when the caller may, whatever is unusual about it.
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

create function parley._p_end_unsent(endpoint parley._p_endpoint) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if not parley._p_keeps_snapshot() then
    return parley._p_end_side(parley._p_unbind(endpoint), 2, null);
  end if;
  -- A message may have been sent that this snapshot does not show. A later transaction finds out (_p_end_abandoned),
  -- for which the version is 0.
  perform parley._p_discard_messages(endpoint.endpoint_id), parley._p_set_state(endpoint.endpoint_id, 'DO');
  update parley._p_endpoint as e set bound_version = 0 where e.endpoint_id = endpoint.endpoint_id;
  perform parley._p_set_alarm(endpoint.endpoint_id, 'abandoned', clock_timestamp());
  perform parley._p_trace_dialog(endpoint, 2);
  return true;
end
$$;

comment on function parley._p_end_unsent(parley._p_endpoint) is
'Ends the initiator of a dialog, locked by _p_lock_to_end, on which this transaction sees no message: the target is
not told.';

create function parley._p_end_usual_side(caller oid, handle uuid) returns boolean
language plpgsql
as $$
declare
  v_id pg_catalog.int8;
  v_far_id pg_catalog.int8;
  v_group_id pg_catalog.int8;
  v_sides record;
  v_left record;
begin
  -- The switch of the broker before any row, as SEND does.
  if pg_catalog.pg_sequence_last_value('parley._p_broker_switch') is not null
    or pg_catalog.pg_sequence_last_value('parley._p_trace_until') operator(pg_catalog.>) 0::pg_catalog.int8 then
    return false;
  end if;
  select e.endpoint_id, e.far_endpoint_id, e.group_id into v_id, v_far_id, v_group_id
  from parley._p_endpoint as e
  join parley._p_conversation_group as g on g.group_id operator(pg_catalog.=) e.group_id
  where e.conversation_handle operator(pg_catalog.=) handle for update of g;
  -- MOVE may have changed the group while we waited for it. Then no side is locked: the other group comes before them.
  -- The same twice: the order in which rows are locked is that of the clauses.
  if v_far_id operator(pg_catalog.>) v_id then
    select e.state, f.state as far_state, e.is_plain, f.is_plain as far_is_plain, f.has_delayed as far_has_delayed,
      e.is_initiator, e.bound_version, f.group_id as far_group_id, f.service_id as far_service_id,
      f.priority as far_priority, not e.has_delayed and pg_catalog.pg_has_role(caller, e.owner, 'usage') as may_end
    into v_sides
    from parley._p_endpoint as e
    join parley._p_endpoint as f on f.endpoint_id operator(pg_catalog.=) e.far_endpoint_id
    where e.endpoint_id operator(pg_catalog.=) v_id and e.group_id operator(pg_catalog.=) v_group_id
      and f.endpoint_id operator(pg_catalog.=) v_far_id
    for update of e for no key update of f;
  elsif v_far_id operator(pg_catalog.>) 0::pg_catalog.int8 then
    select e.state, f.state as far_state, e.is_plain, f.is_plain as far_is_plain, f.has_delayed as far_has_delayed,
      e.is_initiator, e.bound_version, f.group_id as far_group_id, f.service_id as far_service_id,
      f.priority as far_priority, not e.has_delayed and pg_catalog.pg_has_role(caller, e.owner, 'usage') as may_end
    into v_sides
    from parley._p_endpoint as e
    join parley._p_endpoint as f on f.endpoint_id operator(pg_catalog.=) e.far_endpoint_id
    where e.endpoint_id operator(pg_catalog.=) v_id and e.group_id operator(pg_catalog.=) v_group_id
      and f.endpoint_id operator(pg_catalog.=) v_far_id
    for no key update of f for update of e;
  else
    return false;
  end if;
  if not found or v_sides.may_end is not true then
    return false;
  elsif v_sides.state operator(pg_catalog.<>) 'CO' or v_sides.far_state operator(pg_catalog.<>) 'CO' then
    return v_sides.state operator(pg_catalog.=) 'DI' and v_sides.far_state operator(pg_catalog.=) 'DO'
      and v_sides.is_plain and v_sides.far_is_plain and not v_sides.far_has_delayed and not parley._p_keeps_snapshot()
      and parley._p_close_usual_sides(v_id, v_group_id, v_far_id, v_sides.far_group_id);
  elsif v_sides.bound_version is not null and parley._p_was_sent_nothing(greatest(v_id, v_far_id)) then
    return false;
  end if;
  update parley._p_endpoint as e
  set state = case when e.endpoint_id operator(pg_catalog.=) v_id then 'DO' else 'DI' end,
    state_since = pg_catalog.clock_timestamp(), destination_lane = null
  where e.endpoint_id operator(pg_catalog.=) any (array[v_id, v_far_id]);
  insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id)
  select pg_catalog.nextval(q.position_sequence) operator(pg_catalog.*) 1024::pg_catalog.int8, v_far_id,
    case
      when pg_catalog.pg_sequence_last_value(q.wakeup_sequence) operator(pg_catalog.>) 0::pg_catalog.int8
        then parley._p_admit(parley._p_lane(q.queue_id, v_sides.far_priority), q.wakeup_sequence, null)
      else pg_catalog.clock_timestamp()
    end,
    parley._p_lane(q.queue_id, v_sides.far_priority), 2
  from parley._p_service as s
  join parley._p_queue as q on q.queue_id operator(pg_catalog.=) s.queue_id
  where s.service_id operator(pg_catalog.=) v_sides.far_service_id
  returning
    exists (select from parley._p_message as m where m.endpoint_id operator(pg_catalog.=) v_id) as has_messages,
    exists (select from parley._p_alarm as a where a.endpoint_id operator(pg_catalog.=) v_id)
      or exists (select from parley._p_retained as r where r.endpoint_id operator(pg_catalog.=) v_id) as has_rest
  into v_left;
  if v_left.has_rest or not v_sides.is_plain then
    perform parley._p_discard_messages(v_id);
  elsif v_left.has_messages then
    delete from parley._p_message as m where m.endpoint_id operator(pg_catalog.=) v_id;
  end if;
  if v_sides.is_initiator then
    perform parley._p_expect_no_end(v_far_id);
  end if;
  return true;
end
$$;

comment on function parley._p_end_usual_side(oid, uuid) is
'Ends a side with EndDialog as _p_end_side does, in fewer statements, where both sides are open or the far side has
ended before. Gives false, and has done nothing but lock, where the caller may not, and where anything else is unusual:
one that has sent for later, one on which nothing is known to have been sent, one whose far side is held by another
session, a trace, or a broker that is disabled.
Arguments: caller; handle.
Source: spec 3.2, 4.6.';

create function parley._p_expect_no_end(endpoint_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley._p_set_alarm(
    _p_expect_no_end.endpoint_id, 'abandoned', clock_timestamp() + make_interval(secs => b.abandoned_seconds)
  )
  from parley._p_broker as b;
end
$$;

comment on function parley._p_expect_no_end(bigint) is
'Sets the alarm that removes a target whose initiator has ended, in case its reader never ends it (spec 3.6).';

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
      perform parley._p_expect_no_end(v_far.endpoint_id);
    end if;
  end if;
end
$$;

comment on function parley._p_send_end(parley._p_endpoint, integer, bytea) is
'Informs the far side that this side has ended, with EndDialog (2) or Error (1), after everything sent before; a far
side in another database also with an Error that stands outside the order (-1).';
