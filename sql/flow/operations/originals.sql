-- Originals of messages that operators have edited: they stay for a while as they came, for who may read content.
--
-- An original waits for one delivery more than it has, which ends when its time is over: so nothing else has to know
-- that it stays, and deliveries of it that are still open end as always.
-- Locks: rows of _p_message, as the end of deliveries takes them.

create table parley_flow._p_original (
  message_id bigint primary key,
  kept_until timestamptz not null
);

comment on table parley_flow._p_original is
'Messages that an operator has edited and resubmitted: each waits for one delivery more, which ends at kept_until.';

create index _p_original_until on parley_flow._p_original (kept_until);

create function parley_flow._p_keep_original(message_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley_flow._p_original (message_id, kept_until)
  values ($1, clock_timestamp() + parley_flow._p_retention_of('originals'))
  on conflict do nothing;
  if found then
    perform parley_flow._p_add_deliveries($1, 1);
  end if;
end
$$;

comment on function parley_flow._p_keep_original(bigint) is
'Keeps a message, of which a delivery is open, as it is, for as long as the retention "originals" says.';

create function parley_flow._p_forget_originals() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids bigint[];
begin
  with over as (
    delete from parley_flow._p_original as o
    where o.message_id = any (array(
      select k.message_id
      from parley_flow._p_original as k
      where k.kept_until < clock_timestamp()
      order by k.kept_until
      limit 1000
      for update skip locked
    ))
    returning o.message_id
  )
  select array_agg(o.message_id order by o.message_id) into v_ids from over as o;
  perform parley_flow._p_end_deliveries(v_ids, null);
  return coalesce(cardinality(v_ids), 0);
end
$$;

comment on function parley_flow._p_forget_originals() is
'Lets originals go whose time is over, some of them; gives how many.';
