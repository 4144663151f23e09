-- Counters under the names that operators of mail know (spec mail 18): of queues, as the database has them, and of the
-- daemons, as they reported them last. Nothing is counted when they are read (store/work/lane_counts.sql).

create function parley_mail._p_queue_counters(caller parley.caller default parley.current_caller())
returns table (object text, counter text, instance text, value double precision, is_total boolean)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if not parley_mail._p_may_see_pressure(parley.caller_role(caller)) then
    return;
  end if;
  return query
  with lane as (
    select l.lane, l.status, w.items, w.incoming_rate, w.outgoing_rate, k.counter as kind
    from parley_store.lanes as l
    join parley_store.lane_counts as w using (lane_id)
    cross join parley_mail._p_parts_of_lane(l.lane) as p
    join parley_mail._p_delivery_kind as k on k.kind = p.kind
    where l.system in ('mail', 'mail_service')
  )

  select 'Queues', c.counter, '', coalesce(c.value, 0)::double precision, false
  from (
    select
      sum(l.items) filter (where l.kind in ('Remote', 'Mailbox', 'Non-Smtp')) as aggregate,
      sum(l.items) filter (where l.kind = 'Remote' and l.status <> 'RETRY') as active_remote,
      sum(l.items) filter (where l.kind = 'Mailbox' and l.status <> 'RETRY') as active_mailbox,
      sum(l.items) filter (where l.kind = 'Non-Smtp' and l.status <> 'RETRY') as active_other,
      sum(l.items) filter (where l.kind = 'Remote' and l.status = 'RETRY') as retry_remote,
      sum(l.items) filter (where l.kind = 'Mailbox' and l.status = 'RETRY') as retry_mailbox,
      sum(l.items) filter (where l.kind = 'Non-Smtp' and l.status = 'RETRY') as retry_other,
      max(l.items) filter (where l.kind in ('Remote', 'Mailbox', 'Non-Smtp')) as largest,
      sum(l.items) filter (where l.kind = 'Unreachable') as unreachable,
      sum(l.items) filter (where l.kind = 'Poison') as poison,
      -- Numbers are given in the order of arrival, nearly.
      (
        select extract(epoch from clock_timestamp() - m.received_at)
        from parley_mail._p_message as m
        order by m.message_id
        limit 1
      ) as oldest,
      sum(l.incoming_rate) as incoming, sum(l.outgoing_rate) as outgoing
    from lane as l
  ) as s
  cross join lateral (values
    ('Aggregate Delivery Queue Length', s.aggregate),
    ('Active Remote Delivery Queue Length', s.active_remote),
    ('Active Mailbox Delivery Queue Length', s.active_mailbox),
    ('Active Non-Smtp Delivery Queue Length', s.active_other),
    ('Retry Remote Delivery Queue Length', s.retry_remote),
    ('Retry Mailbox Delivery Queue Length', s.retry_mailbox),
    ('Retry Non-Smtp Delivery Queue Length', s.retry_other),
    ('Largest Delivery Queue Length', s.largest),
    ('Unreachable Queue Length', s.unreachable),
    ('Poison Queue Length', s.poison),
    ('Oldest Message Seconds', s.oldest),
    ('Items Queued For Delivery/sec', s.incoming),
    ('Items Completed Delivery/sec', s.outgoing)
  ) as c (counter, value)
  union all
  select 'Queues', 'Submission Queue Length', '',
    coalesce((select q.messages from parley_mail._p_submission_queue() as q), 0)::double precision, false;
end
$$;

comment on function parley_mail._p_queue_counters(parley.caller) is 'Gives what parley_mail.queue_counters shows.';

create view parley_mail.queue_counters as
select c.object, c.counter, c.instance, c.value, c.is_total from parley_mail._p_queue_counters() as c;

comment on view parley_mail.queue_counters is
'Lengths of queues, in messages, for who holds VIEW. Active is what waits for a next hop that is not in RETRY.';

create view parley_mail.performance_counters as
select null::text as node, c.object, c.counter, c.instance, c.value, c.is_total from parley_mail.queue_counters as c
union all
select d.name, c.object, c.counter, c.instance, c.value, coalesce(c.is_total, false)
from parley_mail._p_daemons() as d
cross join lateral jsonb_to_recordset(d.counters) as c (
  object text, counter text, instance text, value double precision, is_total boolean
)
where d.stopped_at is null and d.reported_at > clock_timestamp() - interval '1 minute';

comment on view parley_mail.performance_counters is
'Counters of mail, for who holds VIEW: node null, of the database; else what that daemon reported in the last seconds.
Columns: is_total, whether it only grows, as long as the daemon runs.';
