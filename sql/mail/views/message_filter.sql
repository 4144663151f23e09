-- Which messages: the conditions by which operators choose them (spec mail 17).
--
-- A filter is a JSON object whose conditions must all hold; {} is every message that waits. A key that is not known is
-- refused, because it would match too much. docs/mail/operations.md lists them. Every column of parley_mail.messages is
-- a condition as well (views/conditions.sql).

create type parley_mail._p_filter as (
  queue text,
  messages bigint[],
  statuses text[],
  sender text,
  recipient text,
  subject text,
  tag text,
  error text,
  source text,
  priority smallint,
  before timestamptz,
  larger bigint,
  attempts integer,
  conditions parley_mail._p_condition[]
);

comment on type parley_mail._p_filter is
'A filter as it is compared: texts are patterns of LIKE in lower case with ! before what stands for itself; before: came
earlier than that; conditions, on any property. Null: no condition.';

create function parley_mail._p_message_properties() returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select '{"message_id": "number", "queue": "text",
    "status": ["READY", "ACTIVE", "RETRY", "SUSPENDED", "PENDING_SUSPEND", "PENDING_REMOVE", "SCHEDULED"],
    "sender": "text", "recipient_count": "number", "subject": "text", "size": "size",
    "priority": ["HIGH", "NORMAL", "LOW"],
    "source": ["SMTP", "SQL", "HTTP", "PICKUP", "REPLAY", "DSN"], "tag": "text", "attempts": "number",
    "next_attempt_at": "time", "last_error": "text", "reason": "text", "received_at": "time", "expires_at": "time",
    "network_message_id": "text", "header_message_id": "text", "parent_message_id": "number",
    "submitted_by": "text"}'::jsonb
$$;

comment on function parley_mail._p_message_properties() is
'Gives the columns of parley_mail.messages with their types, as _p_parsed_conditions has them, but recipients, for which
there is a condition.';

create function parley_mail._p_own_conditions() returns text[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select array[
    'queue', 'messages', 'status', 'sender', 'recipient', 'subject', 'tag', 'error', 'source', 'priority', 'older',
    'larger', 'attempts', 'not'
  ]
$$;

comment on function parley_mail._p_own_conditions() is
'Gives the keys of a filter of messages whose plain values have a meaning of their own.';

create function parley_mail._p_require_properties(filter jsonb, properties jsonb, others text[]) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_key text;
begin
  if jsonb_typeof(filter) is distinct from 'object' then
    found := parley_mail._p_raise('filter', coalesce(filter::text, 'null'));
  end if;
  select k.key into v_key
  from jsonb_each(filter) as k
  where not (k.key = any (others) or properties ? k.key) or jsonb_typeof(k.value) = 'null'
    or k.key <> 'not' and k.value = '{}'
  order by 1
  limit 1;
  if found then
    found := parley_mail._p_raise('condition', v_key, (
      select string_agg(n.name, ', ') from (
        select o.name from unnest(others) as o (name)
        union
        select p.name from jsonb_object_keys(properties) as p (name)
        order by 1
      ) as n
    ));
  end if;
  return true;
end
$$;

comment on function parley_mail._p_require_properties(jsonb, jsonb, text[]) is
'Refuses a filter that is no object, or has a condition that is not known or null.
Arguments: filter; properties, with their types; others, the conditions beside them.
Errors: PM010.';

create function parley_mail._p_like(pattern text) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select replace(replace(replace(replace(lower(pattern), '!', '!!'), '%', '!%'), '_', '!_'), '*', '%')
$$;

comment on function parley_mail._p_like(text) is 'Gives a pattern in which * stands for anything as LIKE has it.';

create function parley_mail._p_listed(value jsonb) returns text[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case jsonb_typeof(value)
    when 'array' then array(select e.value from jsonb_array_elements_text(value) as e (value))
    else array[value #>> '{}']
  end
$$;

comment on function parley_mail._p_listed(jsonb) is 'Gives the texts of a condition that is one or a list.';

create function parley_mail._p_require_conditions(filter jsonb) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_properties constant jsonb := parley_mail._p_message_properties();
  v_key text;
begin
  found := parley_mail._p_require_properties(filter, v_properties, parley_mail._p_own_conditions());
  select k.key into v_key
  from jsonb_each(filter) as k
  where jsonb_typeof(k.value) = 'object' and k.key <> 'not' and not v_properties ? k.key
  order by 1
  limit 1;
  if found then
    found := parley_mail._p_raise('filter value', format('%s has a value, and no comparisons.', v_key));
  end if;
  if filter -> 'not' ? 'not' then
    found := parley_mail._p_raise('condition', 'not', 'not once');
  end if;
  -- A status, of which there may be several, and a priority are no patterns.
  perform parley_mail._p_require_known(
    k.key, v.value, parley_mail._p_like(case k.key when 'source' then v.value else translate(v.value, '*', '?') end),
    v_properties -> k.key
  )
  from jsonb_each(filter) as k
  cross join unnest(
    case k.key when 'status' then parley_mail._p_listed(k.value) else array[k.value #>> '{}'] end
  ) as v (value)
  where jsonb_typeof(v_properties -> k.key) = 'array' and jsonb_typeof(k.value) <> 'object'
  order by k.key;
  return true;
end
$$;

comment on function parley_mail._p_require_conditions(jsonb) is
'Refuses a filter that is no object, or has a condition that is not known or null.
Errors: PM010.';

create function parley_mail._p_parsed_filter(filter jsonb) returns parley_mail._p_filter
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_filter parley_mail._p_filter;
begin
  found := parley_mail._p_require_conditions(filter);
  v_filter.conditions := parley_mail._p_parsed_conditions(
    (
      select jsonb_object_agg(f.key, f.value)
      from jsonb_each(filter) as f
      where f.key <> all (parley_mail._p_own_conditions()) or jsonb_typeof(f.value) = 'object' and f.key <> 'not'
    ),
    parley_mail._p_message_properties()
  );
  -- From here on the conditions that have a meaning of their own.
  filter := (
    select coalesce(jsonb_object_agg(f.key, f.value), '{}')
    from jsonb_each(filter) as f
    where jsonb_typeof(f.value) <> 'object'
  );
  v_filter.queue := parley_mail._p_like(parley_mail._p_queue_named(filter ->> 'queue'));
  v_filter.sender := parley_mail._p_like(filter ->> 'sender');
  v_filter.recipient := parley_mail._p_like(filter ->> 'recipient');
  v_filter.subject := parley_mail._p_like(filter ->> 'subject');
  v_filter.tag := parley_mail._p_like(filter ->> 'tag');
  v_filter.error := '%' || parley_mail._p_like(filter ->> 'error') || '%';
  v_filter.source := parley_mail._p_like(filter ->> 'source');
  v_filter.statuses := case
    when filter ? 'status' then parley_mail._p_listed(upper(((filter -> 'status')::text) collate "C")::jsonb)
  end;
  v_filter.priority := array_position(array['HIGH', 'NORMAL', 'LOW'], upper((filter ->> 'priority') collate "C")) - 1;
  begin
    v_filter.messages := case when filter ? 'messages' then parley_mail._p_listed(filter -> 'messages')::bigint[] end;
    v_filter.before := clock_timestamp() - (filter ->> 'older')::interval;
    v_filter.larger := parley_mail._p_bytes(filter ->> 'larger');
    v_filter.attempts := (filter ->> 'attempts')::integer;
  exception
    when data_exception then
      found := parley_mail._p_raise('filter value', sqlerrm);
  end;
  return v_filter;
end
$$;

comment on function parley_mail._p_parsed_filter(jsonb) is
'Reads a filter.
Errors: PM010 malformed.';
