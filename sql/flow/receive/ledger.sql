-- The ledger: what receive locations have taken, so that nothing is taken twice.
--
-- A key is the identity of an input: name, size, time and hash of a file, an idempotency key of HTTP, the number of a
-- frame. Its row is written in the transaction that publishes the messages. An input whose source has to go afterwards
-- has an entry, and its row stays at least until the host says that the source is gone: between the two a crash is
-- repaired by looking (_p_taken).

create table parley_flow._p_ledger (
  location_id integer not null,
  key text not null,
  message_id bigint,
  entry jsonb,
  taken_at timestamptz not null default clock_timestamp(),
  removed_at timestamptz,
  primary key (location_id, key)
);

comment on table parley_flow._p_ledger is
'The inputs that locations have taken.';

create index _p_ledger_taken on parley_flow._p_ledger (location_id, taken_at) where removed_at is null;
create index _p_ledger_removed on parley_flow._p_ledger (removed_at) where removed_at is not null;

create function parley_flow._p_require_location(host parley_flow._p_host, location text)
returns parley_flow._p_receive_location
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_location parley_flow._p_receive_location;
begin
  select * into v_location
  from parley_flow._p_receive_location as l
  where l.name = location and l.host_id = host.host_id;
  if not found then
    found := parley_flow._p_raise('location', coalesce(location, 'null'), host.name);
  end if;
  return v_location;
end
$$;

comment on function parley_flow._p_require_location(parley_flow._p_host, text) is
'Gives a receive location of a host.
Errors: PF006.';

create function parley_flow._p_enter(
  location_id integer, keys text[], entries jsonb[], first_messages bigint[]
) returns text[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wrong text;
  v_entered text[];
begin
  select k.key into v_wrong
  from unnest(keys) as k (key)
  where octet_length(k.key) not between 1 and 1000
  limit 1;
  if found then
    found := parley_flow._p_raise('key', format('It has %s bytes.', octet_length(v_wrong)));
  end if;
  -- In one order, so that two who enter the same ones do not come to a deadlock. A session that enters one at the same
  -- time is waited for.
  with entered as (
    insert into parley_flow._p_ledger as l (location_id, key, message_id, entry, removed_at)
    select distinct on (k.key) _p_enter.location_id, k.key, k.message_id, k.entry,
      case when k.entry is null then clock_timestamp() end
    from unnest(keys, entries, first_messages) with ordinality as k (key, entry, message_id, n)
    where k.key is not null
    order by k.key, k.n
    on conflict on constraint _p_ledger_pkey do nothing
    returning l.key
  )
  select array_agg(e.key) into v_entered from entered as e;
  return coalesce(v_entered, '{}');
end
$$;

comment on function parley_flow._p_enter(integer, text[], jsonb[], bigint[]) is
'Writes inputs into the ledger, and gives the keys of those that are new; the others were taken before.
Arguments: location_id; keys, entries, first_messages, one for each input.
Errors: PF010.';

create function parley_flow._p_known(
  host text, location text, keys text[], caller parley.caller default parley.current_caller()
) returns text[]
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_location constant parley_flow._p_receive_location := parley_flow._p_require_location(
    parley_flow._p_require_host(parley.caller_role(caller), host), location
  );
begin
  return array(
    select l.key
    from parley_flow._p_ledger as l
    where l.location_id = v_location.location_id and l.key = any (keys)
  );
end
$$;

comment on function parley_flow._p_known(text, text, text[], parley.caller) is
'Gives those of some keys that a location has taken, so that the host need not read their sources.
Errors: PF001, PF006.';

create function parley_flow._p_taken(
  host text, location text, top integer default 1000, caller parley.caller default parley.current_caller()
) returns table (key text, entry jsonb, message_id bigint, taken_at timestamptz)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_location constant parley_flow._p_receive_location := parley_flow._p_require_location(
    parley_flow._p_require_host(parley.caller_role(caller), host), location
  );
begin
  found := parley_flow._p_require_top(top);
  return query
  select l.key, l.entry, l.message_id, l.taken_at
  from parley_flow._p_ledger as l
  where l.location_id = v_location.location_id and l.removed_at is null
  order by l.taken_at
  limit top;
end
$$;

comment on function parley_flow._p_taken(text, text, integer, parley.caller) is
'Gives what a location has taken and whose source may be there still, the oldest first: after a crash the host removes
these first, and says so by _p_removed.
Arguments: host; location; top, how many at most.
Errors: PF001, PF006, PF010.';

create function parley_flow._p_removed(
  host text, location text, keys text[], caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_location constant parley_flow._p_receive_location := parley_flow._p_require_location(
    parley_flow._p_require_host(parley.caller_role(caller), host), location
  );
  v_removed integer;
begin
  update parley_flow._p_ledger as l
  set removed_at = clock_timestamp()
  where l.location_id = v_location.location_id and l.key = any (keys) and l.removed_at is null;
  get diagnostics v_removed = row_count;
  return v_removed;
end
$$;

comment on function parley_flow._p_removed(text, text, text[], parley.caller) is
'Records that the sources of some keys are removed, moved or acknowledged; gives of how many that was not known.
Errors: PF001, PF006.';

create function parley_flow._p_forget_ledger() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_forgotten integer;
begin
  delete from parley_flow._p_ledger as g
  where g.ctid = any (array(
    select o.ctid
    from parley_flow._p_ledger as o
    left join parley_flow._p_receive_location as l on l.location_id = o.location_id
    where o.removed_at < clock_timestamp() - coalesce(l.ledger_retention, '30 days')
    order by o.removed_at
    limit 10000
    for update of o skip locked
  ));
  get diagnostics v_forgotten = row_count;
  return v_forgotten;
end
$$;

comment on function parley_flow._p_forget_ledger() is
'Removes what locations took, and whose sources were removed, before their retention, some of it; gives how many.';
