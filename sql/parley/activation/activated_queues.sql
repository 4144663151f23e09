-- Which queues have activation on, and what the daemon is to start for them; and how it learns of changes.

create function parley._p_procedure_call(name text) returns text
language sql stable
set search_path = pg_catalog, pg_temp
-- The daemon and the reader compare it, and their sessions may differ in this.
set quote_all_identifiers = off
as $$
  select format('%I.%I()', n.nspname, p.proname)
  from pg_proc as p
  join pg_namespace as n on n.oid = p.pronamespace
  where p.oid = parley._p_activation_procedure(_p_procedure_call.name)
$$;

comment on function parley._p_procedure_call(text) is
'Gives an activation procedure as CALL takes it, so a name and nothing else; null when it is gone.
Arguments: name, as a queue has it.';

create function parley._p_activated_queues() returns table (
  queue_id integer, name text, max_readers integer, min_readers integer, kind text, procedure_call text,
  procedure_name text, execute_as text, external jsonb, version text, refusal text
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
    parley._p_procedure_call(q.activation_procedure),
    q.activation_procedure,
    r.rolname::text,
    null::jsonb,
    concat_ws(' ', q.modify_date::text, p.oid::text, p.xmin::text, r.rolname::text, f.refusal),
    f.refusal
  from parley._p_queue as q
  left join pg_proc as p on p.oid = parley._p_activation_procedure(q.activation_procedure)
  left join pg_roles as r on r.oid = parley._p_execute_as(q.execute_as, q.owner)
  cross join lateral (select parley._p_acting_refusal(q) as refusal) as f
  where q.is_activation_enabled
    and q.readers_paused_at is null
    and (select b.is_broker_enabled from parley._p_broker as b)
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
    concat_ws(
      ' ', q.modify_date::text, x.kind, x.min_readers::text, x.max_readers::text, md5(x.definition::text), f.refusal
    ),
    f.refusal
  from parley._p_external_readers() as x
  left join parley._p_external_activation as e on e.queue_id = x.queue_id and x.kind in ('program', 'webhook')
  left join lateral (select parley._p_external_refusal(e) as refusal where e.queue_id is not null) as f on true
  join parley._p_queue as q on q.queue_id = x.queue_id
  where q.readers_paused_at is null and (select b.is_broker_enabled from parley._p_broker as b)
$$;

comment on function parley._p_activated_queues() is
'Gives the queues with activation on, in an enabled broker, and the reader to start for each. procedure_call is null
when the procedure is gone, execute_as when the role is. refusal says why nothing may be started: the role that set
the procedure could not do it itself, or the procedure belongs to another role by now. version changes whenever the
definition does, that of the procedure included.';

create function parley._p_reader_refusal(queue_id integer) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case
    -- A procedure that is made anew between this and the call has not been checked.
    when parley._p_activation_procedure(q.activation_procedure) is null
      then format('the procedure %s does not exist', q.activation_procedure)
    else parley._p_acting_refusal(q)
  end
  from parley._p_queue as q
  where q.queue_id = _p_reader_refusal.queue_id and q.is_activation_enabled
  union all
  select parley._p_external_refusal(a)
  from parley._p_external_activation as a
  where a.queue_id = _p_reader_refusal.queue_id and a.is_enabled
$$;

comment on function parley._p_reader_refusal(integer) is
'Says why no reader of a queue may be started now; null when one may.';

create function parley._p_notify_daemon() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if tg_op <> 'UPDATE' or new *<> old then
    perform parley._p_notify('parley', 'queues');
  end if;
  return null;
end
$$;

comment on function parley._p_notify_daemon() is
'Notifies the daemons that a row of what they work by has changed.';

create trigger _p_notify_daemon after insert or update or delete on parley._p_queue
for each row execute function parley._p_notify_daemon();

create trigger _p_notify_daemon after insert or update or delete on parley._p_external_activation
for each row execute function parley._p_notify_daemon();

create trigger _p_notify_daemon after insert or delete on parley._p_event_notification
for each row execute function parley._p_notify_daemon();

create trigger _p_notify_daemon after update on parley._p_broker
for each row execute function parley._p_notify_daemon();
