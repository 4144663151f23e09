-- The interface: functions and views that everybody may call and read. Each function of it asks for the caller's right
-- itself, and is not compiled.

do $$
declare
  v_function regprocedure;
  v_view regclass;
begin
  perform parley_store.take_back_schema('parley_flow');
  grant usage on schema parley_flow to public;
  for v_function in
    select p.oid::regprocedure
    from pg_catalog.pg_proc as p
    where p.pronamespace = 'parley_flow'::regnamespace and p.proname not like E'\\_p\\_%'
  loop
    execute format('grant execute on function %s to public', v_function);
  end loop;
  for v_view in
    select c.oid::regclass
    from pg_catalog.pg_class as c
    where c.relnamespace = 'parley_flow'::regnamespace and c.relkind = 'v' and c.relname not like E'\\_p\\_%'
  loop
    execute format('grant select on %s to public', v_view);
  end loop;
  -- The functions that views, and hosts, call: each asks who calls.
  for v_function in
    select p.oid::regprocedure
    from pg_catalog.pg_proc as p
    where p.pronamespace = 'parley_flow'::regnamespace and p.proname like E'\\_p\\_%' and p.prosecdef
      and p.proargtypes[p.pronargs - 1] = 'parley.caller'::regtype
  loop
    execute format('grant execute on function %s to public', v_function);
  end loop;
  for v_function in
    select p.oid::regprocedure
    from pg_catalog.pg_proc as p
    where p.pronamespace = 'parley_flow'::regnamespace and p.prosecdef
  loop
    execute format('alter function %s set jit = off', v_function);
  end loop;
end
$$;
