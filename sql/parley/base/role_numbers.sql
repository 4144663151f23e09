-- Numbers of roles: how rows say whose they are, so that a dump may carry them elsewhere. Mail has the numbers in its
-- rows: messages, their tracking, idempotency keys, service bindings, rights, quotas, stored attachments. The broker,
-- which asks for owners and grantees with each message, has oids, which base/role_oids.sql keeps right by the numbers.
--
-- An oid is a number of one server. Where a dump is restored on another it is nobody's, or that of somebody else, who
-- would see messages that are not his and have rights that nobody gave. So these rows have numbers of our own, which a
-- dump carries. A row here says which role a number is: by the oid in the place where the row was written, and by the
-- name everywhere else, as GRANT of a dump does. 0 is public.
--
-- The place is this database as it lives: a materialized view, whose row a dump does not contain, so that a database
-- that is restored is another place. A copy of the files is the same one, and its roles are the same too.
-- The columns are plain: COPY of a regrole fails where one role is missing, and takes all rows with it.
--
-- Invariants, and what keeps each:
--   a number is that of one role at most   in its place an oid is one role, and a name is one role everywhere
--   a number is never given to a second role   it comes from a sequence; rows of roles that are gone have the role 0
--   a role that was dropped and made again has another number   its oid is another one. Until maintenance has
--     followed, a dump has the name, and elsewhere who has that name gets what was his
--   what a role writes has one number   the unique key on what is current. By others, which it has where databases were
--     restored or where it got one in two transactions at once, it still has what was written before
-- Locks: the first transaction that needs a number of a role has others of the same role that need it wait for its end.
-- A grant or a quota, which give a role one, wait for nobody (_p_number_at_once), nor does maintenance.
-- Cost: submission reads the numbers of its role in the statement that reads what applies to it. There is no index for
-- that: to go through the rows, a few for most, takes less. Where a role has SEND by inheritance alone, all grants of
-- it are gone through, and the role of each is read.

create materialized view parley._p_place as
select gen_random_uuid() as place;

comment on materialized view parley._p_place is
'The identity of this database as it lives, which a dump does not contain.';

create table parley._p_role_number (
  number integer generated always as identity primary key,
  name text not null,
  role oid not null,
  place uuid not null,
  is_current boolean not null
);

comment on table parley._p_role_number is
'Roles by numbers that a dump may carry elsewhere. role: its oid in the place, 0 when it is gone; place: that in which
the number was given, or the role was found again by its name; is_current: what the role writes there has this number.';

create unique index _p_role_number_current on parley._p_role_number (place, role) where is_current;

create view parley._p_numbered_role as
select k.number, k.name, k.place = p.place as is_here, k.role = 0 as is_gone,
  case when k.place = p.place or k.role = 0 then nullif(k.role, 0) else to_regrole(quote_ident(k.name))::oid end as role
from parley._p_role_number as k
cross join parley._p_place as p;

comment on view parley._p_numbered_role is
'Which role has a number here. is_here: it has it by its oid, which may be one that no role has any more; otherwise by
its name, as far as that is one; is_gone: maintenance has seen that there is no such role; role: null then, and when no
role has that name; name: what it was called when that was last written.';

create view parley._p_named_role as
select k.number, r.oid as role, coalesce(r.rolname::text, k.name) as name
from parley._p_numbered_role as k
left join pg_roles as r on r.oid = k.role
where r.oid is not null or not (k.is_here or k.is_gone)
union all
select 0, null, 'public';

comment on view parley._p_named_role is
'The names here of roles that have numbers, and public. role: null for public, and for who was not found again where
the database was restored.';

create function parley._p_numbers_of(role oid) returns integer[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
set jit = off
as $$
begin
  return array(
    select k.number
    from pg_roles as r
    cross join parley._p_place as p
    join parley._p_role_number as k
      on case when k.place = p.place then k.role = r.oid else k.name = r.rolname and k.role <> 0 end
    where r.oid = _p_numbers_of.role
    order by (k.is_current and k.place = p.place) desc, k.is_current desc, k.number desc
  );
end
$$;

comment on function parley._p_numbers_of(oid) is
'Gives the numbers that are those of a role, the current one first. There are several where databases were restored.';

create function parley._p_number_of(of_role oid) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_place constant uuid := (select p.place from parley._p_place as p);
  v_name constant text := pg_get_userbyid(_p_number_of.of_role);
  v_is_again boolean := false;
  v_number integer;
begin
  loop
    select k.number into v_number
    from parley._p_role_number as k
    where k.place = v_place and k.role = _p_number_of.of_role and k.is_current;
    exit when found;
    v_number := (parley._p_numbers_of(of_role))[1];
    if v_number is null then
      insert into parley._p_role_number as k (name, role, place, is_current)
      values (v_name, _p_number_of.of_role, v_place, true)
      on conflict (place, role) where is_current do nothing
      returning k.number into v_number;
      exit when found;
    else
      -- Found again by its name: from now on it may be renamed here.
      begin
        update parley._p_role_number as k
        set name = v_name, role = _p_number_of.of_role, place = v_place, is_current = k.number = v_number
        where case when k.place = v_place then k.role = _p_number_of.of_role else k.name = v_name and k.role <> 0 end;
        exit;
      exception
        -- Another session has just given it one. At an older snapshot that is never seen.
        when unique_violation then
          if v_is_again then
            raise;
          end if;
          v_is_again := true;
      end;
    end if;
  end loop;
  return v_number;
end
$$;

comment on function parley._p_number_of(oid) is
'Gives the number with which a role writes, which it gets where it has none.
Errors: 40001 at an older snapshot.';

create function parley._p_number_at_once(role oid) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '1ms'
as $$
declare
  v_number integer := case when _p_number_at_once.role = 0 then 0 end;
begin
  v_number := coalesce(v_number, (parley._p_numbers_of(_p_number_at_once.role))[1]);
  if v_number is null then
    begin
      v_number := parley._p_number_of(_p_number_at_once.role);
    exception
      when lock_not_available then
        insert into parley._p_role_number as k (name, role, place, is_current)
        select pg_get_userbyid(_p_number_at_once.role), _p_number_at_once.role, p.place, false
        from parley._p_place as p
        returning k.number into v_number;
    end;
  end if;
  return v_number;
end
$$;

comment on function parley._p_number_at_once(oid) is
'Gives a number of a role, for what others say of it: where the role gets its first one in a transaction that is open,
another, instead of waiting for that transaction.
Arguments: role; 0, public, has the number 0.';

create function parley._p_role_with(number integer) returns oid
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select r.oid
  from parley._p_numbered_role as k
  join pg_roles as r on r.oid = k.role
  where k.number = _p_role_with.number
$$;

comment on function parley._p_role_with(integer) is 'Gives the role that has a number; null when it is gone.';

create function parley._p_name_with(number integer) returns text
language sql stable strict
set search_path = pg_catalog, pg_temp
as $$
  select case
    when _p_name_with.number = 0 then 'public'
    else (select k.name from parley._p_role_number as k where k.number = _p_name_with.number)
  end
$$;

comment on function parley._p_name_with(integer) is
'Gives the name of the role that has a number, or had it until it was dropped.';

create function parley._p_find_numbers_again() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  -- Found again by their names: from now on they may be renamed here.
  update parley._p_role_number as k
  set role = f.role, place = f.place, is_current = f.is_current
  from (
    select o.number, r.oid as role, p.place,
      o.number is not distinct from (parley._p_numbers_of(r.oid))[1] as is_current
    from parley._p_role_number as o
    join parley._p_place as p on p.place <> o.place
    join pg_roles as r on r.rolname = o.name
    where o.role <> 0
    for update of o skip locked
  ) as f
  where k.number = f.number;
end
$$;

comment on function parley._p_find_numbers_again() is
'Gives numbers of another place to the roles that have their names here: from now on they may be renamed.
Errors: 23505 of a role that has just got another one.';

create function parley._p_follow_roles() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_gone integer[];
begin
  begin
    perform parley._p_find_numbers_again();
  exception
    -- Of a role that has just got another one; the next time it is seen.
    when unique_violation then
      null;
  end;
  update parley._p_role_number as k
  set name = f.rolname
  from (
    select o.number, r.rolname
    from parley._p_role_number as o
    join parley._p_place as p on p.place = o.place
    join pg_roles as r on r.oid = o.role and r.rolname <> o.name
    for update of o skip locked
  ) as f
  where k.number = f.number;
  v_gone := array(
    select o.number
    from parley._p_role_number as o
    join parley._p_place as p on p.place = o.place
    where o.role <> 0 and not exists (select from pg_roles as r where r.oid = o.role)
    for update of o skip locked
  );
  update parley._p_role_number as k set role = 0, is_current = false where k.number = any (v_gone);
  return cardinality(v_gone);
end
$$;

comment on function parley._p_follow_roles() is
'Writes down the names of roles that were renamed, and takes from roles that are gone their numbers; gives how many
numbers. After that a dump names who has them, or nobody.';
