-- The sessions that wait inside a statement for messages of a queue, as the server shows them.
--
-- Of those that wait by turns (receive/turns.sql) one sleeps and holds the lock of the turn. The others wait for it.
-- Those that wait alone (receive/wait_for_message.sql) sleep, and hold a lock on the sequence that they watch.
-- Cost: the server's list of locks.

create view parley._p_waiting_session as
select l.pid, q.queue_id
from pg_catalog.pg_locks as l
join pg_catalog.pg_database as d on d.oid = l.database and d.datname = current_database()
join parley._p_queue as q on q.position_sequence = l.relation
join pg_catalog.pg_stat_activity as a using (pid)
where l.locktype = 'relation' and l.mode = 'RowExclusiveLock' and l.granted and a.wait_event = 'PgSleep'
union
select l.pid, q.queue_id
from pg_catalog.pg_locks as l
join pg_catalog.pg_database as d on d.oid = l.database and d.datname = current_database()
join pg_catalog.pg_stat_activity as a using (pid)
join parley._p_queue as q on hashtextextended('parley turn', q.queue_id) = (l.classid::bigint << 32 | l.objid::bigint)
where l.locktype = 'advisory' and l.objsubid = 1 and (a.wait_event = 'PgSleep' or not l.granted);

comment on view parley._p_waiting_session is
'Sessions that wait inside a statement for messages of a queue, and the queue. A role that may not see the activity of
others finds its own.';
