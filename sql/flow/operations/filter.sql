-- Filters of suspended messages.

create function parley_flow._p_conditions() returns text[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select array[
    'suspensions', 'messages', 'application', 'receive_port', 'location', 'send_port', 'stage', 'code', 'error',
    'message_type', 'is_resumable', 'older', 'newer', 'order_key', 'cause', 'property', 'value', 'host'
  ]
$$;

comment on function parley_flow._p_conditions() is 'The conditions of a filter of suspended messages.';

create function parley_flow._p_checked_interval(filter jsonb, condition text) returns timestamptz
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return clock_timestamp() - (filter ->> condition)::interval;
exception
  when invalid_datetime_format or datetime_field_overflow or interval_field_overflow then
    found := parley_flow._p_raise('filter value', condition, left(filter ->> condition, 100));
    return null;
end
$$;

comment on function parley_flow._p_checked_interval(jsonb, text) is
'Gives the time that an interval of a filter means; null when there is none.
Errors: PF010.';

create function parley_flow._p_checked_numbers(filter jsonb, condition text) returns bigint[]
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if not filter ? condition then
    return null;
  elsif jsonb_typeof(filter -> condition) <> 'array' then
    found := parley_flow._p_raise('filter value', condition, 'It is no array of numbers.');
  end if;
  return array(select e.value::bigint from jsonb_array_elements_text(filter -> condition) as e (value));
exception
  when invalid_text_representation or numeric_value_out_of_range then
    found := parley_flow._p_raise('filter value', condition, left(filter ->> condition, 100));
    return null;
end
$$;

comment on function parley_flow._p_checked_numbers(jsonb, text) is
'Gives the numbers of a condition; null when there is none.
Errors: PF010.';

create function parley_flow._p_require_filter(filter jsonb) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_condition text;
begin
  if jsonb_typeof(filter) is distinct from 'object' then
    found := parley_flow._p_raise('filter', coalesce(left(filter::text, 100), 'null'));
  end if;
  select k.key into v_condition
  from jsonb_each(filter) as k
  where k.key <> all (parley_flow._p_conditions()) or k.value = 'null'
  limit 1;
  if found then
    found := parley_flow._p_raise(
      'condition', v_condition, array_to_string(parley_flow._p_conditions(), ', ')
    );
  end if;
  if filter ? 'is_resumable' and jsonb_typeof(filter -> 'is_resumable') <> 'boolean' then
    found := parley_flow._p_raise('filter value', 'is_resumable', 'It is true or false.');
  elsif filter ? 'property' <> filter ? 'value' then
    found := parley_flow._p_raise('filter value', 'property', 'Give property and value together.');
  end if;
  return true;
end
$$;

comment on function parley_flow._p_require_filter(jsonb) is
'Refuses what is no filter of suspended messages.
Errors: PF010.';

create function parley_flow._p_matching(filter jsonb, applications text[], after bigint, top integer)
returns setof parley_flow._p_suspended
language plpgsql stable
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
  v_suspensions constant bigint[] := parley_flow._p_checked_numbers(filter, 'suspensions');
  v_messages constant bigint[] := parley_flow._p_checked_numbers(filter, 'messages');
  v_before constant timestamptz := parley_flow._p_checked_interval(filter, 'older');
  v_from constant timestamptz := parley_flow._p_checked_interval(filter, 'newer');
  v_cause constant bigint[] := case
    when filter ? 'cause' then parley_flow._p_checked_numbers(jsonb_build_object('cause', jsonb_build_array(
      filter -> 'cause'
    )), 'cause')
  end;
begin
  found := parley_flow._p_require_filter(filter);
  -- Only conditions that are given are asked for, so that the planner finds the index for them.
  return query execute format(
    -- The name of a lane may have the key in it.
    'select u.suspension_id, u.message_id, u.stage, u.application, u.receive_port, u.location, u.send_port, u.code, '
      'u.error, u.is_resumable, u.attempts, parley_flow._p_shown_key(u.send_port, u.order_key), u.system, '
      'case when u.lane is not null then u.send_port end, u.message_type, u.size, u.cause_id, u.suspended_at '
      'from parley_flow._p_suspended as u where u.suspension_id > coalesce($3, 0)%s '
      'order by u.suspension_id limit $4',
    (
      select string_agg(format(' and %s', c.condition), '' order by c.n)
      from (values
        (1, applications = array['*'], 'true'),
        (2, applications is distinct from array['*'], 'u.application = any ($2)'),
        (3, filter ? 'suspensions', 'u.suspension_id = any ($5)'),
        (4, filter ? 'messages', 'u.message_id = any ($6)'),
        (5, filter ? 'application', $c$u.application = $1 ->> 'application'$c$),
        (6, filter ? 'receive_port', $c$u.receive_port = $1 ->> 'receive_port'$c$),
        (7, filter ? 'location', $c$u.location = $1 ->> 'location'$c$),
        (8, filter ? 'send_port', $c$u.send_port = $1 ->> 'send_port'$c$),
        (9, filter ? 'stage', $c$u.stage = upper(($1 ->> 'stage') collate "C")$c$),
        (10, filter ? 'code', $c$u.code = $1 ->> 'code'$c$),
        (11, filter ? 'error', $c$strpos(u.error, $1 ->> 'error') > 0$c$),
        (12, filter ? 'message_type', $c$u.message_type = $1 ->> 'message_type'$c$),
        (13, filter ? 'is_resumable', $c$u.is_resumable = ($1 -> 'is_resumable')::boolean$c$),
        (14, filter ? 'older', 'u.suspended_at < $7'),
        (15, filter ? 'newer', 'u.suspended_at >= $8'),
        (16, filter ? 'order_key', $c$parley_flow._p_shown_key(u.send_port, u.order_key) = $1 ->> 'order_key'$c$),
        (17, filter ? 'cause', 'u.cause_id = $9'),
        (18, filter ? 'property', $c$exists (
          select
          from parley_flow._p_message as m
          where m.message_id = u.message_id
            and coalesce(m.promoted ->> ($1 ->> 'property'), m.written ->> ($1 ->> 'property')) = $1 ->> 'value'
            and not exists (
              select from parley_flow._p_property as y where y.name = $1 ->> 'property' and y.is_sensitive
            )
        )$c$),
        (19, filter ? 'host', $c$exists (
          select
          from parley_flow._p_host as h
          where h.name = $1 ->> 'host' and h.host_id in (
            select s.host_id from parley_flow._p_send_port as s where s.name = u.send_port
            union all
            select l.host_id from parley_flow._p_receive_location as l where l.name = u.location and u.send_port is null
          )
        )$c$)
      ) as c (n, is_given, condition)
      where c.is_given
    )
  )
  using filter, applications, after, top, v_suspensions, v_messages, v_before, v_from, v_cause[1];
end
$$;

comment on function parley_flow._p_matching(jsonb, text[], bigint, integer) is
'Gives the suspended messages that a filter matches, the oldest first, as operators may see them: order_key as
_p_shown_key gives it, lane as the name of the port.
Arguments: filter; applications, that the caller may see, {*} for all; after, the last one that was seen; top.
Errors: PF010.';
