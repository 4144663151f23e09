-- Suspects: messages that a daemon or a session held when it died, on their way to a host, a mailbox, a service or a
-- table (spec mail 5). Delivering one of them may have killed it; such a message is poison.
--
-- A lease that ran out says that its holder died, or was lost. It does not say which message was to blame. So each
-- recipient that the holder had gets a death, and is a suspect until one of its attempts comes to an end, whatever the
-- end. Suspects are tried one at a time. When the holder of a suspect dies again, that suspect is poison. Its deaths
-- explain those of the other suspects, which are cleared.
--
-- Most messages that are held when a daemon is killed wait for a host that does not answer. Their turn would hold up
-- the other suspects, so a daemon begins a second suspect when it has held the first for three seconds. When it dies
-- with several, each of them has two deaths, and these come strictly one by one: poison among them costs a third death.
--
-- Work in the database (categorizing, delivery to services and tables) may take down the whole server. So of all
-- daemons together only one holds such a suspect at a time.
--
-- Invariants, and what keeps each:
--   only a message that was tried alone is poison   a suspect is begun under the lock of one row (_p_turn), which is
--     tried without a wait, and only while no other was begun lately; the leases of a dead holder are judged when all
--     leases with suspects of that holder have run out
-- Locks: the row of _p_turn, since any role could hold an advisory lock; leases, items. Cost: each claim reads an index
-- that is empty as a rule.

create table parley_mail._p_turn (is_only boolean primary key default true check (is_only));

comment on table parley_mail._p_turn is
'One row. A transaction that begins a suspect locks it until it ends.';

insert into parley_mail._p_turn (is_only) values (true);

create function parley_mail._p_take_turn() returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform from parley_mail._p_turn for update skip locked;
  return found;
end
$$;

comment on function parley_mail._p_take_turn() is
'Reports whether no other transaction begins a suspect now; then none does until this transaction ends.';

create function parley_mail._p_has_suspects() returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  return exists (select from parley_mail._p_recipient as r where r.deaths > 0);
end
$$;

comment on function parley_mail._p_has_suspects() is
'Reports whether there is a suspect.';

create function parley_mail._p_suspects_in_hand()
returns table (
  system text, lease_id bigint, holder text, lane text, message_id bigint, deaths integer, claimed_at timestamptz,
  until timestamptz
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  return query
  select distinct on (h.lease_id, r.message_id)
    s.system, h.lease_id, h.holder, h.lane, r.message_id, r.deaths::integer, h.claimed_at, h.until
  from unnest(array['mail', 'mail_service']) as s (system)
  cross join lateral parley_store.in_hand(
    s.system, array(select distinct p.message_id from parley_mail._p_recipient as p where p.deaths > 0)
  ) as h
  join parley_mail._p_recipient as r on r.message_id = h.subject and r.lane = h.lane and r.deaths > 0
  order by h.lease_id, r.message_id, r.deaths desc;
end
$$;

comment on function parley_mail._p_suspects_in_hand() is
'Gives the suspects that are under a lease, with the holder of each.';

create function parley_mail._p_may_try(system text, holder text, deaths integer, apart_from bigint[]) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lately constant timestamptz := clock_timestamp() - interval '10 seconds';
begin
  if not parley_mail._p_take_turn() then
    return false;
  end if;
  if system <> 'submission' and exists (
    select from parley_mail._p_categorizing as c where c.deaths > 0 and c.begun_at > v_lately
  ) then
    return false;
  end if;
  return not exists (
    select
    from parley_mail._p_suspects_in_hand() as h
    where (h.lease_id = any (apart_from)) is not true
      and case
        when h.system = 'mail_service' then true
        when _p_may_try.system <> 'mail' then h.claimed_at > v_lately
        else h.holder = _p_may_try.holder
          and (h.claimed_at > v_lately + interval '7 seconds' or h.deaths > 1 or _p_may_try.deaths > 1)
      end
  );
end
$$;

comment on function parley_mail._p_may_try(text, text, integer, bigint[]) is
'Reports whether a suspect may be begun now, so that it alone is to blame if its holder dies.
Arguments: system, mail, mail_service or, for the categorizer, submission; holder, the daemon that would begin it;
deaths of the suspect; apart_from, leases that do not count: those of the claim itself.';

create function parley_mail._p_without_suspects(system text, holder text, claimed parley_store.claimed_item[])
returns parley_store.claimed_item[]
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  -- A host may keep a suspect for long; a delivery in the database is soon over.
  v_pause constant interval := case
    when system = 'mail_service' then interval '100 milliseconds'
    else interval '1 second'
  end;
  v_tried record;
  v_suspects bigint[];
  v_lease record;
begin
  select array_agg(c.item_id) into v_suspects
  from unnest(claimed) as c
  where exists (
    select
    from parley_mail._p_recipient as r
    where r.message_id = c.subject and r.lane = c.lane and r.deaths > 0
  );
  if v_suspects is null then
    return claimed;
  end if;
  select c.lease_id, c.item_id, max(r.deaths) as deaths into v_tried
  from unnest(claimed) as c
  join parley_mail._p_recipient as r on r.message_id = c.subject and r.lane = c.lane
  where c.item_id = any (v_suspects)
  group by c.lease_id, c.item_id
  order by deaths, c.item_id
  limit 1;
  if not parley_mail._p_may_try(
    system, holder, v_tried.deaths, array(select c.lease_id from unnest(claimed) as c)
  ) then
    v_tried.item_id := null;
    v_tried.lease_id := null;
  end if;
  -- Items under the lease of the suspect, or of one transaction with it, wait. Of all others only suspects wait.
  for v_lease in
    select
      c.lease_id,
      array_agg(c.item_id) filter (where c.item_id = any (v_suspects)) as suspects,
      array_agg(c.item_id) filter (
        where c.item_id <> all (v_suspects)
          and (c.lease_id = v_tried.lease_id or system = 'mail_service' and v_tried.lease_id is not null)
      ) as others
    from unnest(claimed) as c
    where c.item_id is distinct from v_tried.item_id
    group by c.lease_id
  loop
    if system = 'mail_service' and v_tried.lease_id is not null then
      -- The daemon claims again at once when it has delivered the suspect, so the next one needs no delay.
      v_lease.others := coalesce(v_lease.others, '{}') || coalesce(v_lease.suspects, '{}');
      v_lease.suspects := null;
    end if;
    if v_lease.others is not null then
      perform parley_store.release_work(v_lease.lease_id, v_lease.others);
      claimed := array(select c from unnest(claimed) as c where c.item_id <> all (v_lease.others));
    end if;
    if v_lease.suspects is not null then
      perform parley_store.delay_work(
        v_lease.lease_id, v_lease.suspects, clock_timestamp() + v_pause, counts => false
      );
      claimed := array(select c from unnest(claimed) as c where c.item_id <> all (v_lease.suspects));
    end if;
  end loop;
  return claimed;
end
$$;

comment on function parley_mail._p_without_suspects(text, text, parley_store.claimed_item[]) is
'Gives the items of a claim that may be worked on now. At most one of them is a suspect: alone under its lease and,
where it is delivered in the database, alone in its transaction. The other items wait for a moment, or go back to the
front of their lane; no attempt is counted for them.
Arguments: system; holder; claimed, the items that this transaction has claimed.';

create function parley_mail._p_count_deaths(system text, lanes text[], message_ids bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_suspects record;
begin
  select count(*) as messages, min(s.lane) as lane, min(s.id) as id, max(s.deaths) as deaths into v_suspects
  from (
    select r.lane, r.message_id as id, max(r.deaths) as deaths
    from unnest(lanes, message_ids) as u (lane, id)
    join parley_mail._p_recipient as r on r.message_id = u.id and r.lane = u.lane
    where r.deaths > 0
    group by r.lane, r.message_id
  ) as s;
  if v_suspects.messages = 1 then
    perform parley_store.remove_work(
      _p_count_deaths.system,
      jsonb_build_object('lane', v_suspects.lane, 'subjects', jsonb_build_array(v_suspects.id))
    );
    -- Its deaths explain those of the other suspects, which are cleared.
    update parley_mail._p_recipient as r
    set deaths = 0,
      lane = case when r.message_id = v_suspects.id and r.lane = v_suspects.lane then 'POISON/-/-' else r.lane end
    from parley_mail._p_delivery_kind as k
    where r.deaths > 0 and k.system = _p_count_deaths.system
      and k.kind = (select p.kind from parley_mail._p_parts_of_lane(r.lane) as p);
    perform parley_mail._p_set_aside(array[v_suspects.id], format(
      'The daemon that delivered it to %s has died %s.', v_suspects.lane,
      case when v_suspects.deaths > 1 then 'three times' else 'twice' end
    ));
    return;
  end if;
  update parley_mail._p_recipient as r
  set deaths = least(r.deaths + 1, 2)
  from unnest(lanes, message_ids) as u (lane, id)
  where r.message_id = u.id and r.lane = u.lane;
end
$$;

comment on function parley_mail._p_count_deaths(text, text[], bigint[]) is
'Counts a death for the messages of a holder that died. If exactly one of them was a suspect, sets that one aside.
Arguments: system; lanes and message_ids, an element for each message and lane.';

create function parley_mail._p_take_back_lost() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lost record;
  v_later bigint[];
  v_count integer := 0;
begin
  if parley_mail._p_has_suspects() then
    v_later := array(
      select s.lease_id
      from parley_mail._p_suspects_in_hand() as s
      where s.holder in (
        select o.holder from parley_mail._p_suspects_in_hand() as o where o.until >= clock_timestamp()
      )
    );
  end if;
  for v_lost in
    select s.system, array_agg(t.subject) as ids, array_agg(t.lane) as lanes, count(*)::integer as messages
    from unnest(array['mail', 'mail_service']) as s (system)
    cross join lateral parley_store.take_back_leases(s.system, except_leases => v_later) as t
    group by s.system, t.holder
  loop
    v_count := v_count + v_lost.messages;
    perform parley_mail._p_track(
      array_fill('LOAD'::text, array[v_lost.messages]), v_lost.ids, null, null,
      array_fill('the lease of a daemon ran out'::text, array[v_lost.messages]), null,
      array_fill('BOOTLOADER'::text, array[v_lost.messages])
    );
    perform parley_mail._p_count_deaths(v_lost.system, v_lost.lanes, v_lost.ids);
  end loop;
  return v_count;
end
$$;

comment on function parley_mail._p_take_back_lost() is
'Takes back the messages of daemons whose lease ran out, counts a death for each, and sets aside the one that is to
blame. Gives how many messages.
Source: spec mail 5, 15.2.';
