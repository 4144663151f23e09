-- The messages of simple queues that fail: the last error of each, and when a web address gets it again.
--
-- A row is there for few messages, for a day at most unless the message is set aside or waits for a delivery. It is
-- written outside of the transaction that failed, and TAKE reads none of it. Only deliveries to programs outside of the
-- database (activation/refused_messages.sql) and views for people read it.
-- Rows of messages that are gone are removed a little later, by the next failure in their queue.

create table parley._p_message_failure (
  queue_id integer not null references parley._p_queue on delete cascade,
  position bigint not null,
  key_id bigint not null,
  failed_at timestamptz not null,
  sqlstate text,
  error text not null,
  answer text,
  -- Of deliveries alone.
  failures integer not null default 0,
  attempts integer not null default 0,
  retry_at timestamptz,
  primary key (queue_id, position)
);

comment on table parley._p_message_failure is
'The last failure of messages of simple queues. A message that is delivered to a web address is not delivered before
retry_at.';

create index on parley._p_message_failure (queue_id, key_id);
create index on parley._p_message_failure (queue_id, failed_at);

create function parley._p_key_of_message(queue_id integer, "position" bigint) returns bigint
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select m.endpoint_id
  from parley._p_message as m
  where m.position = $2
    and m.lane in (
      select * from parley._p_lanes($1)
      union all
      select parley._p_set_aside_lane($1)
    )
$$;

comment on function parley._p_key_of_message(integer, bigint) is
'Gives the endpoint_id of a message of a simple queue, also of one that is set aside; null when it is not there.';

create function parley._p_remove_old_failures(queue_id integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set jit = off
as $$
begin
  -- Each failure of a queue comes here: so the oldest alone are asked, without a function, and a row that stays is not
  -- locked.
  with over as materialized (
    select o.position, o.failed_at
    from (
      select n.position, n.key_id, n.failures, n.failed_at
      from parley._p_message_failure as n
      where n.queue_id = $1
      order by n.failed_at
      limit 100
    ) as o
    -- The order keeps to the index: statistics of one large backlog make a plain EXISTS read the whole table.
    where (
        select m.position
        from parley._p_message as m
        where m.endpoint_id = o.key_id and m.position = o.position
        order by m.position
        limit 1
      ) is null
      or o.failures = 0
        and o.failed_at < clock_timestamp() - interval '1 day'
        and not exists (
          select from parley._p_set_aside_message as s where s.queue_id = $1 and s.position = o.position
        )
        and not exists (
          select from parley._p_message_wait as w where w.queue_id = $1 and w.position = o.position
        )
  )
  delete from parley._p_message_failure as f
  where f.queue_id = $1
    and f.position in (
      select l.position
      from over as v
      -- One that failed again in the meantime stays.
      join parley._p_message_failure as l on l.queue_id = $1 and l.position = v.position and l.failed_at = v.failed_at
      for update of l skip locked
    );
end
$$;

comment on function parley._p_remove_old_failures(integer) is
'Removes the failures of messages that are gone, of the oldest 100 of a queue, and reports that are older than a day.';
