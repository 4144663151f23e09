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
  return query
  select *
  from parley_flow._p_suspended as u
  where u.suspension_id > coalesce(after, 0)
    and (applications = array['*'] or u.application = any (applications))
    and (v_suspensions is null or u.suspension_id = any (v_suspensions))
    and (v_messages is null or u.message_id = any (v_messages))
    and (not filter ? 'application' or u.application = filter ->> 'application')
    and (not filter ? 'receive_port' or u.receive_port = filter ->> 'receive_port')
    and (not filter ? 'location' or u.location = filter ->> 'location')
    and (not filter ? 'send_port' or u.send_port = filter ->> 'send_port')
    and (not filter ? 'stage' or u.stage = upper((filter ->> 'stage') collate "C"))
    and (not filter ? 'code' or u.code = filter ->> 'code')
    and (not filter ? 'error' or strpos(u.error, filter ->> 'error') > 0)
    and (not filter ? 'message_type' or u.message_type = filter ->> 'message_type')
    and (not filter ? 'is_resumable' or u.is_resumable = (filter -> 'is_resumable')::boolean)
    and (v_before is null or u.suspended_at < v_before)
    and (v_from is null or u.suspended_at >= v_from)
    and (not filter ? 'order_key' or u.order_key = filter ->> 'order_key')
    and (v_cause is null or u.cause_id = v_cause[1])
    and (not filter ? 'property' or exists (
      select
      from parley_flow._p_message as m
      where m.message_id = u.message_id
        and coalesce(m.promoted ->> (filter ->> 'property'), m.written ->> (filter ->> 'property')) = filter ->> 'value'
        and not exists (
          select from parley_flow._p_property as y where y.name = filter ->> 'property' and y.is_sensitive
        )
    ))
    and (not filter ? 'host' or exists (
      select
      from parley_flow._p_host as h
      where h.name = filter ->> 'host' and h.host_id in (
        select s.host_id from parley_flow._p_send_port as s where s.name = u.send_port
        union all
        select l.host_id from parley_flow._p_receive_location as l where l.name = u.location and u.send_port is null
      )
    ))
  order by u.suspension_id
  limit top;
end
$$;

comment on function parley_flow._p_matching(jsonb, text[], bigint, integer) is
'Gives the suspended messages that a filter matches, the oldest first.
Arguments: filter; applications, that the caller may see, {*} for all; after, the last one that was seen; top.
Errors: PF010.';
