-- The beginning of a step: deliveries that a host has claimed meet their instances, under the locks of these.
--
-- Here is decided, once, whether a message of a convoy goes to an instance that is there or begins one: all of a key
-- are in one lane, of which one lease is out at a time, and the instances of the key are locked.
-- Locks: rows of _p_instance by number, to the end of the step.

create type parley_flow._p_begun as (
  key text,
  instance_id bigint,
  version integer,
  status text,
  attempts integer,
  is_retry_due boolean,
  state text,
  waits jsonb,
  timers jsonb,
  events jsonb,
  activities jsonb
);

comment on type parley_flow._p_begun is
'An instance at the beginning of a step. key: of the deliveries for it; waits, timers: as its last step left them;
events: what it has not taken, in order; activities: those that are overdue, or have failed.';

create function parley_flow._p_events_of(instance_id bigint) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(e.event order by e.at, e.place), '[]')
  from (
    select o.at, o.event_id as place, jsonb_strip_nulls(jsonb_build_object(
        'event', o.event_id, 'kind', o.kind, 'message', o.message_id, 'receive', o.receive, 'data', o.data,
        'came_by', o.came_by
      )) as event
    from parley_flow._p_instance_event as o
    where o.instance_id = $1
    union all
    select t.at, 0, jsonb_build_object('kind', 'TIMER_FIRED', 'timer', t.timer)
    from parley_flow._p_instance_timer as t
    where t.instance_id = $1 and t.timer <> '' and t.at <= clock_timestamp()
    union all
    select a.done_at, 0, jsonb_strip_nulls(jsonb_build_object(
        'kind', 'ACTIVITY_DONE', 'activity', a.activity, 'data', a.result, 'error', a.error
      ))
    from parley_flow._p_instance_activity as a
    where a.instance_id = $1 and a.done_at is not null
  ) as e
$$;

comment on function parley_flow._p_events_of(bigint) is
'Gives what an instance has not taken, in order: messages, starts, timers whose time has come, outcomes of activities.';

create function parley_flow._p_begin_step(
  host text, orchestration text, keys text[], caller parley.caller default parley.current_caller()
) returns setof parley_flow._p_begun
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_port constant parley_flow._p_send_port := parley_flow._p_require_orchestration(
    parley_flow._p_require_host(parley.caller_role(caller), host), orchestration
  );
begin
  found := parley_flow._p_require_read_committed();
  -- A statement after the locks sees what those have done who held them before.
  perform
  from parley_flow._p_instance as i
  where i.instance_id = any (array(
      select substr(u.key, 2)::bigint from unnest(keys) as u (key) where u.key ~ '^i[0-9]{1,18}$'
      union all
      select o.instance_id
      from parley_flow._p_instance as o
      join unnest(keys) as u (key) on starts_with(u.key, 'k') and o.convoy_key = substr(u.key, 2)
      where o.send_port_id = v_port.send_port_id
    )) and i.send_port_id = v_port.send_port_id
  order by i.instance_id
  for update;
  return query
  select u.key, i.instance_id, i.version, i.status, i.attempts,
    exists (
      select
      from parley_flow._p_instance_timer as t
      where t.instance_id = i.instance_id and t.timer = '' and t.at <= clock_timestamp()
    ), i.state,
    (
      select jsonb_agg(jsonb_build_object(
        'id', w.wait, 'receive', w.receive, 'is_open', w.is_open, 'filter', w.filter,
        'equal', coalesce(w.others, '{}') || jsonb_build_object(w.property, w.value)
      ) order by w.wait)
      from parley_flow._p_instance_wait as w
      where w.instance_id = i.instance_id
    ),
    (
      select jsonb_agg(jsonb_build_object('id', t.timer, 'at', t.at) order by t.at, t.timer)
      from parley_flow._p_instance_timer as t
      where t.instance_id = i.instance_id and t.timer <> ''
    ),
    parley_flow._p_events_of(i.instance_id),
    (
      select jsonb_agg(jsonb_build_object(
        'activity', a.activity, 'name', a.name, 'queue', a.queue, 'input', a.input, 'attempt', a.attempt,
        'attempts', a.attempts, 'error', a.error,
        'time_out_ms', (extract(epoch from a.time_out) * 1000)::bigint
      ) order by a.asked_at)
      from parley_flow._p_instance_activity as a
      where a.instance_id = i.instance_id and a.done_at is null and a.due_at <= clock_timestamp()
    )
  from (select distinct o.key from unnest(keys) as o (key)) as u
  join parley_flow._p_instance as i on i.send_port_id = v_port.send_port_id and (
    i.instance_id = case when u.key ~ '^i[0-9]{1,18}$' then substr(u.key, 2)::bigint end
    or (starts_with(u.key, 'k') and i.convoy_key = substr(u.key, 2))
  )
  order by i.instance_id;
end
$$;

comment on function parley_flow._p_begin_step(text, text, text[], parley.caller) is
'Locks and gives the instances for which deliveries were claimed, as they stand. Of a key i... there is none when the
instance is over: give what came for it to parley_flow._p_advance as unread. Of a key k... there are all of the convoy.
Call it in the transaction that ends with parley_flow._p_advance.
Arguments: host; orchestration; keys, as _p_claim gives them in order_key.
Errors: PF001, PF006 no such orchestration of this host, PF016.';

create function parley_flow._p_require_orchestration(host parley_flow._p_host, name text)
returns parley_flow._p_send_port
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_port parley_flow._p_send_port;
begin
  select * into v_port
  from parley_flow._p_send_port as s
  where s.name = $2 and s.host_id = host.host_id and s.is_process;
  if not found then
    found := parley_flow._p_raise('port of host', coalesce($2, 'null'), host.name);
  end if;
  return v_port;
end
$$;

comment on function parley_flow._p_require_orchestration(parley_flow._p_host, text) is
'Gives an orchestration of a host.
Errors: PF006.';

create function parley_flow._p_messages_of(
  host text, messages bigint[], caller parley.caller default parley.current_caller()
) returns table (
  message_id bigint, message_type text, promoted jsonb, written jsonb, size bigint, parts jsonb, content_id bigint,
  body bytea, received_at timestamptz
)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_host constant parley_flow._p_host := parley_flow._p_require_host(parley.caller_role(caller), host);
begin
  return query
  select m.message_id, m.message_type, m.promoted, m.written, m.size, m.parts, m.content_id, m.body, m.received_at
  from parley_flow._p_message as m
  where m.message_id = any (messages) and parley_flow._p_is_of_instance(v_host, m.message_id)
  order by m.message_id;
end
$$;

comment on function parley_flow._p_messages_of(text, bigint[], parley.caller) is
'Gives messages that instances of a host hold, or have not taken.
Errors: PF001.';

create function parley_flow._p_is_of_instance(host parley_flow._p_host, message_id bigint) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select
    from (
      select h.instance_id from parley_flow._p_instance_hold as h where h.message_id = $2
      union all
      select e.instance_id from parley_flow._p_instance_event as e where e.message_id = $2
    ) as o
    join parley_flow._p_instance as i on i.instance_id = o.instance_id
    join parley_flow._p_send_port as s on s.send_port_id = i.send_port_id
    where s.host_id = host.host_id
  )
$$;

comment on function parley_flow._p_is_of_instance(parley_flow._p_host, bigint) is
'Reports whether an instance of a host holds a message, or has not taken it.';

create function parley_flow._p_read_held_body(
  host text, message_id bigint, content_id bigint, from_number integer, to_number integer,
  caller parley.caller default parley.current_caller()
) returns table (number integer, body bytea, chunks integer, bytes bigint)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_host constant parley_flow._p_host := parley_flow._p_require_host(parley.caller_role(caller), host);
begin
  if not parley_flow._p_is_of_instance(v_host, message_id) then
    return query
    select r.number, r.body, r.chunks, r.bytes
    from parley_flow._p_read_body(host, message_id, content_id, from_number, to_number, caller => caller) as r;
    return;
  end if;
  return query
  select c.number, c.body, o.chunks, o.bytes
  from parley_store.open_content(content_id, 'flow', message_id) as o
  cross join parley_store.read_chunks(content_id, 'flow', message_id, from_number, to_number) as c
  where o.chunks > 0;
  if not found and from_number = 0 then
    return query
    select 0, o.body, 1, o.bytes
    from parley_store.open_content(content_id, 'flow', message_id) as o
    where o.body is not null;
  end if;
end
$$;

comment on function parley_flow._p_read_held_body(text, bigint, bigint, integer, integer, parley.caller) is
'Gives chunks of a body as _p_read_body does, also of a message that an instance of the host holds or has not taken.
Errors: PF001, PF006, PS003, PS010.';

create function parley_flow._p_program(
  host text, orchestration text, version integer, caller parley.caller default parley.current_caller()
) returns jsonb
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_port constant parley_flow._p_send_port := parley_flow._p_require_orchestration(
    parley_flow._p_require_host(parley.caller_role(caller), host), orchestration
  );
begin
  return (
    select v.settings
    from parley_flow._p_orchestration_version as v
    where v.name = v_port.name and v.version = $3
  );
end
$$;

comment on function parley_flow._p_program(text, text, integer, parley.caller) is
'Gives what an orchestration does in a version, for instances that began with it; null when there is none.
Errors: PF001, PF006.';
