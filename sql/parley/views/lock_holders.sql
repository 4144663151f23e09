-- The sessions that hold a row: for views of locks on conversation groups.
--
-- A locked row has the number of a transaction, and pg_locks shows to which session a running transaction belongs. Two
-- cases need more. A subtransaction that was released, such as a savepoint or the block of a function with an EXCEPTION
-- clause, keeps its row locks and is in no list any more. Its session is one of those that have locked rows of the
-- table and whose transaction is older. A prepared transaction has no session, but a name.
-- Locks: none. Cost: one read of the lock table, and a look-up for each transaction.

create function parley._p_lock_holders(transaction_ids xid[]) returns table (
  transaction_id xid, pid integer, prepared text, candidates integer[]
)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_known record;
begin
  for v_known in
    with held as materialized (
      select l.locktype, l.transactionid, l.virtualtransaction, l.pid
      from pg_locks as l
      where l.granted
        and (
          (l.locktype = 'transactionid' and l.mode = 'ExclusiveLock')
          or (
            l.locktype = 'relation'
            and l.relation = 'parley._p_conversation_group'::regclass
            and l.database = (select d.oid from pg_database as d where d.datname = current_database())
            and l.mode in ('RowShareLock', 'RowExclusiveLock')
          )
        )
    ), direct as (
      select h.transactionid, h.virtualtransaction, h.pid from held as h where h.locktype = 'transactionid'
    ), owner as (
      select u.id, o.virtualtransaction, o.pid
      from unnest(transaction_ids) as u (id)
      join lateral (
        select d.virtualtransaction, d.pid from direct as d where d.transactionid = u.id
        union
        select d.virtualtransaction, d.pid
        from direct as d
        where not exists (select from direct as s where s.transactionid = u.id)
          and (u.id::text::bigint - d.transactionid::text::bigint) & 4294967295 < 2147483648
          and exists (
            select from held as r where r.locktype = 'relation' and r.virtualtransaction = d.virtualtransaction
          )
      ) as o on true
    ), known as (
      select o.id::text as id, array_agg(distinct o.pid order by o.pid) filter (where o.pid is not null) as pids,
        array_agg(distinct x.gid) filter (where x.gid is not null) as gids,
        count(distinct o.virtualtransaction) as owners
      from owner as o
      left join direct as t on t.virtualtransaction = o.virtualtransaction and o.pid is null
      left join pg_prepared_xacts as x on x.transaction = t.transactionid
      group by o.id::text
    )
    select u.id, case when k.owners = 1 then k.pids[1] end as pid, case when k.owners = 1 then k.gids[1] end as gid,
      case when k.owners > 1 then coalesce(k.pids, '{}') end as candidates,
      exists (select from direct as d where d.transactionid = u.id) as is_listed
    from unnest(transaction_ids) as u (id)
    left join known as k on k.id = u.id::text
  loop
    -- Asked after the locks were read: what is in no list has begun and released a subtransaction, or has ended.
    continue when not v_known.is_listed and not parley._p_is_running(v_known.id);
    transaction_id := v_known.id;
    pid := v_known.pid;
    prepared := v_known.gid;
    candidates := v_known.candidates;
    return next;
  end loop;
end
$$;

comment on function parley._p_lock_holders(xid[]) is
'Gives who holds rows of conversation groups that have these numbers in xmax: the process id of the session, or the name
of the prepared transaction. Where a subtransaction has locked it and was released, candidates are the process ids of
the sessions one of which it is, when several are possible. A transaction that has ended is left out.
Arguments: transaction_ids.';
