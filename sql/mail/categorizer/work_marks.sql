-- The deaths of processes, backends and servers that a message may have caused (spec mail 5).
--
-- Before a daemon categorizes messages it commits a row that names them. The transaction that categorizes them removes
-- the row. So a daemon that dies in between leaves the row, whatever became of the transaction. The daemon
-- locks the row while it works on it. A row that is not quite new and has no lock was therefore left by a dead daemon.
--
-- 1. _p_begin_categorizing   takes from the submission queue, writes a row; commit
-- 2. _p_categorize_begun     categorizes the messages of a row, removes the row; commit
--
-- A row that was left is divided: each message gets a row of its own, with one death. These are worked on alone, one at
-- a time in the whole database, so that the second death leaves no doubt which message is poison. A message that was
-- only in bad company is categorized, and its row goes with its deaths. A row of more than a hundred messages, as of a
-- batch that was submitted at once, is divided into hundreds first: poison among them costs a third death, and not an
-- hour.
-- Locks: the row, for update, skip locked; that of _p_turn while a row that was left is taken.
-- Cost: an insert, a delete and a commit for a batch.

create table parley_mail._p_categorizing (
  run_id bigint generated always as identity primary key,
  message_ids bigint[] not null,
  deaths smallint not null default 0,
  begun_at timestamptz default clock_timestamp()
);

comment on table parley_mail._p_categorizing is
'Messages that are taken from the submission queue and not categorized yet. deaths: how often a daemon died that worked
on them; begun_at: null while none does.';

create function parley_mail._p_divide_lost_runs() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_run parley_mail._p_categorizing;
  v_poison bigint[] := '{}'::bigint[];
  v_lost integer := 0;
begin
  for v_run in
    select *
    from parley_mail._p_categorizing as c
    where c.begun_at < clock_timestamp() - interval '5 seconds'
    order by c.run_id
    limit 10
    for update skip locked
  loop
    delete from parley_mail._p_categorizing as c where c.run_id = v_run.run_id;
    v_lost := v_lost + cardinality(v_run.message_ids);
    if v_run.deaths + 1 >= 2 and cardinality(v_run.message_ids) = 1 then
      v_poison := v_poison || v_run.message_ids;
    else
      insert into parley_mail._p_categorizing (message_ids, deaths, begun_at)
      select array_agg(m.id), least(v_run.deaths + 1, 1), null
      from unnest(v_run.message_ids) with ordinality as m (id, n)
      group by case when cardinality(v_run.message_ids) > 100 then m.n / 100 else m.n end;
    end if;
    perform parley_mail._p_track(
      array_fill('LOAD'::text, array[cardinality(v_run.message_ids)]), v_run.message_ids, null, null,
      array_fill('taken over from who had begun to categorize it'::text, array[cardinality(v_run.message_ids)]), null,
      array_fill('BOOTLOADER'::text, array[cardinality(v_run.message_ids)])
    );
  end loop;
  if v_poison <> '{}' then
    perform parley_mail._p_set_aside(v_poison, 'The daemon that categorized it has died twice.');
  end if;
  return v_lost;
end
$$;

comment on function parley_mail._p_divide_lost_runs() is
'Counts a death for messages that somebody began to categorize and has neither finished nor in his hands, and sets aside
what has two. Gives how many messages.';

create function parley_mail._p_begin_categorizing(
  messages integer default 100, timeout integer default 0, caller parley.caller default parley.current_caller()
) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_run_id bigint;
  v_ids bigint[];
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  if not exists (select from parley_mail._p_organization as o where o.submission_suspended_at is null) then
    return null;
  end if;
  if exists (
    select from parley_mail._p_categorizing as c
    where c.begun_at is null or c.begun_at < clock_timestamp() - interval '5 seconds'
  ) and parley_mail._p_take_turn() then
    perform parley_mail._p_divide_lost_runs();
    -- One at a time: what is under way has a time.
    update parley_mail._p_categorizing as c
    set begun_at = clock_timestamp()
    where c.run_id = (select min(n.run_id) from parley_mail._p_categorizing as n where n.begun_at is null)
      and parley_mail._p_may_try('submission', '', 1, null)
      and not exists (select from parley_mail._p_categorizing as o where o.deaths > 0 and o.begun_at is not null)
    returning c.run_id into v_run_id;
    if v_run_id is not null then
      return v_run_id;
    end if;
  end if;
  v_ids := array(
    select distinct i.id::bigint
    from parley.take(
      'parley_mail_submission', messages, timeout => _p_begin_categorizing.timeout, caller => parley.current_caller()
    ) as t
    cross join unnest(string_to_array(convert_from(t.body, 'UTF8'), ' ')) as i (id)
    order by 1
  );
  if v_ids <> '{}' then
    insert into parley_mail._p_categorizing as c (message_ids) values (v_ids) returning c.run_id into v_run_id;
  end if;
  return v_run_id;
end
$$;

comment on function parley_mail._p_begin_categorizing(integer, integer, parley.caller) is
'Takes messages from the submission queue, the highest priority first, and gives the number under which
_p_categorize_begun categorizes them: commit before it. Null when there is nothing to categorize.
Arguments: messages, how many items of the queue to take; timeout, milliseconds to wait for one (0: do not wait).
Errors: PM001 the role does not hold SERVE, 9617 the queue is disabled.
Source: spec mail 5.';

create function parley_mail._p_categorize_begun(
  run_id bigint, caller parley.caller default parley.current_caller()
) returns parley_mail._p_categorizer_counts
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids bigint[];
  v_counts parley_mail._p_categorizer_counts := (0, 0, 0, 0, 0, 0, 0, 0, 0);
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  select c.message_ids into v_ids
  from parley_mail._p_categorizing as c
  where c.run_id = _p_categorize_begun.run_id
  for update skip locked;
  if not found then
    -- Somebody else has it, or had it.
    return v_counts;
  end if;
  v_counts := parley_mail._p_categorize_each(v_ids);
  delete from parley_mail._p_categorizing as c where c.run_id = _p_categorize_begun.run_id;
  return v_counts;
end
$$;

comment on function parley_mail._p_categorize_begun(bigint, parley.caller) is
'Categorizes messages that _p_begin_categorizing has taken, and gives how many were, how many failed and how many of
these were set aside, and what was counted (_p_categorizer_counts).
Arguments: run_id, what _p_begin_categorizing gave.
Errors: PM001 the role does not hold SERVE.
Source: spec mail 5, 6.';

create function parley_mail._p_give_back_begun(run_id bigint, caller parley.caller default parley.current_caller())
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  update parley_mail._p_categorizing as c
  set begun_at = clock_timestamp() - interval '1 minute', deaths = c.deaths - 1
  where c.run_id = (
    select g.run_id
    from parley_mail._p_categorizing as g
    where g.run_id = _p_give_back_begun.run_id
    for update skip locked
  );
end
$$;

comment on function parley_mail._p_give_back_begun(bigint, parley.caller) is
'Gives back what _p_begin_categorizing has taken and could not be categorized, without anybody having died.
Arguments: run_id, what _p_begin_categorizing gave.
Errors: PM001 the role does not hold SERVE.';
