-- Which daemon leads: any number may run on one database, and one of them starts readers and fires timers.
--
-- The row holds the term, which grows with each change of leader and with each clean stop. Each transaction in which
-- the leader changes anything first calls _p_holds_term. That locks the row FOR SHARE, and taking over waits for it. So
-- a leader that was paused and whose term is over changes nothing any more. Until when the leader is believed to live
-- stands in a sequence, because it is renewed every other second: a row would leave a dead version each time, and an
-- old snapshot would keep them all. A renewal by a leader that was just replaced may slip through; it lengthens the
-- lease of the new one, no more.
-- Clocks: leases are set and judged by the server's clock. A lease that ends in the far future, after the clock was set
-- back, counts as over.
-- Locks: the row, FOR SHARE by the leader's statements, FOR UPDATE by one that takes over or resigns.

create table parley._p_leader (
  leader_id boolean primary key default true check (leader_id),
  term bigint not null default 0,
  leader text,
  leads_since timestamptz,
  -- Distinguishes two copies of this database in which a daemon leads under the same term.
  token uuid not null default gen_random_uuid(),
  -- The role that it logged in as.
  login parley._p_role_oid
);

comment on table parley._p_leader is
'One row: the daemon that leads, and its term. Until when it leads: the sequence _p_leader_lease.';

insert into parley._p_leader (leader_id) values (true);

-- Until when the leader is believed to live: microseconds since 1970.
create sequence parley._p_leader_lease minvalue 0 start 0;

create function parley._p_is_led() returns boolean
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  select l.until > n.now and l.until < n.now + 60000000
  from (select coalesce(pg_sequence_last_value('parley._p_leader_lease'), 0) as until) as l
  cross join (select extract(epoch from clock_timestamp()) * 1000000 as now) as n
$$;

comment on function parley._p_is_led() is 'Reports whether a daemon leads whose lease is not over.';

create function parley._p_current_term() returns bigint
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select l.term from parley._p_leader as l where parley._p_is_led()
$$;

comment on function parley._p_current_term() is 'Gives the term of the daemon that leads, or null when none does.';

create function parley._p_holds_term(term bigint) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform from parley._p_leader as l where l.term = _p_holds_term.term and l.leader is not null for share;
  return found;
end
$$;

comment on function parley._p_holds_term(bigint) is
'Reports whether a term is the current one, and keeps it so to the end of the transaction.
Arguments: term, as _p_lead gave it.';

create function parley._p_lease(milliseconds integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform setval(
    'parley._p_leader_lease', (extract(epoch from clock_timestamp()) * 1000000)::bigint + milliseconds * 1000::bigint
  );
end
$$;

comment on function parley._p_lease(integer) is 'Lets the lease of the leader end so many milliseconds from now.';

create function parley._p_lead(
  leader text, term bigint, milliseconds integer, serves_neighbours boolean default null
) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_term bigint;
begin
  select l.term into v_term from parley._p_leader as l where l.term = _p_lead.term and l.leader is not null;
  if found then
    -- Nothing is lost when a crash takes the renewal back.
    perform set_config('synchronous_commit', 'off', true);
    perform parley._p_lease(milliseconds);
    perform parley._p_record_timeline();
    return v_term;
  elsif parley._p_is_led() then
    return null;
  end if;
  perform from parley._p_leader as l for update;
  -- Another daemon may have taken over while we waited for the row.
  if parley._p_is_led() then
    return null;
  end if;
  update parley._p_leader as l
  set term = l.term + 1, leader = _p_lead.leader, leads_since = clock_timestamp(), token = gen_random_uuid(),
    login = (select r.oid::regrole from pg_roles as r where r.rolname = session_user)
  returning l.term into v_term;
  perform parley._p_lease(milliseconds);
  perform parley._p_record_timeline();
  perform parley._p_record_neighbours(serves_neighbours);
  -- A copy of a database must not do the work of the original: see base/broker_identity.sql.
  perform parley.attach_broker();
  return v_term;
end
$$;

comment on function parley._p_lead(text, bigint, integer, boolean) is
'Renews the lease of the leader whose term this is, or takes over when nobody leads; gives the term, or null when
another daemon leads.
Arguments: leader, the name of the daemon; term that it held, or 0; milliseconds that the lease lasts;
serves_neighbours, whether it serves other databases too, null when that is not known.';

create function parley._p_resign(term bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update parley._p_leader as l
  set term = l.term + 1, leader = null, leads_since = null
  where l.term = _p_resign.term and l.leader is not null;
  if found then
    perform setval('parley._p_leader_lease', 0);
    perform parley._p_notify('parley', 'leader');
  end if;
end
$$;

comment on function parley._p_resign(bigint) is
'Ends a term before its time, and notifies the other daemons that nobody leads. The statements of that term are refused
from now on.';
