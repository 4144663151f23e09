-- The end of deliveries, and of messages with the last of theirs.
--
-- A message with one delivery goes with it. When one has several, the session that ends a delivery records it, and
-- counts under a lock of the message. A session that cannot have the lock at once leaves the counting to maintenance
-- and waits for no other's commit. The holder of the lock sees all that was recorded by its earlier holders, so either
-- the last one counts all, or one of the last two has asked maintenance to.
-- Locks: rows of _p_message, by message_id, skip locked.

create function parley_flow._p_keep_of(port_id integer, send_port text) returns interval
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce((
    select (d.settings ->> 'keep_finished')::interval
    from parley_flow._p_definition as d
    where d.kind = 'application' and d.name = coalesce(
      (select p.application from parley_flow._p_receive_port as p where p.receive_port_id = port_id),
      (select s.application from parley_flow._p_send_port as s where s.name = send_port)
    )
  ), '0 seconds')
$$;

comment on function parley_flow._p_keep_of(integer, text) is
'Gives how long messages of a receive port stay when they are finished; of those that came by none, as the send port
says that got them last.';

create function parley_flow._p_remove_messages(ids bigint[]) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_holders bigint[];
  v_removed integer;
begin
  with removed as (
    delete from parley_flow._p_message as m
    where m.message_id = any (ids)
    returning m.message_id, m.content_id, m.parts, m.deliveries
  ),

  done as (
    delete from parley_flow._p_done as d
    using removed as r
    where r.deliveries > 1 and d.message_id = r.message_id
  )

  select array_agg(r.message_id) filter (where r.content_id is not null or r.parts is not null), count(*)
  into v_holders, v_removed
  from removed as r;
  if v_holders is not null then
    perform parley_store.release_content('flow', v_holders);
  end if;
  return v_removed;
end
$$;

comment on function parley_flow._p_remove_messages(bigint[]) is
'Removes messages of which nothing is open, with their bodies; gives how many.';

create function parley_flow._p_finish_messages(ids bigint[], send_port text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if not (select c.keeps_finished from parley_flow._p_configuration as c) then
    perform parley_flow._p_remove_messages(ids);
    return;
  end if;
  with kept as (
    insert into parley_flow._p_kept_message (message_id, kept_until)
    select m.message_id, clock_timestamp() + k.keep
    from parley_flow._p_message as m
    cross join lateral parley_flow._p_keep_of(m.receive_port_id, send_port) as k (keep)
    where m.message_id = any (ids) and k.keep > '0 seconds'
    on conflict do nothing
    returning message_id
  )
  select array_agg(u.id) into ids
  from unnest(ids) as u (id)
  where u.id not in (select k.message_id from kept as k);
  perform parley_flow._p_remove_messages(ids);
end
$$;

comment on function parley_flow._p_finish_messages(bigint[], text) is
'Removes messages of which nothing is open, or has them stay as long as their application says.';

create function parley_flow._p_count_done(ids bigint[], send_port text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_locked bigint[];
  v_over bigint[];
begin
  v_locked := array(
    select m.message_id
    from parley_flow._p_message as m
    where m.message_id = any (ids)
    order by m.message_id
    for no key update skip locked
  );
  insert into parley_flow._p_done (message_id) select u.id from unnest(ids) as u (id);
  insert into parley_flow._p_to_count (message_id)
  select distinct u.id from unnest(ids) as u (id) where u.id <> all (v_locked);
  v_over := array(
    select m.message_id
    from parley_flow._p_message as m
    where m.message_id = any (v_locked)
      and m.deliveries <= (select count(*) from parley_flow._p_done as d where d.message_id = m.message_id)
  );
  if v_over <> '{}' then
    perform parley_flow._p_finish_messages(v_over, send_port);
  end if;
end
$$;

comment on function parley_flow._p_count_done(bigint[], text) is
'Records that a delivery each of some messages has ended, which began with several, and removes those of which it was
the last.';

create function parley_flow._p_end_deliveries(ids bigint[], send_port text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_single bigint[];
  v_several bigint[];
begin
  select array_agg(u.id) filter (where m.deliveries <= 1), array_agg(u.id) filter (where m.deliveries > 1)
  into v_single, v_several
  from unnest(ids) as u (id)
  join parley_flow._p_message as m on m.message_id = u.id;
  if v_single is not null then
    perform parley_flow._p_finish_messages(v_single, send_port);
  end if;
  if v_several is not null then
    perform parley_flow._p_count_done(v_several, send_port);
  end if;
end
$$;

comment on function parley_flow._p_end_deliveries(bigint[], text) is
'Ends a delivery each of some messages, and the messages of which it was the last.
Arguments: ids, one of a message twice where two of its deliveries end; send_port, that got them, null for none.';

create function parley_flow._p_add_deliveries(id bigint, added integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  -- It may have begun with one, and then nothing was recorded of that.
  update parley_flow._p_message as m set deliveries = m.deliveries + added where m.message_id = id;
end
$$;

comment on function parley_flow._p_add_deliveries(bigint, integer) is
'Has a message wait for more deliveries than it began with, before any of them ends: that of an operator who resumes
it.';

create function parley_flow._p_count_messages() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids bigint[];
  v_over bigint[];
begin
  with taken as (
    delete from parley_flow._p_to_count as t
    where t.ctid = any (array(select o.ctid from parley_flow._p_to_count as o limit 10000 for update skip locked))
    returning t.message_id
  )
  select array_agg(distinct t.message_id) into v_ids from taken as t;
  if v_ids is null then
    return 0;
  end if;
  -- The present holder of the lock of one may count before it sees rows that we have not committed: wait for it.
  perform from parley_flow._p_message as m where m.message_id = any (v_ids) order by m.message_id for no key update;
  v_over := array(
    select m.message_id
    from parley_flow._p_message as m
    where m.message_id = any (v_ids)
      and m.deliveries <= (select count(*) from parley_flow._p_done as d where d.message_id = m.message_id)
      and not exists (select from parley_flow._p_kept_message as k where k.message_id = m.message_id)
  );
  perform parley_flow._p_finish_messages(v_over, null);
  return cardinality(v_ids);
end
$$;

comment on function parley_flow._p_count_messages() is
'Counts the deliveries of messages of which two may have ended at once; gives how many messages.';

create function parley_flow._p_remove_kept() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids bigint[];
begin
  with over as (
    delete from parley_flow._p_kept_message as k
    where k.message_id = any (array(
      select o.message_id
      from parley_flow._p_kept_message as o
      where o.kept_until < clock_timestamp()
      order by o.kept_until
      limit 1000
      for update skip locked
    ))
    returning k.message_id
  )
  select array_agg(o.message_id) into v_ids from over as o;
  return parley_flow._p_remove_messages(v_ids);
end
$$;

comment on function parley_flow._p_remove_kept() is
'Removes messages that were finished and whose time is over, some of them; gives how many.';
