-- Numbers of roles: how messages, their tracking, idempotency keys and bindings say whose they are.
--
-- An oid is a number of one server. Where a dump is restored on another it is nobody's, or that of somebody else, who
-- would see messages that are not his, and deliver by rights that nobody gave. So rows of mail have numbers of our own,
-- and a row here says which role a number is: by regrole, which a dump writes as a name, and by the name as text. Where
-- both agree it is that role, on any server. Where they differ the role was renamed, if the row was written on this
-- server; otherwise it was dropped before the dump, which has the bare oid of it, and the number is nobody's.
--
-- Invariants, and what keeps each:
--   a role of a server has one number   the unique key on what it is there, which nothing maps to other oids
--   a role that was dropped and made again has another number   its oid is another one
--   a number is never given to a second role   it comes from a sequence; rows of roles that are gone lose the role
-- Locks: the first transaction that needs a number of a role has others of the same role that need it wait for its end.
-- To grant SEND to a role gives it one.
-- Cost: submission reads the row of its role in the statement that reads what applies to it, 1 to 4 us of 215 of the
-- processor. There is no index for that: to go through the rows, a few for most, took less than an index (6 us); so
-- does the check of the right, which goes through all grants of SEND.

create table parley_mail._p_role_number (
  number integer generated always as identity primary key,
  role regrole not null,
  name name not null,
  system_identifier bigint not null,
  role_there oid,
  constraint _p_role_number_there_key unique (system_identifier, role_there)
);

comment on table parley_mail._p_role_number is
'Roles by numbers that a dump may carry to another server. role: 0 when it is gone; system_identifier: the server on
which the number was given, or the role was found again; role_there: its oid on that server.';

create function parley_mail._p_server() returns bigint
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select c.system_identifier from pg_control_system() as c
$$;

comment on function parley_mail._p_server() is 'Gives the identifier that this server got when it was created.';

create function parley_mail._p_number_of(role oid) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_server bigint;
  v_number integer;
begin
  select max(k.number) into v_number
  from parley_mail._p_role_number as k
  where k.role = _p_number_of.role and k.name = pg_get_userbyid(_p_number_of.role);
  if v_number is not null then
    return v_number;
  end if;
  v_server := parley_mail._p_server();
  loop
    -- It was renamed, or another session has just given it a number.
    select k.number into v_number
    from parley_mail._p_role_number as k
    where k.system_identifier = v_server and k.role_there = _p_number_of.role;
    exit when found;
    insert into parley_mail._p_role_number as k (role, name, system_identifier, role_there)
    values (_p_number_of.role, pg_get_userbyid(_p_number_of.role), v_server, _p_number_of.role)
    on conflict on constraint _p_role_number_there_key do nothing
    returning k.number into v_number;
    exit when found;
  end loop;
  return v_number;
end
$$;

comment on function parley_mail._p_number_of(oid) is
'Gives the number of a role, which it gets where it has none.
Errors: 40001 at an older snapshot.';

create function parley_mail._p_numbers_of(role oid) returns integer[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select k.number
    from parley_mail._p_role_number as k
    join pg_roles as r on r.oid = k.role
    where k.role = _p_numbers_of.role
      and case when r.rolname = k.name then true else k.system_identifier = parley_mail._p_server() end
  );
end
$$;

comment on function parley_mail._p_numbers_of(oid) is
'Gives the numbers that are those of a role: one, or several where databases were restored.';

create function parley_mail._p_role_with(number integer) returns oid
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select k.role
  from parley_mail._p_role_number as k
  join pg_roles as r on r.oid = k.role
  where k.number = _p_role_with.number
    and case when r.rolname = k.name then true else k.system_identifier = parley_mail._p_server() end
$$;

comment on function parley_mail._p_role_with(integer) is 'Gives the role that has a number; null when it is gone.';

create function parley_mail._p_name_with(number integer) returns text
language sql stable strict
set search_path = pg_catalog, pg_temp
as $$
  select k.name::text from parley_mail._p_role_number as k where k.number = _p_name_with.number
$$;

comment on function parley_mail._p_name_with(integer) is
'Gives the name of the role that has a number, or had it until it was dropped.';

create function parley_mail._p_follow_roles() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_server constant bigint := parley_mail._p_server();
  v_done integer;
begin
  -- Found again by its name: from now on it may be renamed here.
  update parley_mail._p_role_number as k
  set system_identifier = v_server, role_there = k.role
  where k.system_identifier <> v_server
    and exists (select from pg_roles as r where r.oid = k.role and r.rolname = k.name)
    and not exists (
      select
      from parley_mail._p_role_number as o
      where o.number <> k.number and o.role = k.role
        and (o.system_identifier = v_server or (o.name = k.name and o.number > k.number))
    );
  update parley_mail._p_role_number as k
  set name = r.rolname
  from pg_roles as r
  where r.oid = k.role and r.rolname <> k.name and k.system_identifier = v_server;
  update parley_mail._p_role_number as k
  set role = 0::regrole, role_there = null
  where k.role <> 0::regrole and parley_mail._p_role_with(k.number) is null;
  get diagnostics v_done = row_count;
  delete from parley_mail._p_right as r
  where r.grantee <> 0::regrole and not exists (select from pg_roles as o where o.oid = r.grantee);
  delete from parley_mail._p_quota as q
  where q.role <> 0::regrole and not exists (select from pg_roles as r where r.oid = q.role);
  return v_done;
end
$$;

comment on function parley_mail._p_follow_roles() is
'Writes down the names of roles that were renamed, and takes from roles that are gone their numbers, rights and quotas;
gives how many had a number. After that a dump names who has them, or nobody.';
