-- Checks of the broker as a whole: its switch, its grants, its owners, its tables.

create function parley._p_find_broker_state(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select
    case parley._p_broker_state() when 'DISABLED' then 'broker-disabled' else 'broker-elsewhere' end,
    'database', current_database()::text,
    case parley._p_broker_state()
      when 'DISABLED' then 'The broker is disabled: messages are neither delivered nor read by activation.'
      else parley._p_advice_when_elsewhere()
    end,
    b.disabled_at,
    case when parley._p_original() is null then 'select parley.enable_broker();' else 'select parley.new_broker();' end
  from parley._p_broker as b
  where parley._p_broker_state() <> 'ENABLED'
$$;

comment on function parley._p_find_broker_state(parley._p_scope) is 'Finds a broker that is not enabled here.';

create function parley._p_find_damage(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'damaged', d.object_kind, d.object_name, d.finding, null::timestamptz,
    'select * from parley.check_broker(repair => true);'
  from parley._p_check_definitions() as d
  -- These have checks of their own, with gentler cures.
  where d.error_number not in (9706, 9707)
$$;

comment on function parley._p_find_damage(parley._p_scope) is 'Finds definitions that check_broker would repair.';

create function parley._p_find_lost_rights(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select
    'rights-lost', 'schema', 'parley',
    case
      when has_schema_privilege('public', 'parley', 'usage') is not true
        then 'Only the owner may use the schema parley.'
      else format('Everybody may call private functions, %s of them.', p.functions)
    end,
    null::timestamptz,
    'parley upgrade --repair'
  from (
    -- The default of a function is that everybody may call it. A dump leaves out that grant where it is meant.
    select count(*) as functions
    from pg_proc as f
    where f.pronamespace = 'parley'::regnamespace
      and f.proname like E'\\_p\\_%'
      and f.proacl is null
      and f.oid <> all (parley._p_private_functions_of_everybody()::regprocedure[]::oid[])
  ) as p
  where (p.functions > 0 or has_schema_privilege('public', 'parley', 'usage') is not true)
$$;

comment on function parley._p_find_lost_rights(parley._p_scope) is
'Finds out whether the grants of the schema are lost.';

create function parley._p_find_missing_owners(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select
    'owner-missing', o.class, o.name,
    'Its owner was dropped: nobody but an administrator may use it'
      || case o.class when 'service' then ', and dialogs that begin from it are refused by their targets.' else '.' end,
    null::timestamptz,
    format('select parley.alter_authorization(%L, %L, %L);', o.class, o.name, pg_get_userbyid(n.nspowner))
  from (
    select 'message type' as class, t.name, t.owner, null::integer as queue_id from parley._p_message_type as t
    union all
    select 'contract', c.name, c.owner, null from parley._p_contract as c
    union all
    select 'queue', q.lookup_name, q.owner, q.queue_id from parley._p_queue as q
    union all
    select 'service', s.name, s.owner, s.queue_id from parley._p_service as s
    union all
    select 'route', r.name, r.owner, null from parley._p_route as r
  ) as o
  join pg_namespace as n on n.nspname = 'parley'
  where not exists (select from pg_roles as r where r.oid = o.owner)
    and (scope.queue_ids is null or o.queue_id = any (scope.queue_ids))
$$;

comment on function parley._p_find_missing_owners(parley._p_scope) is 'Finds objects whose owner does not exist.';

create function parley._p_find_autovacuum(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select
    'autovacuum-off', 'table', c.oid::regclass::text,
    'Autovacuum is off for it: it grows with every message that is received.',
    null::timestamptz,
    format('alter table %s reset (autovacuum_enabled);', c.oid::regclass)
  from pg_class as c
  cross join lateral pg_options_to_table(c.reloptions) as o
  where c.relnamespace = 'parley'::regnamespace
    and c.relkind = 'r'
    and o.option_name = 'autovacuum_enabled'
    and not o.option_value::boolean
  union all
  select
    'autovacuum-off', 'server', 'autovacuum', 'Autovacuum is off in the whole server.', null,
    'alter system set autovacuum = on; select pg_reload_conf();'
  where current_setting('autovacuum') = 'off'
$$;

comment on function parley._p_find_autovacuum(parley._p_scope) is 'Finds out where autovacuum is switched off.';
