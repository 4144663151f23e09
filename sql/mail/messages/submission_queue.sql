-- The messages that wait to be categorized, in numbers and ages, for the view of queues, for pressure, counters and
-- findings.

create function parley_mail._p_submission_queue() returns table (
  messages bigint, bytes bigint
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if not exists (select from parley_mail._p_organization as o where o.is_set_up) then
    return;
  end if;
  -- An item is a message or several: how many, and how large, is what the first hundred show.
  return query
  select
    case when b.items <= s.items then s.messages else b.items * s.messages / nullif(s.items, 0) end::bigint,
    case when b.items <= s.items then s.bytes else b.items * s.bytes / nullif(s.items, 0) end::bigint
  from (
    select k.waiting_messages as items
    from parley.queue_backlogs('parley_mail_submission', caller => parley.current_caller()) as k
  ) as b
  cross join (
    select count(distinct p.message_id) as items, count(*) as messages, coalesce(sum(m.size), 0) as bytes
    from parley.peek_messages('parley_mail_submission', 100, caller => parley.current_caller()) as p
    cross join unnest(string_to_array(convert_from(p.body, 'UTF8'), ' ')::bigint[]) as i (id)
    join parley_mail._p_message as m on m.message_id = i.id
  ) as s;
end
$$;

comment on function parley_mail._p_submission_queue() is
'Gives how much waits to be categorized: exactly up to a hundred items of the queue, and beyond that an estimate.';
