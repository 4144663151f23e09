-- Which queues have activation on, and what the daemon is to start for them; and how it learns of changes.

create function parley._p_activated_queues() returns table (
  queue_id integer, name text, max_readers integer, min_readers integer, kind text, procedure_call text, procedure_name text, execute_as text,
  external jsonb, version text
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select
    q.queue_id,
    q.lookup_name,
    q.max_readers,
    0,
    'procedure',
    -- Printed by the system, so it is a name and nothing else.
    p.oid::regprocedure::text,
    q.activation_procedure,
    r.rolname::text,
    null::jsonb,
    concat_ws(' ', q.modify_date::text, p.oid::text, p.xmin::text, r.rolname::text)
  from parley._p_queue as q
  left join pg_proc as p on p.oid = to_regproc(q.activation_procedure) and p.prokind = 'p' and p.pronargs = 0
  left join lateral (
    select a.rolname
    from pg_roles as a
    where case q.execute_as when 'OWNER' then a.oid = q.owner else q.execute_as in (a.rolname, quote_ident(a.rolname)) end
    order by q.execute_as = a.rolname desc
    limit 1
  ) as r on true
  where q.is_activation_enabled and (select b.is_broker_enabled from parley._p_broker as b)
  union all
  select
    q.queue_id,
    q.lookup_name,
    x.max_readers,
    x.min_readers,
    x.kind,
    null,
    null,
    null,
    x.definition,
    concat_ws(' ', q.modify_date::text, x.kind, x.min_readers::text, x.max_readers::text, md5(x.definition::text))
  from parley._p_external_readers() as x
  join parley._p_queue as q using (queue_id)
  where (select b.is_broker_enabled from parley._p_broker as b)
$$;

comment on function parley._p_activated_queues() is
'Gives the queues with activation on, in an enabled broker, and what to start for each. procedure_call is null when the procedure is gone, execute_as
when the role is. version changes whenever the definition does, that of the procedure included.';

create function parley._p_notify_daemon() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pg_notify('parley', 'queues');
  return null;
end
$$;

comment on function parley._p_notify_daemon() is 'Tells the daemons that what they work by has changed.';

create trigger _p_notify_daemon after insert or update or delete on parley._p_queue
for each statement execute function parley._p_notify_daemon();

create trigger _p_notify_daemon after insert or update or delete on parley._p_external_activation
for each statement execute function parley._p_notify_daemon();

create trigger _p_notify_daemon after insert or delete on parley._p_event_notification
for each statement execute function parley._p_notify_daemon();

create trigger _p_notify_daemon after update on parley._p_broker
for each statement execute function parley._p_notify_daemon();
