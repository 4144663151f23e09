-- What ALTER DEFAULT PRIVILEGES has given away of objects of ours.
--
-- Whoever installs may have said that some role may read all tables that he will make, call all his functions, create in all his schemas. That was not said
-- of a broker: who reads the secret of 020_roles.sql may do everything, and so may who makes a function in the schema parley. So the schema takes back what it has
-- not granted itself, when it is installed and from each sequence and view that it makes later. A grant that somebody makes by name is his own decision.

create function parley._p_take_back(kind text, object text, acl aclitem[], owner oid) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_grantee oid;
begin
  for v_grantee in select distinct x.grantee from aclexplode(acl) as x where x.grantee <> owner loop
    execute format('revoke all on %s %s from %s', kind, object, case v_grantee when 0 then 'public' else v_grantee::regrole::text end);
  end loop;
end
$$;

comment on function parley._p_take_back(text, text, aclitem[], oid) is
'Takes all rights to an object from everybody but its owner.
Arguments: kind, as REVOKE writes it; object, its name, quoted; acl; owner.';

create function parley._p_take_back_relation(relation regclass) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley._p_take_back(case c.relkind when 'S' then 'sequence' else 'table' end, c.oid::regclass::text, c.relacl, c.relowner)
  from pg_class as c
  where c.oid = relation;
end
$$;

comment on function parley._p_take_back_relation(regclass) is 'Takes all rights to a table, a view or a sequence from everybody but its owner.';

create function parley._p_take_back_all() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_schemas oid[] := array['parley'::regnamespace, 'parley_queue'::regnamespace];
begin
  perform parley._p_take_back('schema', n.oid::regnamespace::text, n.nspacl, n.nspowner) from pg_namespace as n where n.oid = any (v_schemas);
  perform parley._p_take_back_relation(c.oid) from pg_class as c where c.relnamespace = any (v_schemas) and c.relacl is not null;
  perform parley._p_take_back('function', p.oid::regprocedure::text, coalesce(p.proacl, acldefault('f', p.proowner)), p.proowner)
  from pg_proc as p
  where p.pronamespace = any (v_schemas);
end
$$;

comment on function parley._p_take_back_all() is
'Takes all rights to the schemas parley and parley_queue, and to what is in them, from everybody but their owner: what is granted is granted afterwards.';
