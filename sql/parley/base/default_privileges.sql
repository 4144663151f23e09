-- The rights to objects of ours that ALTER DEFAULT PRIVILEGES has given away.
--
-- The role that installs may have said that some role may read all tables that it will make, call all its functions,
-- create in all its schemas.
-- That was not said of a broker: who reads the secret of base/roles.sql may do everything, and so may who makes a
-- function in the schema parley. So the schema takes back what it has not granted itself, when it is installed and from
-- each sequence and view that it makes later. A grant that somebody makes by name is his own decision.

create function parley._p_grantees(acl aclitem[], owner oid) returns setof regrole
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select distinct x.grantee::regrole from aclexplode(acl) as x where x.grantee not in (0, owner)
$$;

comment on function parley._p_grantees(aclitem[], oid) is
'Gives the roles other than the owner that hold a right to an object. PUBLIC is none of them.';

create function parley._p_take_back_relation(relation regclass) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_grantee regrole;
begin
  execute format('revoke all on table %s from public', relation);
  for v_grantee in
    select g.grantee
    from pg_class as c
    cross join parley._p_grantees(c.relacl, c.relowner) as g (grantee)
    where c.oid = relation
  loop
    execute format('revoke all on table %s from %s', relation, v_grantee);
  end loop;
end
$$;

comment on function parley._p_take_back_relation(regclass) is
'Takes all rights to a table, a view or a sequence from everybody but its owner.';

create function parley._p_take_back_all() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_schemas oid[] := array['parley'::regnamespace, 'parley_queue'::regnamespace];
  v_schema regnamespace;
  v_function regprocedure;
  v_grantee regrole;
begin
  revoke all on schema parley, parley_queue from public;
  for v_schema, v_grantee in
    select n.oid, g.grantee
    from pg_namespace as n
    cross join parley._p_grantees(n.nspacl, n.nspowner) as g (grantee)
    where n.oid = any (v_schemas)
  loop
    execute format('revoke all on schema %s from %s', v_schema, v_grantee);
  end loop;
  perform parley._p_take_back_relation(c.oid)
  from pg_class as c
  where c.relnamespace = any (v_schemas) and c.relacl is not null;
  revoke all on all routines in schema parley, parley_queue from public;
  for v_function, v_grantee in
    select p.oid, g.grantee
    from pg_proc as p
    cross join parley._p_grantees(p.proacl, p.proowner) as g (grantee)
    where p.pronamespace = any (v_schemas)
  loop
    execute format('revoke all on routine %s from %s', v_function, v_grantee);
  end loop;
end
$$;

comment on function parley._p_take_back_all() is
'Takes all rights to the schemas parley and parley_queue, and to what is in them, from everybody but their owner: what
is granted is granted afterwards.';

create function parley._p_private_functions_of_everybody() returns text[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select array[
    -- Views call these with the rights of the role that reads them.
    'parley._p_current_role()',
    'parley._p_is_administrator(oid)',
    'parley._p_state_name(text)',
    'parley._p_performance_counters(parley.caller)',
    'parley._p_may_view_state(oid)',
    'parley._p_current_term()',
    'parley._p_broker_state()',
    'parley._p_ids_of_queues_to_receive_from(parley.caller)',
    -- SEND checks by these before it inserts; they have no rights of their own.
    'parley._p_require_one_dimension(anyarray)',
    'parley._p_utf8_bodies(text[])',
    'parley._p_raise(integer, text, text[])',
    -- The procedure wait_for_message calls these, which cannot run with its owner's rights.
    'parley._p_watch_queue(text, integer, parley._p_wait, parley.caller)',
    'parley._p_commit_refusal()',
    -- Functions of several forms call these, which ask who calls.
    'parley._p_send_later_or_once(uuid, text, bytea, text, timestamptz, text, parley.caller)',
    'parley._p_end_without_error(uuid, parley.caller)',
    'parley._p_clean_up(uuid, boolean, parley.caller)',
    'parley._p_create_contract(text, jsonb, text, parley.caller)',
    'parley._p_create_contract_of_text(text, text, text, parley.caller)',
    'parley._p_sees_definition(integer, parley.caller)',
    'parley._p_sees_rollbacks(integer, bigint, parley.caller)',
    'parley._p_simple_queues(parley.caller)',
    'parley._p_schedules(parley.caller)',
    'parley._p_batches(parley.caller)',
    'parley._p_queue_limits(parley.caller)',
    'parley._p_schedule_runs(parley.caller)',
    'parley._p_delivery_claims(parley.caller)',
    'parley._p_queue_quotas(parley.caller)',
    'parley._p_sees_poisoned(integer, parley.caller)',
    'parley._p_sees_set_aside(integer, parley.caller)'
  ]
$$;

comment on function parley._p_private_functions_of_everybody() is
'Lists the functions with private names that everybody may call. A dump leaves out such a grant, because it is the
default; so diagnosis must know which functions had it.';
