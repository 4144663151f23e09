-- Whether the client is still there while RECEIVE and GET CONVERSATION GROUP wait for it.
--
-- In autocommit a RECEIVE commits before its client has the messages. A client that is killed while it waits must therefore be noticed before
-- a message is taken. PostgreSQL looks at the connection every client_connection_check_interval, but it starts that timer at the beginning
-- of a statement only: what a function sets, in its body or in its SET clause, comes too late for the statement that calls it (seen on 14
-- to 18). There is nothing else that a function could ask. So the interval is set where the statement finds it when it begins:
--   for the database, when the schema is installed by a role that may, and nobody has set it: new sessions have it from the first statement on
--   for the session, by its first wait, where the database has none: a schema that was restored or whose owner does not own the database
-- What an administrator has set, in the configuration or for the database, stays. A check is one poll() of the socket.

create function parley._p_check_client() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('client_connection_check_interval', '100ms', false);
exception
  -- Some systems cannot tell: PostgreSQL 14 outside Linux, and any on Windows.
  when invalid_parameter_value then
    null;
end
$$;

comment on function parley._p_check_client() is
'Lets the following statements of this session notice within 100 milliseconds that their client has gone, where the system can tell.';

do $$
begin
  if current_setting('client_connection_check_interval') = '0'
    and (select pg_has_role(d.datdba, 'usage') from pg_catalog.pg_database as d where d.datname = current_database())
    and not exists (
      select
      from pg_catalog.pg_db_role_setting as s
      join pg_catalog.pg_database as d on d.oid = s.setdatabase
      where d.datname = current_database() and s.setrole = 0 and array_to_string(s.setconfig, ',') like E'%client\\_connection\\_check\\_interval=%'
    ) then
    execute format('alter database %I set client_connection_check_interval = %L', current_database(), '100ms');
  end if;
exception
  when invalid_parameter_value then
    null;
end
$$;
