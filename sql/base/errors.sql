-- How errors leave the broker.
--
-- Each error of the broker carries the SQL Server error number twice: in its SQLSTATE (class SB, then the number
-- in base 36, three digits) and at the start of its DETAIL. The text states the fact, the HINT says what to do.
--
-- PostgreSQL adds a CONTEXT, a line for each function on the way, and drivers print it. For a statement inside of a function it adds
-- the text of the statement, all lines of it; PERFORM is a statement. An assignment is evaluated without one. So what may raise is called as
--   found := parley._p_raise(...);
-- and gives true if it returns at all, which leaves FOUND as PERFORM would. What has to be a statement, as the INSERT of SEND, is one short line.
-- Source: spec section 4.10.

create function parley.sqlstate_of(error_number integer) returns text
language sql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select 'SB'
    || substr('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', error_number / 1296 + 1, 1)
    || substr('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', (error_number / 36) % 36 + 1, 1)
    || substr('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', error_number % 36 + 1, 1)
$$;

comment on function parley.sqlstate_of(integer) is
'Gives the SQLSTATE under which a Service Broker error is raised.
Arguments: error_number, the SQL Server number (0 to 46655).
Source: spec 4.10.';

create function parley.error_number(sqlstate text) returns integer
language sql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select case
    when error_number.sqlstate ~ '^SB[0-9A-Z]{3}$' then
      (strpos('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', substr(error_number.sqlstate, 3, 1)) - 1) * 1296
      + (strpos('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', substr(error_number.sqlstate, 4, 1)) - 1) * 36
      + strpos('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', substr(error_number.sqlstate, 5, 1)) - 1
  end
$$;

comment on function parley.error_number(text) is
'Gives the SQL Server number of an error that was caught, as ERROR_NUMBER() does: exception when others then ... parley.error_number(sqlstate).
Arguments: sqlstate, as a handler has it. The result is null for an error that is not the broker''s.
Source: spec 4.10.';

create function parley._p_raise(error_number integer, message text, detail text, hint text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception using
    errcode = parley.sqlstate_of(error_number),
    message = message,
    detail = 'Service Broker error ' || error_number || '.' || coalesce(' ' || detail, ''),
    hint = coalesce(hint, '');
end
$$;

comment on function parley._p_raise(integer, text, text, text) is
'Raises one error of the broker; never returns.
Arguments: error_number, the SQL Server number; message, the fact; detail, the values; hint, the remedy.
Errors: always, with sqlstate_of(error_number).';

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
  return parley._p_raise(
    5061,
    'the broker is in use',
    'Open transactions send or receive; their process ids: ' || coalesce(v_holders, 'unknown, they have just ended') || '.',
    'Try again when they have finished, or end them: select pg_terminate_backend(pid);'
  );
end
$$;

comment on function parley._p_raise_in_use() is
'Says that open transactions keep the broker from being switched, and whose they are.
Errors: 5061, always.';
