-- Claims of conversation groups: the messages of a group are on their way to a web address, and no transaction is open.
--
-- A daemon that delivers (activation/deliveries.sql) claims, commits, delivers, and records the outcome in a second
-- transaction. In between a row here stands for the lock of the group, for as long as its lease lasts. The holder
-- renews the lease. When a daemon dies the lease runs out, and the group is free again.
--
-- Invariants, and what keeps each:
--   nobody receives from a claimed group   a claim is made with the row of the group locked. Each search for a group
--     asks for claims before it locks, and after that in a new statement.
--   the short way of RECEIVE, which asks for none, meets no claimed group   the claim makes all sides in the group not
--     plain, and RECEIVE reads that with the lock held. They stay so.
--   a reader with a snapshot from before the claim does not receive beside it   the claim updates the row of the
--     group and changes nothing in it: such a reader gets 40001 when it locks that.
--   an outcome is recorded by the holder alone   the number of the claim, compared with the group locked
-- RECEIVE in all its forms and GET CONVERSATION GROUP pass a claimed group by, as a locked one. RECEIVE of a named
-- group without a time-out, and MOVE, wait. END and timers do not: they change nothing that another reader could
-- receive.
-- Locks: group rows, then claims. Cost: a claim is written twice for each delivery; queues without webhooks have none,
-- and _p_queue.has_deliveries says so to their readers.

create table parley._p_delivery_claim (
  group_id bigint primary key,
  queue_id integer not null references parley._p_queue on delete cascade,
  claim uuid not null,
  claimed_by text not null,
  claimed_at timestamptz not null,
  leased_until timestamptz not null
);

comment on table parley._p_delivery_claim is
'Conversation groups whose messages are being delivered to a web address, by whom, and until when they are not free.';

create index on parley._p_delivery_claim (queue_id);

create function parley._p_is_claimed(group_id bigint) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (
    select
    from parley._p_delivery_claim as c
    where c.group_id = _p_is_claimed.group_id and c.leased_until > clock_timestamp()
  );
end
$$;

comment on function parley._p_is_claimed(bigint) is
'Reports whether messages of a group are being delivered, so that nobody else may receive them.';

create function parley._p_is_receivable(endpoint_id bigint, group_id bigint) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return not exists (select from parley._p_set_aside as s where s.endpoint_id = _p_is_receivable.endpoint_id)
    and not exists (
      select
      from parley._p_delivery_claim as c
      where c.group_id = _p_is_receivable.group_id and c.leased_until > clock_timestamp()
    );
end
$$;

comment on function parley._p_is_receivable(bigint, bigint) is
'Reports whether a reader may receive from a side of a conversation that is not plain: it is not set aside, and its
group is not claimed.';

create function parley._p_lock_unclaimed(groups bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  for v_try in 1 .. 2147483647 loop
    -- The block gives the locks back when there is a claim. Its holder needs them to record, and while he has them the
    -- server sees for whom we wait.
    begin
      perform from parley._p_conversation_group as g where g.group_id = any (groups) order by g.group_id for update;
      if not exists (
        select
        from parley._p_delivery_claim as c
        where c.group_id = any (groups) and c.leased_until > clock_timestamp()
      ) then
        return;
      end if;
      raise exception 'claimed' using errcode = 'PB003';
    exception
      when sqlstate 'PB003' then
        null;
    end;
    perform pg_sleep(case when v_try < 100 then 0.01 else 0.1 end);
  end loop;
end
$$;

comment on function parley._p_lock_unclaimed(bigint[]) is
'Locks groups in their order, waiting for their holders, and until none of them is being delivered.
Arguments: groups, of which no lock of this transaction is older than their claims.';
