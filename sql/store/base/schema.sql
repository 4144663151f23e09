-- The store: bodies, work that waits, retry policies, tracking and pressure, for the systems that stand on the broker.
--
-- A system is mail, the integration engine and whatever else comes: each has a schema of its own and calls the
-- functions of this one. Nothing here knows what a body or an item of work means.
--
-- Rights: nobody but the owner of the schema may use any of it. Nothing is SECURITY DEFINER: a system's own functions,
-- which run with the owner's rights for its users, ask for the caller's right and then call these.
-- Source: ../shared/spec/hub-transport.md sections 1, 8, 13, 14, 16 and 17.

create schema parley_store;

comment on schema parley_store is
'The store of the systems on the broker: content, work, retry policies, tracking, pressure. Its owner''s alone.';

create view parley_store._p_error as
select e.code, e.situation, e.message, e.cause, e.remedy
from (values
  ('PS001', 'system', 'system "%1$s" is not registered', null,
    'Call parley_store.add_system(%1$L) when the system is installed.'),
  ('PS002', 'range', '%1$s is %2$s', '%3$s to %4$s are allowed.', 'Give a value in that range.'),
  ('PS002', 'missing', '%1$s is null', null, 'Give a value.'),
  ('PS002', 'lengths', 'arrays differ in length', '%1$s has %2$s elements, %3$s has %4$s.',
    'Give one element for each item.'),
  ('PS002', 'filter', 'unknown condition "%1$s" of a filter', 'Known are: %2$s.',
    'Leave it out or write it as listed.'),
  ('PS003', 'content', 'content %1$s cannot be read', 'It does not exist, or %2$s %3$s does not refer to it.',
    'Name a system and a holder that refer to it.'),
  ('PS003', 'begun', 'content %1$s is not being written', 'It is finished, or was removed because its time was over.',
    'Begin again.'),
  ('PS004', 'size', 'content %1$s has %2$s bytes in %3$s chunks, %4$s were announced',
    'The chunks must be numbered from 0 on without a gap.', 'Write it again.'),
  ('PS005', 'lease', 'lease %1$s is over',
    'Its term ran out and its items were given back, or all of them were completed.',
    'Drop what was done under it: another holder has the items.'),
  ('PS006', 'lane', 'lane "%1$s" of system "%2$s" does not exist', null, 'See parley_store.lanes.'),
  ('PS007', 'policy', 'retry policy "%1$s" does not exist', null, 'See parley_store.retry_policies.'),
  ('PS007', 'policy form', 'retry policy "%1$s" is not valid', '%2$s',
    'See docs/internals/store.md for the form and the bounds of a policy.'),
  ('PS008', 'threshold', 'thresholds of resource "%1$s" are not valid', '%2$s',
    'Both levels must be left at values below those at which they are entered.'),
  ('PS009', 'isolation', 'this needs READ COMMITTED',
    'The transaction is %1$s and does not see what others have done since it began.',
    'Begin with BEGIN ISOLATION LEVEL READ COMMITTED. Where that is not the default any more, parley diagnose names '
      || 'who has set another default_transaction_isolation, and the cure.'),
  ('PS010', 'incomplete', 'content %1$s is not all there', '%2$s of %3$s %4$s were found.',
    'Read it again in a new transaction. Where that fails too its chunks are lost: restore them from a backup.')
) as e (code, situation, message, cause, remedy);

comment on view parley_store._p_error is 'The errors of the store; %1$s and the like stand for a value.';

create view parley_store.errors as
select e.code as sqlstate, e.situation, e.message, e.cause, e.remedy from parley_store._p_error as e;

comment on view parley_store.errors is 'Each error of the store, a row for each situation in which it is raised.';

create function parley_store._p_raise(situation text, variadic arguments text[] default '{}') returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_error parley_store._p_error;
begin
  select * into strict v_error from parley_store._p_error as e where e.situation = _p_raise.situation;
  raise exception using
    errcode = v_error.code,
    message = format(v_error.message, variadic arguments),
    detail = coalesce(format(v_error.cause, variadic arguments), ''),
    hint = format(v_error.remedy, variadic arguments);
end
$$;

comment on function parley_store._p_raise(text, text[]) is
'Raises one error of the store; never returns.
Arguments: situation, which names a row of parley_store.errors; arguments, the values that its texts have places for.
Errors: always, PS001 to PS010.';

create function parley_store._p_require_range(
  name text, value anycompatible, least_value anycompatible, largest_value anycompatible
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if value is null or value < least_value or value > largest_value then
    found := parley_store._p_raise(
      'range', name, coalesce(value::text, 'null'), least_value::text, largest_value::text
    );
  end if;
  return true;
end
$$;

comment on function parley_store._p_require_range(text, anycompatible, anycompatible, anycompatible) is
'Refuses a number or an interval that is out of range, or null.
Errors: PS002.';

create function parley_store._p_sees_all() returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return current_setting('transaction_isolation') = 'read committed';
end
$$;

comment on function parley_store._p_sees_all() is
'Reports whether each statement of this transaction sees what was committed before it.';

create function parley_store._p_require_read_committed() returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if not parley_store._p_sees_all() then
    found := parley_store._p_raise('isolation', upper(current_setting('transaction_isolation') collate "C"));
  end if;
  return true;
end
$$;

comment on function parley_store._p_require_read_committed() is
'Refuses a transaction with an old snapshot.
Errors: PS009.';

create table parley_store._p_system (
  system text primary key check (system ~ '^[a-z][a-z0-9_]{0,30}$'),
  queue_name text not null,
  created_at timestamptz not null default now()
);

comment on table parley_store._p_system is
'The systems that use the store, and the simple queue on which their lanes wait.';

create function parley_store._p_queue_of(system text) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue text;
begin
  select s.queue_name into v_queue from parley_store._p_system as s where s.system = _p_queue_of.system;
  if not found then
    found := parley_store._p_raise('system', coalesce(system, 'null'));
  end if;
  return v_queue;
end
$$;

comment on function parley_store._p_queue_of(text) is
'Gives the name of the simple queue on which the lanes of a system wait.
Errors: PS001.';

create table parley_store._p_operation (
  operation_id bigint generated always as identity primary key,
  system text not null,
  operation text not null,
  filter jsonb,
  reason text,
  items integer not null,
  done_by text not null,
  done_at timestamptz not null default clock_timestamp()
);

comment on table parley_store._p_operation is 'The actions of operators: append-only.';

create index on parley_store._p_operation (done_at);

create view parley_store.operations as
select o.operation_id, o.system, o.operation, o.filter, o.reason, o.items, o.done_by, o.done_at
from parley_store._p_operation as o;

comment on view parley_store.operations is
'The actions of operators on lanes and items of work, with their filters and counts.';

create function parley_store._p_audit(
  system text, operation text, filter jsonb, reason text, items integer, done_by text
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley_store._p_operation (system, operation, filter, reason, items, done_by)
  values ($1, $2, $3, $4, $5, coalesce($6, current_user));
end
$$;

comment on function parley_store._p_audit(text, text, jsonb, text, integer, text) is
'Records an operation. It is part of the transaction that did it.
Arguments: done_by, on whose behalf; null for the current role.';

create function parley_store._p_forget_operations(retention interval) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_forgotten integer;
begin
  -- Some at a time, so that no call takes long: what is left goes with the next.
  delete from parley_store._p_operation as o
  where o.ctid = any (array(
    select p.ctid
    from parley_store._p_operation as p
    where p.done_at < clock_timestamp() - retention
    order by p.done_at
    limit 10000
    for update skip locked
  ));
  get diagnostics v_forgotten = row_count;
  return v_forgotten;
end
$$;

comment on function parley_store._p_forget_operations(interval) is
'Removes what operators have done before a time, some of it; gives how many.
Arguments: retention, how long it is kept.';

create function parley_store.take_back_relation(relation regclass) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_grantee regrole;
begin
  execute format('revoke all on table %s from public', relation);
  for v_grantee in
    select distinct x.grantee::regrole
    from pg_class as c
    cross join aclexplode(c.relacl) as x
    where c.oid = relation and x.grantee not in (0, c.relowner)
  loop
    execute format('revoke all on table %s from %s', relation, v_grantee);
  end loop;
end
$$;

comment on function parley_store.take_back_relation(regclass) is
'Takes all rights to a table, a view or a sequence from everybody but its owner: for what is made at run time, to which
default privileges may have given rights.
Arguments: relation.';

create function parley_store.take_back_schema(name regnamespace) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_function regprocedure;
  v_grantee regrole;
begin
  execute format('revoke all on schema %s from public', name);
  for v_grantee in
    select distinct x.grantee::regrole
    from pg_namespace as n
    cross join aclexplode(n.nspacl) as x
    where n.oid = name and x.grantee not in (0, n.nspowner)
  loop
    execute format('revoke all on schema %s from %s', name, v_grantee);
  end loop;
  perform parley_store.take_back_relation(c.oid)
  from pg_class as c
  where c.relnamespace = name and c.relkind in ('r', 'p', 'v', 'm', 'S') and c.relacl is not null;
  execute format('revoke all on all routines in schema %s from public', name);
  for v_function, v_grantee in
    select p.oid::regprocedure, x.grantee::regrole
    from pg_proc as p
    cross join aclexplode(p.proacl) as x
    where p.pronamespace = name and x.grantee not in (0, p.proowner)
  loop
    execute format('revoke all on routine %s from %s', v_function, v_grantee);
  end loop;
end
$$;

comment on function parley_store.take_back_schema(regnamespace) is
'Takes all rights to a schema and to what is in it from everybody but the owner, when a system is installed: what is
granted is granted afterwards.
Arguments: name, the schema.';
