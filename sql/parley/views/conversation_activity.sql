-- The conversations at the heads of the queues, and the sessions that work with the broker: who waits, and for whom.

create function parley.conversation_activity(
  top integer default 100,
  caller parley.caller default parley.current_caller()
) returns table (
  conversation_handle uuid,
  conversation_group_id uuid,
  queue_name text,
  service_name text,
  far_service text,
  state text,
  waiting_messages bigint,
  is_more boolean,
  oldest_enqueue_time timestamptz,
  is_locked boolean,
  locked_by integer,
  locked_by_prepared text,
  locked_by_one_of integer[],
  claimed_by text,
  claimed_at timestamptz
)
language sql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
  select
    e.conversation_handle,
    g.conversation_group_id,
    q.lookup_name,
    e.service_name,
    e.far_service,
    e.state,
    coalesce(w.messages, 0),
    w.rows = 1000,
    c.oldest,
    c.is_locked,
    c.locked_by,
    c.locked_by_prepared,
    c.locked_by_one_of,
    c.claimed_by,
    c.claimed_at
  from (
    select h.queue_id, h.endpoint_id, h.group_id, h.position, h.oldest, h.is_locked, h.locked_by, h.locked_by_prepared,
      h.locked_by_one_of, h.claimed_by, h.claimed_at
    from parley._p_head_conversations(
      array(select q.queue_id from parley._p_queues_to_receive_from(parley._p_caller(caller)) as q), 100
    ) as h
    order by h.is_locked desc, h.oldest, h.endpoint_id
    limit case when parley._p_require_top(conversation_activity.top) then conversation_activity.top end
  ) as c
  join parley._p_queue as q on q.queue_id = c.queue_id
  join parley._p_endpoint as e on e.endpoint_id = c.endpoint_id
  join parley._p_conversation_group as g on g.group_id = c.group_id
  cross join lateral (
    select count(*) as rows, sum(r.messages)::bigint as messages
    from (
      select coalesce(cardinality(m.frame), 1) as messages
      from parley._p_message as m
      where m.endpoint_id = c.endpoint_id and m.position >= c.position
      limit 1000
    ) as r
  ) as w
  order by c.is_locked desc, c.oldest, c.endpoint_id
$$;

comment on function parley.conversation_activity(integer, parley.caller) is
'Shows which conversations stand at the heads of the queues that the caller may receive from: those that somebody
has locked or claimed first, then by age.
Columns: conversation_handle, conversation_group_id, queue_name, service_name, far_service, state; waiting_messages,
counted up to 1,000 rows, and is_more, whether there may be more; oldest_enqueue_time; is_locked, and locked_by, the
process id of the session that holds the group; locked_by_prepared, the name of the prepared transaction that does;
locked_by_one_of, the process ids of the sessions one of which does: it has locked the group in a subtransaction that it
has released, such as a savepoint, and PostgreSQL does not show whose that was; claimed_by, the session that has claimed
the group to deliver messages of it to a web address, and claimed_at, since when: no transaction holds such a group.
Arguments: top, at most so many.
Errors: 127 top negative, 42501 unknown caller.';

create view parley.broker_sessions as
select
  a.pid,
  a.usename::text as role_name,
  a.application_name,
  a.state,
  a.wait_event_type,
  a.wait_event,
  b.blocked_by,
  (
    select min(q.lookup_name)
    from parley._p_waiting_session as s
    join parley._p_queue as q using (queue_id)
    where s.pid = a.pid
  ) as waits_in_queue,
  extract(epoch from clock_timestamp() - a.xact_start)::double precision as transaction_seconds,
  extract(epoch from clock_timestamp() - a.state_change)::double precision as state_seconds,
  left(a.query, 500) as statement
from pg_catalog.pg_stat_activity as a
cross join lateral (
  select case when a.wait_event_type = 'Lock' then pg_catalog.pg_blocking_pids(a.pid) else '{}' end as blocked_by
) as b
where a.datname = current_database()
  and a.pid <> pg_catalog.pg_backend_pid()
  and a.pid in (
    select l.pid
    from pg_catalog.pg_locks as l
    join pg_catalog.pg_class as c on c.oid = l.relation
    where l.locktype = 'relation' and l.database = a.datid and c.relnamespace = 'parley'::regnamespace
  );

comment on view parley.broker_sessions is
'Sessions in whose transactions the broker was used, and whom they wait for. A role that may not see the activity
of others finds little of them.';
comment on column parley.broker_sessions.pid is 'Process id of the session.';
comment on column parley.broker_sessions.role_name is 'The role that has logged in.';
comment on column parley.broker_sessions.application_name is 'The name that the client gives itself.';
comment on column parley.broker_sessions.state is 'Such as active, or idle in transaction, as in pg_stat_activity.';
comment on column parley.broker_sessions.wait_event_type is
'The kind of thing that the session waits for, as in pg_stat_activity.';
comment on column parley.broker_sessions.wait_event is 'The thing that it waits for.';
comment on column parley.broker_sessions.blocked_by is
'Process ids of the sessions that hold the lock it waits for; empty when it waits for no lock.';
comment on column parley.broker_sessions.waits_in_queue is
'Queue in which the session waits for messages, inside RECEIVE or GET CONVERSATION GROUP.';
comment on column parley.broker_sessions.transaction_seconds is 'For how long its transaction has been open.';
comment on column parley.broker_sessions.state_seconds is 'For how long it has been in its state.';
comment on column parley.broker_sessions.statement is
'The statement that runs, or the last one that ran; 500 characters at most.';
