-- How long the engine remembers what is no message: settings of the engine as a whole.
--
-- How long messages and the ledger stay is a setting of applications and locations.
-- Locks: the row of the setting that is changed.

create table parley_flow._p_retention (
  what text primary key,
  retention interval not null
);

comment on table parley_flow._p_retention is
'Retentions that an administrator has set; the others have their defaults.';

create view parley_flow._p_default_retention as
select d.what, d.retention, d.lowest, d.meaning
from (values
  ('audit', interval '1 year', interval '1 day', 'what administrators and operators did'),
  ('routing failures', '90 days', '1 day', 'causes for which messages matched nothing, since they were met last'),
  ('originals', '30 days', '1 day', 'messages as they were before an operator edited and resubmitted them'),
  ('pipelines', '90 days', '1 day', 'versions of pipelines that are not the newest'),
  ('idempotency keys', '7 days', '1 hour', 'keys under which applications have published'),
  ('tracking', '30 days', '1 day', 'what happened to messages, where no other system shares the store'),
  ('operations', '1 year', '1 day', 'operations on waiting messages, where no other system shares the store'),
  ('pressure', '90 days', '1 day', 'changes of the level of resources, where no other system shares the store')
) as d (what, retention, lowest, meaning);

comment on view parley_flow._p_default_retention is 'The retentions that there are, with which the engine begins.';

create function parley_flow._p_retention_of(what text) returns interval
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(r.retention, d.retention)
  from parley_flow._p_default_retention as d
  left join parley_flow._p_retention as r on r.what = d.what
  where d.what = $1
$$;

comment on function parley_flow._p_retention_of(text) is 'Gives how long something is remembered.';

create function parley_flow._p_retention_rows(caller parley.caller default parley.current_caller())
returns table (what text, retention interval, default_retention interval, lowest interval, meaning text)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select d.what, parley_flow._p_retention_of(d.what), d.retention, d.lowest, d.meaning
  from parley_flow._p_default_retention as d
  where parley_flow._p_holds(parley.caller_role(caller), 'VIEW')
$$;

comment on function parley_flow._p_retention_rows(parley.caller) is 'Gives what parley_flow.retentions shows.';

create view parley_flow.retentions as
select r.what, r.retention, r.default_retention, r.lowest, r.meaning from parley_flow._p_retention_rows() as r;

comment on view parley_flow.retentions is
'How long the engine remembers what is no message, for holders of VIEW. Set with parley_flow.set_retention.';

create function parley_flow.set_retention(
  what text, retention interval, caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_lowest interval;
begin
  found := parley_flow._p_require(v_caller, 'ADMINISTER');
  select d.lowest into v_lowest from parley_flow._p_default_retention as d where d.what = set_retention.what;
  if not found then
    found := parley_flow._p_raise('choice', 'what', coalesce(what, 'null'), (
      select string_agg(d.what, ', ' order by d.what) from parley_flow._p_default_retention as d
    ));
  elsif retention < v_lowest or retention > interval '100 years' then
    found := parley_flow._p_raise('retention', what, retention::text, v_lowest::text);
  end if;
  if retention is null then
    delete from parley_flow._p_retention as r where r.what = set_retention.what;
  else
    insert into parley_flow._p_retention as r (what, retention)
    values ($1, $2)
    on conflict on constraint _p_retention_pkey do update set retention = excluded.retention;
  end if;
  perform parley_flow._p_record_audit(
    v_caller, 'set retention', what, jsonb_build_object('retention', retention::text)
  );
end
$$;

comment on function parley_flow.set_retention(text, interval, parley.caller) is
'Says how long something is remembered; maintenance forgets it within seconds.
Arguments: what, one of parley_flow.retentions; retention, null: the default.
Errors: PF001, PF010 there is no such thing, or the time is too short or too long.';
