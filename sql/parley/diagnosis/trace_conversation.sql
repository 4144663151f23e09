-- The life of one conversation, in order, as far as the database remembers it.
--
-- A broker that keeps no history remembers the present: when the sides were begun, their states and since when, the
-- messages that wait or that retention keeps, the holder of the group, and failures. A message that was received and
-- not retained is a number without a time.

create function parley._p_trace_messages(endpoint_id bigint) returns table (
  rank integer, at timestamptz, event text, type_id integer, body bytea, detail text
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 3, r.enqueued_at, case r.status when 3 then 'sent' else 'received' end, r.message_type_id, r.body,
    format('number %s, kept by retention', r.message_sequence_number)
  from parley._p_retained as r
  where r.endpoint_id = $1
  union all
  select 4, w.enqueued_at, case w.message_type_id when 1 then 'error waits' else 'message waits' end,
    w.message_type_id, w.body,
    format('position %s in the queue', w.position)
      || case w.message_type_id when 1 then ': ' || parley.body_text(w.body) else '' end
  from (
    select m.position + b.ordinal - 1 as position, m.enqueued_at, m.message_type_id, b.body
    from parley._p_message as m
    cross join lateral unnest(coalesce(m.frame, array[m.body])) with ordinality as b (body, ordinal)
    where m.endpoint_id = $1
    order by m.position, b.ordinal
    limit 1000
  ) as w
  union all
  select 5, t.enqueued_at, 'message delayed', abs(t.message_type_id), t.body, t.transmission_status
  from parley._p_transmission as t
  where t.endpoint_id = $1
  union all
  select 5, t.enqueued_at, 'message in transit', abs(t.message_type_id), b.body,
    concat_ws(
      ': ', format('number %s to %s', t.first_sequence + b.ordinal - 1, d.address), nullif(d.status, '')
    )
  from parley._p_transit as t
  join parley._p_destination as d using (destination_id)
  cross join lateral unnest(coalesce(t.frame, array[t.body])) with ordinality as b (body, ordinal)
  where t.endpoint_id = $1
  union all
  select 5, w.enqueued_at, 'message to transmit', abs(w.message_type_id), w.body,
    concat_ws(': ', format('number not given yet to %s', d.address), nullif(d.status, ''))
  from (
    select m.enqueued_at, m.message_type_id, b.body, m.lane
    from parley._p_message as m
    cross join lateral unnest(coalesce(m.frame, array[m.body])) with ordinality as b (body, ordinal)
    where m.endpoint_id = -$1
    order by m.position, b.ordinal
    limit 1000
  ) as w
  join parley._p_destination as d on d.destination_id = parley._p_owner_of_lane(w.lane)
  union all
  select 10, d.due_at, 'message for later', d.message_type_id, d.body, format('delayed_id %s', d.delayed_id)
  from (
    select n.due_at, n.message_type_id, n.body, n.delayed_id
    from parley._p_delayed_send as n
    where n.endpoint_id = $1
    order by n.due_at, n.delayed_id
    limit 1000
  ) as d
$$;

comment on function parley._p_trace_messages(bigint) is
'Gives the events of messages that one side of a conversation still has: retained, waiting, delayed, in transit, and not
due.';

create function parley.trace_conversation(conversation uuid, caller parley.caller default parley.current_caller())
returns table (
  at timestamptz, conversation_handle uuid, side text, event text, message_type_name text, body_bytes integer,
  detail text
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  return query
  with ends as materialized (
    select e.*, case when e.is_initiator then 'initiator' else 'target' end as side, g.conversation_group_id,
      g.xmax as holder
    from parley._p_visible_endpoints(v_caller, conversation) as e
    left join parley._p_conversation_group as g using (group_id)
  ), events as (
    select 1 as rank, e.begun_at as at, e.conversation_handle, e.side, 'begun' as event, null::integer as type_id,
      null::bytea as body,
      format(
        '%s "%s" with "%s" on contract "%s", priority %s, group %s', e.side, e.service_name, e.far_service,
        e.service_contract_name, e.priority, e.conversation_group_id
      ) as detail
    from ends as e
    union all
    select 2, e.begun_at, e.conversation_handle, e.side, 'received', null, null,
      format('%s messages so far', p.sequence)
    from ends as e
    cross join lateral (
      select r.sequence
      from parley._p_receive_progress as r
      where r.endpoint_id = e.endpoint_id
      order by r.sequence desc
      limit 1
    ) as p
    union all
    select m.rank, m.at, e.conversation_handle, e.side, m.event, m.type_id, m.body, m.detail
    from ends as e
    cross join lateral parley._p_trace_messages(e.endpoint_id) as m
    union all
    select 6, f.failed_at, e.conversation_handle, e.side, 'reader failed', null, null,
      f.error || coalesce(' (SQLSTATE ' || nullif(f.sqlstate, '') || ')', '')
    from ends as e
    join parley._p_failure as f using (endpoint_id)
    union all
    select 7, a.set_aside_at, e.conversation_handle, e.side, 'set aside', null, null,
      format('after %s rollbacks', a.rollbacks) || coalesce(format(', until %s', a.retry_at), '')
    from ends as e
    join parley._p_set_aside as a using (endpoint_id)
    union all
    select 8, e.state_since, e.conversation_handle, e.side, 'state', null, null,
      format('%s, %s', e.state, parley._p_state_name(e.state))
    from ends as e
    union all
    select 9, coalesce(a.xact_start, clock_timestamp()), e.conversation_handle, e.side, 'group locked', null, null,
      case
        when o.pid is not null then format('by session %s (%s)', o.pid, coalesce(a.application_name, 'unknown'))
        when o.prepared is not null then format('by the prepared transaction "%s"', o.prepared)
        else 'by one of the sessions ' || array_to_string(o.candidates, ', ')
      end
    from ends as e
    join parley._p_lock_holders(array(select distinct f.holder from ends as f)) as o on o.transaction_id = e.holder
    left join pg_stat_activity as a using (pid)
    union all
    select 10, m.due_at, e.conversation_handle, e.side,
      case m.kind
        when 'timer' then 'timer fires'
        when 'lifetime' then 'lifetime ends'
        else 'ends by itself'
      end, null, null,
      case when m.kind in ('abandoned', 'pooled') then 'unless it is ended before, or something is left to read' end
    from ends as e
    join parley._p_alarm as m using (endpoint_id)
    union all
    select 11, t.expires_at, t.conversation_handle, 'target', 'forgotten', null, null, 'closed; remembered until then'
    from parley._p_tombstone as t
    where (conversation in (t.conversation_handle, t.conversation_id, t.conversation_group_id)
        or t.conversation_id in (select e.conversation_id from ends as e))
      and (pg_has_role(v_caller, t.owner, 'usage') or parley._p_is_administrator(v_caller))
  )
  select v.at, v.conversation_handle, v.side, v.event, t.name::text, octet_length(v.body), v.detail
  from events as v
  left join parley._p_message_type as t on t.message_type_id = v.type_id
  order by v.at, v.rank, v.side;
end
$$;

comment on function parley.trace_conversation(uuid, parley.caller) is
'Shows the history of a conversation in order, as far as the database remembers it: begun, received, waiting,
delayed and retained messages, failures, states, who holds its group, timers, messages for later and ends to come. At
most 1,000 waiting messages of each side.
Columns: at; conversation_handle and side, initiator or target; event; message_type_name and body_bytes of a message;
detail. A message that was received and is not retained is counted at the time when its side was begun.
Arguments: conversation, a handle, a conversation id, or a group, for all conversations in it.
Errors: 229 not allowed, 8426 not found.';
