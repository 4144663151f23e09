-- Oids of roles: the broker's rows name the owner of an object, the grantee of a right, and the role that runs work.
--
-- The broker asks pg_has_role with each message, so its rows have oids. An oid is a number of one server: in a restored
-- dump it is the oid of no role, or of another one. So each role in such a column also has a number, with its name
-- (base/role_numbers.sql). Where the database comes to live, one statement fills _p_found_roles, without which no call
-- is answered (base/roles.sql), when a restore or an operator runs it. The same statement replaces the oids of the
-- columns by those that the names have there.
-- A role that the new server lacks gets an oid from the upper end, which no server ever gives, so no other role has its
-- objects and rights. When a role of that name is made there, and is followed or given a number, it has them, as with
-- mail. The objects and rights of a role that had been dropped, or never had a number, become nobody's for good.
--
-- The columns are those of the domain parley._p_role_oid, found in the catalog, so none can be forgotten. They are no
-- regrole: COPY of one fails where one role is missing, and takes all rows with it.
--
-- Invariants, and what keeps each:
--   no role has elsewhere what another had   each oid is replaced that is not known to be that of a role there, in the
--     transaction that fills _p_found_roles
--   each role has a number before it is dumped   a trigger on the table gives it one; columns that are only written
--     with an owner or a grantee of another table, or that may be lost, need none (sql/role_oids_test.go has them)
-- Locks: what an update of the tables takes, once in the life of a database at a place.
-- Cost: none for who sends or receives. Where a database has come to, one walk over each of the tables.

create domain parley._p_role_oid as oid;

comment on domain parley._p_role_oid is
'The oid of a role, 0 for public. Where the database is restored it is replaced by that of the role of the same name.';

create table parley._p_role_place (is_only boolean primary key default true check (is_only), place uuid not null);

comment on table parley._p_role_place is 'One row: the place in which the columns of the domain _p_role_oid are right.';

insert into parley._p_role_place (place)
select p.place from parley._p_place as p;

create function parley._p_nobody(number integer) returns oid
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select (4294967295 - number)::oid
$$;

comment on function parley._p_nobody(integer) is
'Gives the oid that stands for a role which there is not here, by its number; that of 0 for one of which nothing is
known. No server gets there.';

create function parley._p_replace_grantees(old_roles oid[], new_roles oid[], is_all boolean) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_rows parley._p_permission[];
begin
  -- Removed and inserted anew: two roles may have exchanged their oids, and the key is unique at every moment.
  v_rows := array(
    select p from parley._p_permission as p where p.grantee <> 0 and (is_all or p.grantee = any (old_roles))
  );
  delete from parley._p_permission as p where p.grantee <> 0 and (is_all or p.grantee = any (old_roles));
  insert into parley._p_permission (class, object_id, permission, grantee, grantor, is_grantable)
  select r.class, r.object_id, r.permission, m.new_role, r.grantor, bool_or(r.is_grantable)
  from (
    select u.class, u.object_id, u.permission, u.grantee, u.grantor, u.is_grantable from unnest(v_rows) as u
  ) as r
  join unnest(old_roles, new_roles) as m (old_role, new_role) on m.old_role = r.grantee
  group by r.class, r.object_id, r.permission, m.new_role, r.grantor
  on conflict do nothing;
end
$$;

comment on function parley._p_replace_grantees(oid[], oid[], boolean) is
'Gives grants to the roles that have them here; grants of roles of which nothing is known are gone.
Arguments: as _p_replace_roles.';

create function parley._p_replace_roles(old_roles oid[], new_roles oid[], is_all boolean) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_column record;
begin
  perform parley._p_replace_grantees(old_roles, new_roles, is_all);
  for v_column in
    select a.attrelid::regclass as relation, a.attname
    from pg_attribute as a
    join pg_class as c on c.oid = a.attrelid and c.relkind = 'r'
    where a.atttypid = 'parley._p_role_oid'::regtype
      and not (a.attrelid = 'parley._p_permission'::regclass and a.attname = 'grantee')
    order by 1, 2
  loop
    execute format(
      'update %1$s as t set %2$I = n.new_role
      from (
        select o.old_role, coalesce(m.new_role, parley._p_nobody(0)) as new_role
        from (select distinct d.%2$I::oid as old_role from %1$s as d) as o
        left join unnest($1, $2) as m (old_role, new_role) using (old_role)
        where o.old_role <> 0 and ($3 or m.new_role is not null)
      ) as n
      where t.%2$I = n.old_role and n.new_role is distinct from n.old_role',
      v_column.relation, v_column.attname
    ) using old_roles, new_roles, is_all;
  end loop;
end
$$;

comment on function parley._p_replace_roles(oid[], oid[], boolean) is
'Replaces oids of roles in all columns that have them.
Arguments: old_roles, new_roles, each by the one at its place; is_all, whether what is not among them becomes
nobody''s.';

create function parley._p_find_roles_again(place uuid) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_old oid[];
  v_new oid[];
begin
  perform from parley._p_role_place as r where r.place = _p_find_roles_again.place for update;
  if not found then
    -- Those whose place is another one than where the columns are right were not there either, and stand for nobody.
    select array_agg(m.old_role), array_agg(m.new_role) into v_old, v_new
    from (
      select distinct on (o.old_role) o.old_role, coalesce(o.here, parley._p_nobody(o.number)) as new_role
      from (
        select k.number, k.is_current, to_regrole(quote_ident(k.name))::oid as here,
          case when k.place = r.place then k.role else parley._p_nobody(k.number) end as old_role
        from parley._p_role_number as k
        cross join parley._p_role_place as r
        where k.role <> 0
      ) as o
      order by o.old_role, o.is_current desc, o.number desc
    ) as m;
    perform parley._p_replace_roles(coalesce(v_old, '{}'), coalesce(v_new, '{}'), true);
    perform parley._p_find_numbers_again();
    update parley._p_role_place as r set place = _p_find_roles_again.place;
  end if;
  return true;
end
$$;

comment on function parley._p_find_roles_again(uuid) is
'Finds the roles again, by their names, when the database has come to another place. True, always.
Arguments: place, where it is.';

create function parley._p_follow_number() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley._p_replace_roles(array[parley._p_nobody(new.number)], array[new.role], false);
  return null;
end
$$;

comment on function parley._p_follow_number() is
'Gives a role that was not here when the database came, and now is, what stood for it.';

create trigger _p_follow_number after update of place on parley._p_role_number
for each row when (old.place <> new.place and new.role <> 0) execute function parley._p_follow_number();

create function parley._p_number_roles() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_row constant jsonb := to_jsonb(new);
  v_role oid;
begin
  foreach v_role in array array(select (v_row ->> c.name)::oid from unnest(tg_argv) as c (name)) loop
    if v_role <> 0 and exists (select from pg_roles as r where r.oid = v_role) then
      perform parley._p_number_at_once(v_role);
    end if;
  end loop;
  return null;
end
$$;

comment on function parley._p_number_roles() is
'Gives the roles of a row numbers, by which they are found again elsewhere. Arguments of the trigger: columns.';
