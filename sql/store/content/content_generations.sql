-- Generations: where the chunks of bodies stand, and how the space comes back.
--
-- Deleting chunks one by one would write each of them again into the log and leave it to vacuum. So the chunks stand in
-- a ring of eight tables, partitions of one, of which one is written. It is left for the next empty one after an hour,
-- and truncated when no body in it is left and no snapshot shows one there any more. A generation that is old and
-- nearly empty is emptied: the bodies that are still there move to the partition of the long-lived, slot 0, where they
-- are deleted one by one.
--
-- Why a ring of tables that are there from the beginning, and not partitions that come and go: to attach or to drop a
-- partition locks the parent, and so waits for every reader and stops every other. TRUNCATE locks the one partition,
-- which nobody writes and in which nothing is left to read; it does not wait, either, but tries again later. Nothing is
-- created at run time, and no role gets a right that it did not have.
--
-- Invariants, and what keeps each:
--   no body loses its chunks   a generation is truncated under its exclusive lock, after a statement that began after
--     that found no body in it; a body's row is inserted before its chunks, and who has inserted chunks and not
--     committed holds a lock
--   no snapshot loses them either   a table that is truncated is empty for all snapshots, also for one that was taken
--     before and waits for the lock. So a generation is truncated in a later transaction than the one that moved the
--     last body out of it, when no snapshot is left that is as old as that one. Two marks say so, one after the other:
--     left_by, the first transaction that finds another generation written: as long as a snapshot, or a transaction
--     that has written bodies, is as old, bodies may still come; and emptied_by, one that finds no body after that
--   a body is read while it is moved   both are one transaction, and readers ask for the body, not for the slot
-- A standby has snapshots that its primary does not know of: there a reader may find less than the body has. The reader
-- compares that (content_reading.sql).
-- Locks: the row of the ring (one at a time collects), a partition by trying, rows of _p_content for update.

do $$
begin
  for i in 0..8 loop
    execute format(
      'create table if not exists parley_store._p_content_chunk_%1$s partition of parley_store._p_content_chunk '
        'for values in (%1$s)', i
    );
    execute format('alter table parley_store._p_content_chunk_%s alter column body set storage external', i);
  end loop;
end
$$;

create table parley_store._p_content_generation (
  slot smallint primary key,
  opened_at timestamptz not null default clock_timestamp(),
  left_by xid8,
  emptied_by xid8
);

comment on table parley_store._p_content_generation is 'The ring of generations; the one opened last is written.';
comment on column parley_store._p_content_generation.left_by is
'A transaction that found another one written; null before that. Bodies come until all that were open then are over.';
comment on column parley_store._p_content_generation.emptied_by is
'A transaction that found no body in it, when no more could come; null before that.';

insert into parley_store._p_content_generation (slot, opened_at)
select g.n, case g.n when 1 then now() else '-infinity' end from generate_series(1, 8) as g (n);

create table parley_store._p_content_cursor (
  is_only boolean primary key default true check (is_only),
  collected_to bigint not null default 0
);

comment on table parley_store._p_content_cursor is
'One row: up to which body collect_content has checked. Its lock is held by who collects.';

insert into parley_store._p_content_cursor default values;

create function parley_store._p_current_slot() returns smallint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (select g.slot from parley_store._p_content_generation as g order by g.opened_at desc, g.slot limit 1);
end
$$;

comment on function parley_store._p_current_slot() is 'Gives the generation that is written now.';

create function parley_store._p_truncate_generation(slot smallint) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '100ms'
as $$
begin
  begin
    execute format('lock table parley_store._p_content_chunk_%s in access exclusive mode nowait', slot);
    if exists (select from parley_store._p_content as c where c.slot = _p_truncate_generation.slot) then
      -- Gives the lock back, for which all who read would wait to the end of this transaction.
      raise exception using errcode = 'lock_not_available', message = 'a body is in it';
    end if;
    -- Its TOAST table has locks of its own, such as that of autovacuum.
    execute format('truncate parley_store._p_content_chunk_%s', slot);
  exception
    when lock_not_available then
      return false;
  end;
  update parley_store._p_content_generation as g
  set opened_at = '-infinity', left_by = null, emptied_by = null
  where g.slot = _p_truncate_generation.slot;
  return true;
end
$$;

comment on function parley_store._p_truncate_generation(smallint) is
'Empties a generation in which no body is left; false when somebody has it in his hands, and then nothing is locked.
The caller has made sure that no snapshot shows a body in it.';

create function parley_store._p_open_as_of(mark xid8)
returns table (pid integer, prepared text, since timestamptz)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with writer as materialized (
    select l.pid, l.virtualtransaction
    from pg_locks as l
    where l.locktype = 'relation' and l.granted and l.mode = 'RowExclusiveLock'
      and l.database = (select d.oid from pg_database as d where d.datname = current_database())
      and l.relation = 'parley_store._p_content'::regclass
  )

  -- Autovacuum, which has no user, reads no bodies.
  select a.pid, null::text, a.xact_start
  from pg_stat_activity as a
  where a.datname = current_database() and a.usesysid is not null and a.pid <> pg_backend_pid()
    and (
      age(a.backend_xmin) >= age(mark::xid)
      or age(a.backend_xid) >= age(mark::xid) and exists (select from writer as w where w.pid = a.pid)
    )
  union all
  select null, x.gid, x.prepared
  from pg_prepared_xacts as x
  where x.database = current_database() and age(x.transaction) >= age(mark::xid)
    and exists (
      select from writer as w where w.pid is null and split_part(w.virtualtransaction, '/', 2) = x.transaction::text
    )
$$;

comment on function parley_store._p_open_as_of(xid8) is
'Gives who may not see what a transaction has done: sessions of this database with a snapshot that is as old, and
sessions and prepared transactions that have written bodies and are as old. Not those of standbys.
Arguments: mark, the transaction, one of this server and of the last two billion.';

create function parley_store._p_is_seen(mark xid8) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  -- Within a transaction PostgreSQL shows the sessions that it has shown before.
  perform pg_stat_clear_snapshot();
  return not exists (select from parley_store._p_open_as_of(mark) as o);
end
$$;

comment on function parley_store._p_is_seen(xid8) is
'Reports whether everybody sees what a transaction has done. The caller has seen its mark, and so that it is over.
Arguments: mark, as _p_open_as_of.';

create view parley_store.held_generations as
select g.slot as generation, g.opened_at, h.pid, h.prepared, coalesce(h.since, g.opened_at) as since
from parley_store._p_content_generation as g
cross join lateral (
  select l.pid, x.gid as prepared, coalesce(a.xact_start, x.prepared) as since
  from pg_locks as l
  left join pg_stat_activity as a on a.pid = l.pid
  left join pg_prepared_xacts as x on l.pid is null and x.transaction::text = split_part(l.virtualtransaction, '/', 2)
  where l.locktype = 'relation' and l.granted
    and l.database = (select d.oid from pg_database as d where d.datname = current_database())
    and l.relation = to_regclass('parley_store._p_content_chunk_' || g.slot)::oid
  union
  select o.pid, o.prepared, o.since
  from parley_store._p_open_as_of(coalesce(g.emptied_by, g.left_by)) as o
) as h
where g.slot <> parley_store._p_current_slot() and g.opened_at > '-infinity'
  and not exists (select from parley_store._p_content as c where c.slot = g.slot);

comment on view parley_store.held_generations is
'Generations of content that are not given back because a transaction stays open that has read or written in them, or
whose snapshot may show bodies there.
pid: its session; prepared: its name, when it is a prepared transaction; since: when it began, or the generation, where
PostgreSQL does not show that to the role.';

create function parley_store._p_empty_generation(slot smallint, bodies integer) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids bigint[];
begin
  select array_agg(c.content_id) into v_ids
  from (
    select o.content_id
    from parley_store._p_content as o
    where o.slot = _p_empty_generation.slot and o.begun_until is null
    order by o.content_id
    limit bodies
    for update skip locked
  ) as c;
  -- By its table, so that none of another generation is locked.
  execute format(
    'with moved as (delete from parley_store._p_content_chunk_%s as k where k.content_id = any ($1) '
      'returning k.content_id, k.number, k.body) '
      'insert into parley_store._p_content_chunk (content_id, number, slot, body) '
      'select m.content_id, m.number, 0, m.body from moved as m', slot
  ) using v_ids;
  update parley_store._p_content as c set slot = 0 where c.content_id = any (v_ids);
  return coalesce(cardinality(v_ids), 0);
end
$$;

comment on function parley_store._p_empty_generation(smallint, integer) is
'Moves some of the bodies that are left in a generation to the long-lived; gives how many.';

create function parley_store._p_collect_begun(bodies integer) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids bigint[];
begin
  select array_agg(c.content_id) into v_ids
  from (
    select o.content_id
    from parley_store._p_content as o
    where o.begun_until < clock_timestamp()
    order by o.begun_until
    limit bodies
    for update skip locked
  ) as c;
  delete from parley_store._p_content_reference as r where r.content_id = any (v_ids);
  return parley_store._p_remove_unreferenced(v_ids);
end
$$;

comment on function parley_store._p_collect_begun(integer) is
'Removes bodies that were begun and not finished in time.';

create function parley_store._p_collect_unreferenced(bodies integer) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_from bigint;
  v_to bigint;
  v_ids bigint[];
begin
  select c.collected_to into v_from from parley_store._p_content_cursor as c;
  select max(o.content_id) into v_to
  from (
    select c.content_id from parley_store._p_content as c where c.content_id > v_from order by c.content_id limit bodies
  ) as o;
  update parley_store._p_content_cursor set collected_to = coalesce(v_to, 0);
  select array_agg(c.content_id) into v_ids
  from (
    select o.content_id
    from parley_store._p_content as o
    where o.content_id > v_from and o.content_id <= v_to
      and not exists (select from parley_store._p_content_reference as r where r.content_id = o.content_id)
    order by o.content_id
    for update skip locked
  ) as c;
  return parley_store._p_remove_unreferenced(v_ids);
end
$$;

comment on function parley_store._p_collect_unreferenced(integer) is
'Checks the next bodies, in their order and from the front again at the end, and removes those to which nobody
refers.';

create function parley_store._p_give_back_generation(slot smallint) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_generation parley_store._p_content_generation;
begin
  select * into v_generation
  from parley_store._p_content_generation as g
  where g.slot = _p_give_back_generation.slot;
  -- In a copy of another server transactions have other numbers, and none that was open there is here.
  if (
    pg_current_xact_id()::text::bigint - coalesce(v_generation.emptied_by, v_generation.left_by)::text::bigint
    between 0 and 1000000000
  ) is not true then
    update parley_store._p_content_generation as g
    set left_by = pg_current_xact_id(), emptied_by = null
    where g.slot = v_generation.slot;
    return false;
  elsif exists (select from parley_store._p_content as c where c.slot = v_generation.slot) then
    update parley_store._p_content_generation as g
    set emptied_by = null
    where g.slot = v_generation.slot and g.emptied_by is not null;
    return false;
  elsif not parley_store._p_is_seen(coalesce(v_generation.emptied_by, v_generation.left_by)) then
    return false;
  elsif v_generation.emptied_by is not null then
    return parley_store._p_truncate_generation(v_generation.slot);
  end if;
  update parley_store._p_content_generation as g
  set emptied_by = pg_current_xact_id()
  where g.slot = v_generation.slot;
  return false;
end
$$;

comment on function parley_store._p_give_back_generation(smallint) is
'Takes the next step on the way of a generation that is not written any more: marks it, or empties it, and then gives
true. Each step is a transaction later than the one before; nothing is done while somebody may see a body in it.';

create function parley_store.collect_content(
  bodies integer default 10000, generation_age interval default '1 hour', straggler_age interval default '6 hours'
) returns table (removed integer, moved integer, generations_emptied integer)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_current smallint;
  v_slot smallint;
begin
  found := parley_store._p_require_range('bodies', bodies, 1, 1000000);
  found := parley_store._p_require_read_committed();
  removed := 0;
  moved := 0;
  generations_emptied := 0;
  perform from parley_store._p_content_cursor as c for update skip locked;
  if not found then
    return next;
    return;
  end if;
  removed := parley_store._p_collect_begun(bodies) + parley_store._p_collect_unreferenced(bodies);
  v_current := parley_store._p_current_slot();
  for v_slot in
    select g.slot
    from parley_store._p_content_generation as g
    where g.slot <> v_current and g.opened_at > '-infinity'
    order by g.opened_at
  loop
    if exists (
      select
      from parley_store._p_content_generation as g
      where g.slot = v_slot and g.opened_at < clock_timestamp() - straggler_age
    ) then
      moved := moved + parley_store._p_empty_generation(v_slot, greatest(bodies / 100, 1));
    end if;
    generations_emptied := generations_emptied + parley_store._p_give_back_generation(v_slot)::integer;
  end loop;
  -- The next empty one of the ring is written from now on; without any the present one goes on.
  update parley_store._p_content_generation as g
  set opened_at = clock_timestamp()
  where g.slot = (
    select o.slot from parley_store._p_content_generation as o where o.opened_at = '-infinity' order by o.slot limit 1
  ) and exists (
    select
    from parley_store._p_content_generation as o
    where o.slot = v_current and o.opened_at < clock_timestamp() - generation_age
  );
  return next;
end
$$;

comment on function parley_store.collect_content(integer, interval, interval) is
'Removes what nobody refers to and what was begun and not finished, gives the space of empty generations back, and
begins a new generation. It waits for nobody; one session at a time does it. Call it every minute or so: a generation is
given back by the third call after its last body has gone, or later, when transactions are over that may see one.
Arguments: bodies, how many to check, 1 to 1,000,000; generation_age, how long one is written; straggler_age, from
when on the bodies that are left in one are moved out of it.
Errors: PS002, PS009 not READ COMMITTED.';
