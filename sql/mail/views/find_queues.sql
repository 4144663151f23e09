-- Which queues: a list by filter and page (spec mail 17).

create function parley_mail._p_queue_properties() returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select '{"queue": "text", "connector": "text", "next_hop": "text",
    "status": ["ACTIVE", "CONNECTING", "READY", "RETRY", "SUSPENDED"],
    "messages": "number", "deferred": "number", "next_retry_at": "time", "failing_since": "time", "failures": "number",
    "last_error": "text", "suspended_for": "text", "oldest_at": "time", "bytes": "size", "high": "number",
    "normal": "number", "low": "number", "incoming_rate": "number", "outgoing_rate": "number", "velocity": "number",
    "connections": "number", "max_connections": "number", "succeeded_at": "time"}'::jsonb
    || jsonb_build_object('delivery_type', jsonb_agg(k.kind order by k.ordinal))
  from parley_mail._p_delivery_kind as k
$$;

comment on function parley_mail._p_queue_properties() is
'Gives the columns of parley_mail.queues with their types, as _p_parsed_conditions has them.';

create function parley_mail.find_queues(
  filter jsonb default '{}', top integer default 1000, after text default null, sort text default null,
  caller parley.caller default parley.current_caller()
) returns setof parley_mail.queues
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_is parley_mail._p_condition[];
  v_not parley_mail._p_condition[];
  v_sort parley_mail._p_sort;
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'VIEW');
  found := parley_mail._p_require_top(top);
  found := parley_mail._p_require_properties(filter, parley_mail._p_queue_properties(), array['not']);
  v_is := parley_mail._p_parsed_conditions(filter, parley_mail._p_queue_properties());
  if filter ? 'not' then
    found := parley_mail._p_require_properties(filter -> 'not', parley_mail._p_queue_properties(), '{}');
    v_not := parley_mail._p_parsed_conditions(filter -> 'not', parley_mail._p_queue_properties());
  end if;
  v_sort := parley_mail._p_parsed_sort(sort, after, parley_mail._p_queue_properties());
  return query
  select q.*
  from parley_mail.queues as q
  where (after is null or q.queue collate "C" > after collate "C")
    and (v_is is null and v_not is null or parley_mail._p_is_chosen(to_jsonb(q), v_is, v_not))
  order by
    case when sort is not null then parley_mail._p_sort_number(to_jsonb(q), v_sort) end nulls last,
    case when sort is not null then parley_mail._p_sort_text(to_jsonb(q), v_sort, false) end collate "C" nulls last,
    case when sort is not null then parley_mail._p_sort_text(to_jsonb(q), v_sort, true) end collate "C" desc nulls last,
    q.queue collate "C"
  limit top;
end
$$;

comment on function parley_mail.find_queues(jsonb, integer, text, text, parley.caller) is
'Gives queues that a filter matches, by name.
Arguments: filter, an object of conditions on the columns of parley_mail.queues as docs/mail/operations.md says; top,
how many at most; after, the name of the last one that was seen (null: from the beginning); sort, a column, with :desc
behind it for what is last first: then there is no after.
Errors: PM001 not allowed, PM010 malformed filter or sort.
Source: spec mail 17.';
