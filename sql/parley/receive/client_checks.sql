-- Whether the client is still there while RECEIVE and GET CONVERSATION GROUP wait for it.
--
-- In autocommit a RECEIVE commits before its client has the messages. A client that is killed while it waits must
-- therefore be noticed before a message is taken. PostgreSQL checks the connection every
-- client_connection_check_interval, but it starts that timer at the beginning of a statement only: what a function
-- sets, in its body or in its SET clause, comes too late for the statement that calls it (seen on 14 to 18). So the
-- interval is set where the statement finds it when it begins:
--   for the database, when the schema is installed by a role that may, and nobody has set it: new sessions have it
--     from the first statement on
--   for the session, by its first wait, where the database has none: a schema that was restored or whose owner
--     does not own the database
-- A value that an administrator has set, in the configuration or for the database, stays. A check is one poll() of the
-- socket.
--
-- That first wait itself asks when it has taken something: it sends a NOTICE, which PostgreSQL writes to the socket at
-- once, and a write to a connection that the client has closed ends the session, so that nothing is committed. On a
-- Unix socket the first write fails. On TCP the first one makes the client's system answer that no process is there,
-- and the second fails when that answer has come.

create function parley._p_check_client() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('client_connection_check_interval', '100ms', false);
  perform set_config('parley.unwatched', 'on', true);
exception
  -- Some systems cannot detect it: PostgreSQL 14 outside Linux, and any on Windows.
  when invalid_parameter_value then
    null;
end
$$;

comment on function parley._p_check_client() is
'Lets the following statements of this session notice within 100 milliseconds that their client has gone, where the
system can detect that, and records to the end of the transaction that the statement under way does not.';

create function parley._p_reach_client() returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set client_min_messages = notice
as $$
declare
  v_hint constant text := format(
    'Set it: alter database %I set client_connection_check_interval = ''100ms''.', current_database()
  );
begin
  if current_setting('parley.unwatched', true) is distinct from 'on' then
    return false;
  end if;
  perform set_config('parley.unwatched', '', true);
  for v_write in 1 .. case when inet_client_addr() is null then 1 else 2 end loop
    perform pg_sleep(0.1) where v_write > 1;
    raise notice using
      message = 'parley makes sure that its client is still there',
      detail = 'The database has no client_connection_check_interval: PostgreSQL did not check in the first wait.',
      hint = v_hint;
  end loop;
  -- A write that failed ends the session here.
  perform pg_sleep(0);
  return true;
end
$$;

comment on function parley._p_reach_client() is
'Ends the session when its client has gone during a wait in which PostgreSQL did not check. It returns after a tenth
of a second on TCP, and whether it asked.';

do $$
begin
  if current_setting('client_connection_check_interval') = '0'
    and (select pg_has_role(d.datdba, 'usage') from pg_catalog.pg_database as d where d.datname = current_database())
    and not exists (
      select
      from pg_catalog.pg_db_role_setting as s
      join pg_catalog.pg_database as d on d.oid = s.setdatabase
      where d.datname = current_database()
        and s.setrole = 0
        and array_to_string(s.setconfig, ',') like E'%client\\_connection\\_check\\_interval=%'
    ) then
    execute format('alter database %I set client_connection_check_interval = %L', current_database(), '100ms');
  end if;
exception
  when invalid_parameter_value then
    null;
end
$$;
