-- Counters of what the box does: appended to, and added up by maintenance.
--
-- A transaction that publishes or sends appends one row for a call, so that sessions do not wait for each other.

create table parley_flow._p_counter_change (
  host text not null,
  counter text not null,
  value bigint not null
);

comment on table parley_flow._p_counter_change is 'The counts that have not been added up yet.';

alter table parley_flow._p_counter_change replica identity full;

create table parley_flow._p_counter (
  host text not null,
  counter text not null,
  value bigint not null,
  primary key (host, counter)
);

comment on table parley_flow._p_counter is
'The counts, by host; '''' is for messages that applications published, and for events that concern no host.';

create function parley_flow._p_count(host text, counters text[], numbers integer[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley_flow._p_counter_change (host, counter, value)
  select _p_count.host, c.counter, c.value
  from unnest(counters, numbers) as c (counter, value)
  where c.value <> 0;
end
$$;

comment on function parley_flow._p_count(text, text[], integer[]) is 'Counts: appends to counters of a host.';

create function parley_flow._p_fold_counters() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_folded integer;
begin
  -- One at a time: who comes second has nothing to do.
  perform from parley_flow._p_configuration as c for no key update skip locked;
  if not found then
    return 0;
  end if;
  with taken as (
    delete from parley_flow._p_counter_change as c returning c.host, c.counter, c.value
  ),

  added as (
    insert into parley_flow._p_counter as c (host, counter, value)
    select t.host, t.counter, sum(t.value) from taken as t group by t.host, t.counter
    on conflict on constraint _p_counter_pkey do update set value = c.value + excluded.value
  )

  select count(*)::integer into v_folded from taken as t;
  return v_folded;
end
$$;

comment on function parley_flow._p_fold_counters() is 'Adds up what was counted; gives how many rows.';
