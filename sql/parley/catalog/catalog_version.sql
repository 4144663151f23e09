-- The version of the catalog: a number that each change of it moves on, so that what was found there may be kept and
-- used again (conversation/local_dialogs.sql).
--
-- A sequence, because everybody sees its value at once, while rows of the catalog are seen when their transaction has
-- committed. A transaction that changes the catalog holds the lock that _p_is_catalog_changing asks for until it ends,
-- in a mode that excludes no other, and moves the number on under it. So: read the number; if nobody holds the lock
-- after that, all changes up to this number have ended, and a statement that begins then sees them; what it finds holds
-- for as long as the number stays. A change that is rolled back leaves a number that is too high, which costs a search
-- and nothing else. Rights hang on memberships of roles, which no trigger sees, so they are asked for each time. A
-- GRANT and a REVOKE count all the same: BEGIN DIALOG asks for the right to send to a target before the first SEND
-- does.

create sequence parley._p_catalog_version;

-- It is a lock of a table, and not an advisory one: that anybody could take, and hold against those who change
-- something.
create table parley._p_catalog_change (is_empty boolean not null constraint _p_catalog_change_is_empty check (false));

comment on table parley._p_catalog_change is
'A transaction that changes the catalog holds a lock of it, ROW SHARE, until it ends. It never holds a row.';

alter table parley._p_catalog_change replica identity full;

create function parley._p_change_catalog() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if tg_op <> 'UPDATE' or new *<> old then
    lock table parley._p_catalog_change in row share mode;
    perform nextval('parley._p_catalog_version');
  end if;
  return null;
end
$$;

comment on function parley._p_change_catalog() is
'Moves the version of the catalog on, for each row of it that a statement changes: one that finds none, or says again
what a row has, leaves it.';

create function parley._p_is_catalog_changing() returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (
    select
    from pg_locks as l
    where l.locktype = 'relation'
      and l.relation = 'parley._p_catalog_change'::regclass
      and l.mode = 'RowShareLock'
      and l.database = parley._p_database_oid()
  );
end
$$;

comment on function parley._p_is_catalog_changing() is
'Reports whether a transaction, our own and prepared ones included, has changed the catalog and not ended yet.
Cost: a read of the lock table.';

create trigger _p_change_catalog after insert or update or delete on parley._p_broker
for each row execute function parley._p_change_catalog();
create trigger _p_empty_catalog after truncate on parley._p_broker
for each statement execute function parley._p_change_catalog();

create trigger _p_change_catalog after insert or update or delete on parley._p_message_type
for each row execute function parley._p_change_catalog();
create trigger _p_empty_catalog after truncate on parley._p_message_type
for each statement execute function parley._p_change_catalog();

create trigger _p_change_catalog after insert or update or delete on parley._p_contract
for each row execute function parley._p_change_catalog();
create trigger _p_empty_catalog after truncate on parley._p_contract
for each statement execute function parley._p_change_catalog();

create trigger _p_change_catalog after insert or update or delete on parley._p_contract_message_type
for each row execute function parley._p_change_catalog();
create trigger _p_empty_catalog after truncate on parley._p_contract_message_type
for each statement execute function parley._p_change_catalog();

create trigger _p_change_catalog after insert or update or delete on parley._p_queue
for each row execute function parley._p_change_catalog();
create trigger _p_empty_catalog after truncate on parley._p_queue
for each statement execute function parley._p_change_catalog();

create trigger _p_change_catalog after insert or update or delete on parley._p_service
for each row execute function parley._p_change_catalog();
create trigger _p_empty_catalog after truncate on parley._p_service
for each statement execute function parley._p_change_catalog();

create trigger _p_change_catalog after insert or update or delete on parley._p_service_contract
for each row execute function parley._p_change_catalog();
create trigger _p_empty_catalog after truncate on parley._p_service_contract
for each statement execute function parley._p_change_catalog();

create trigger _p_change_catalog after insert or update or delete on parley._p_priority
for each row execute function parley._p_change_catalog();
create trigger _p_empty_catalog after truncate on parley._p_priority
for each statement execute function parley._p_change_catalog();

create trigger _p_change_catalog after insert or update or delete on parley._p_route
for each row execute function parley._p_change_catalog();
create trigger _p_empty_catalog after truncate on parley._p_route
for each statement execute function parley._p_change_catalog();

create trigger _p_change_catalog after insert or update or delete on parley._p_permission
for each row execute function parley._p_change_catalog();
create trigger _p_empty_catalog after truncate on parley._p_permission
for each statement execute function parley._p_change_catalog();

-- A replication worker and a restore turn ordinary triggers off.
do $$
begin
  alter table parley._p_broker enable always trigger _p_change_catalog;
  alter table parley._p_broker enable always trigger _p_empty_catalog;
  alter table parley._p_message_type enable always trigger _p_change_catalog;
  alter table parley._p_message_type enable always trigger _p_empty_catalog;
  alter table parley._p_contract enable always trigger _p_change_catalog;
  alter table parley._p_contract enable always trigger _p_empty_catalog;
  alter table parley._p_contract_message_type enable always trigger _p_change_catalog;
  alter table parley._p_contract_message_type enable always trigger _p_empty_catalog;
  alter table parley._p_queue enable always trigger _p_change_catalog;
  alter table parley._p_queue enable always trigger _p_empty_catalog;
  alter table parley._p_service enable always trigger _p_change_catalog;
  alter table parley._p_service enable always trigger _p_empty_catalog;
  alter table parley._p_service_contract enable always trigger _p_change_catalog;
  alter table parley._p_service_contract enable always trigger _p_empty_catalog;
  alter table parley._p_priority enable always trigger _p_change_catalog;
  alter table parley._p_priority enable always trigger _p_empty_catalog;
  alter table parley._p_route enable always trigger _p_change_catalog;
  alter table parley._p_route enable always trigger _p_empty_catalog;
  alter table parley._p_permission enable always trigger _p_change_catalog;
  alter table parley._p_permission enable always trigger _p_empty_catalog;
end
$$;
