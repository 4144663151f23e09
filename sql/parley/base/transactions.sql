-- Which transactions are under way.

create function parley._p_is_running(transaction_id xid) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_next bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
  v_age bigint := (v_next - transaction_id::text::bigint) & 4294967295;
begin
  if transaction_id::text in ('0', '1', '2') then
    return false;
  elsif v_age = 0 or v_age > 2147483647 then
    -- It has begun since our scan began.
    return true;
  end if;
  return coalesce(pg_xact_status((v_next - v_age)::text::xid8) = 'in progress', false);
end
$$;

comment on function parley._p_is_running(xid) is
'Reports whether a transaction or subtransaction, such as the xmax of a row, has not ended yet.';

create function parley._p_running(transaction_ids xid[]) returns xid[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_next bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
begin
  return array(
    select a.id
    from (
      select u.id, (v_next - u.id::text::bigint) & 4294967295 as age
      from unnest(transaction_ids) as u (id)
      where u.id::text not in ('0', '1', '2')
    ) as a
    where case
        when a.age = 0 or a.age > 2147483647 then true
        else pg_xact_status((v_next - a.age)::text::xid8) = 'in progress'
      end
  );
end
$$;

comment on function parley._p_running(xid[]) is
'Gives those of some transactions and subtransactions that have not ended yet, as _p_is_running reports of each, for a
tenth of the cost of so many calls.';

create function parley._p_full_transaction_id(transaction_id xid) returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_next bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
begin
  -- The nearest number to ours that ends so: it may also have begun since our snapshot was taken.
  return v_next - 2147483648 + (transaction_id::text::bigint - v_next + 2147483648 & 4294967295);
end
$$;

comment on function parley._p_full_transaction_id(xid) is
'Gives the number of a transaction or subtransaction, such as the xmax of a row, at its full length, as xid8 has it.';

create function parley._p_precedes_snapshot(transaction_id xid) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select transaction_id::text in ('1', '2')
    or pg_visible_in_snapshot(parley._p_full_transaction_id(transaction_id)::text::xid8, pg_current_snapshot())
$$;

comment on function parley._p_precedes_snapshot(xid) is
'Reports whether a transaction that has committed, such as the xmin of a row, had ended when this statement''s snapshot
was taken. It is false for this transaction itself.';

create function parley._p_has_missed_nothing() returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_first constant bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
  v_number bigint := v_first;
begin
  if exists (
    select from pg_snapshot_xip(pg_current_snapshot()) as x (id) where pg_xact_status(x.id) = 'committed'
  ) then
    return false;
  end if;
  while v_number < v_first + 1000 loop
    if pg_xact_status(v_number::text::xid8) = 'committed' then
      return false;
    end if;
    v_number := v_number + 1;
  end loop;
  return false;
exception
  -- The next number that nobody has yet: the one before was the last.
  when invalid_parameter_value then
    return true;
end
$$;

comment on function parley._p_has_missed_nothing() is
'Reports whether nobody has committed since this statement''s snapshot was taken; false where more than 1,000
transactions have begun since. It gives the present state at any isolation level.';

create function parley._p_raise_in_use() returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_holders text;
begin
  select string_agg(distinct coalesce(l.pid::text, 'a prepared transaction'), ', ') into v_holders
  from pg_locks as l
  join pg_class as c on c.oid = l.relation
  where l.database = parley._p_database_oid()
    and c.relnamespace = 'parley'::regnamespace
    and c.relkind in ('r', 'S')
    and l.granted
    and l.mode in ('RowExclusiveLock', 'AccessExclusiveLock')
    and l.pid is distinct from pg_backend_pid();
  return parley._p_raise(5061, 'in use', coalesce(v_holders, 'unknown, they have just ended'));
end
$$;

comment on function parley._p_raise_in_use() is
'Says that open transactions keep the broker from being switched, and whose they are.
Errors: 5061, always.';
