-- Pressure: what mail does not do while resources are short (spec mail 14).
--
-- A daemon measures and decides (internal/store/governor). Thresholds, actions and the history are those of
-- parley_store, for the system mail. A holder of VIEW reads them here (pressure/pressure_views.sql), and a holder of
-- ADMINISTER changes them. The decision of the daemons about submission by SQL stands in _p_organization, which each
-- submission reads anyway: it holds until refusing_until, and a daemon that lives renews it (pressure/daemons.sql).

create function parley_mail._p_pressure_preset(name text) returns table (
  resource text, unit text, medium_at double precision, high_at double precision, medium_below double precision,
  normal_below double precision, history_polls integer, is_watched boolean, floor_at double precision,
  reserve_bytes bigint
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select distinct on (p.resource) p.resource, p.unit, p.medium_at, p.high_at, p.medium_below, p.normal_below, p.polls,
    p.since is not null and (upper(name collate "C") = 'DEFAULT' or p.since <= upper(name collate "C")),
    p.floor_at, p.reserve
  from (values
    -- The resources that are watched since 2007 and 2013, those that we watch (DEFAULT), and those that are watched
    -- only when asked for.
    ('DEFAULT', 'uncommitted', 'units', 999, 1500, 1000, 800, 10, '2007', null::double precision, null::bigint),
    ('2007', 'uncommitted', 'units', 120, 200, 120, 80, 10, '2007', null, null),
    ('2013', 'uncommitted', 'units', 2000, 2500, 2000, 1750, 10, '2007', null, null),
    ('DEFAULT', 'batch points', 'chunks', 2000, 4000, 3000, 1000, 300, '2013', null, null),
    ('DEFAULT', 'submission queue', 'messages', 9999, 15000, 10000, 2000, 300, '2007', null, null),
    ('DEFAULT', 'process memory', '%', 72, 75, 73, 71, 30, '2007', null, null),
    ('DEFAULT', 'system memory', '%', 88, 94, 89, 84, 0, '2007', null, null),
    ('DEFAULT', 'data volume', '%', 96, 99, 97, 94, 0, '2007', 99.9, 524288000),
    ('2007', 'data volume', '%', 97, 99, 97, 95, 0, '2007', 99.9, 524288000),
    ('2013', 'data volume', '%', 97, 99, 97, 95, 0, '2007', 99.9, 524288000),
    ('DEFAULT', 'log volume', '%', 89, 99, 90, 80, 0, '2007', 99.9, 5368709120),
    ('2007', 'log volume', '%', 97, 99, 97, 95, 0, '2007', 99.9, 5368709120),
    ('2013', 'log volume', '%', 97, 99, 97, 95, 0, '2007', 99.9, 5368709120),
    ('DEFAULT', 'temporary volume', '%', 89, 99, 90, 80, 0, '2007', null, 524288000),
    ('DEFAULT', 'memory stalls', '%', 20, 60, 50, 10, 10, 'OURS', null, null),
    ('DEFAULT', 'commit latency', 'ms', 50, 250, 200, 40, 30, 'OURS', null, null),
    ('DEFAULT', 'oldest transaction', 's', 900, 3600, 3000, 600, 30, 'OURS', null, null),
    ('DEFAULT', 'connections', '%', 85, 95, 90, 80, 10, 'OURS', null, null),
    ('DEFAULT', 'replica lag', 's', 10, 60, 30, 5, 30, 'OURS', null, null),
    ('DEFAULT', 'retained log', 'MB', 5120, 20480, 10240, 4096, 30, 'OURS', null, null),
    ('DEFAULT', 'vacuum debt', 'times', 5, 20, 15, 4, 150, 'OURS', null, null),
    ('DEFAULT', 'work waiting', 'items', 9999, 15000, 10000, 2000, 300, null, null, null)
  ) as p (
    preset, resource, unit, medium_at, high_at, medium_below, normal_below, polls, since, floor_at, reserve
  )
  where p.preset in ('DEFAULT', upper(name collate "C"))
  order by p.resource, p.preset = 'DEFAULT'
$$;

comment on function parley_mail._p_pressure_preset(text) is
'Gives the thresholds of a preset.
Arguments: name, DEFAULT, 2007 or 2013; other names give the values of DEFAULT.
Source: spec mail 14.2.';

create function parley_mail._p_default_actions() returns table (
  resource text, action text, from_level text, after_history boolean
)
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select r.resource, a.action, a.from_level, a.after_history
  from (values
    ('tarpit', 'MEDIUM', false,
      array['submission queue', 'uncommitted', 'batch points', 'commit latency', 'replica lag']),
    ('refuse anonymous senders', 'MEDIUM', false,
      array['data volume', 'log volume', 'temporary volume', 'process memory']),
    ('refuse anonymous senders', 'MEDIUM', true, array['submission queue', 'uncommitted', 'batch points']),
    ('refuse anonymous senders', 'HIGH', false, array['retained log']),
    ('refuse users', 'MEDIUM', true, array[
      'data volume', 'log volume', 'temporary volume', 'process memory', 'submission queue', 'uncommitted',
      'batch points'
    ]),
    ('refuse folders and HTTP', 'MEDIUM', false,
      array['data volume', 'log volume', 'temporary volume', 'process memory']),
    ('refuse folders and HTTP', 'MEDIUM', true,
      array['submission queue', 'uncommitted', 'batch points', 'connections', 'retained log']),
    ('pause resubmission', 'MEDIUM', false, array['data volume', 'log volume', 'process memory']),
    ('pause resubmission', 'MEDIUM', true, array['submission queue', 'retained log']),
    ('dehydrate bodies', 'MEDIUM', false, array['process memory', 'system memory', 'memory stalls']),
    ('dehydrate bodies', 'HIGH', false, array['submission queue']),
    ('flush caches', 'MEDIUM', false, array['system memory']),
    ('flush caches', 'HIGH', false, array['submission queue', 'memory stalls']),
    ('refuse own nodes', 'HIGH', false, array[
      'data volume', 'log volume', 'temporary volume', 'process memory', 'submission queue', 'uncommitted',
      'batch points'
    ]),
    ('refuse submission by SQL', 'HIGH', false, array[
      'data volume', 'log volume', 'temporary volume', 'process memory', 'submission queue', 'uncommitted'
    ]),
    ('refuse exempt roles', 'FLOOR', false, array['data volume', 'log volume']),
    ('stop sending', 'HIGH', false, array['uncommitted'])
  ) as a (action, from_level, after_history, resources)
  cross join unnest(a.resources) as r (resource)
$$;

comment on function parley_mail._p_default_actions() is
'Gives what is done under the pressure of which resource, from which level on.
Source: spec mail 14.3.';

create function parley_mail._p_use_preset(name text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley_store.set_threshold(
    'mail', p.resource, p.medium_at, p.high_at, p.medium_below, p.normal_below, p.history_polls, p.unit, p.is_watched,
    p.floor_at, p.reserve_bytes
  )
  from parley_mail._p_pressure_preset(name) as p;
end
$$;

comment on function parley_mail._p_use_preset(text) is 'Makes the thresholds those of a preset.';

create function parley_mail._p_seed_pressure() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley_mail._p_use_preset('DEFAULT');
  perform parley_store.set_pressure_action('mail', a.resource, a.action, a.from_level, a.after_history)
  from parley_mail._p_default_actions() as a;
end
$$;

comment on function parley_mail._p_seed_pressure() is
'Gives mail its thresholds and actions, with the first configuration.';

create function parley_mail.set_pressure_preset(name text, caller parley.caller default parley.current_caller())
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
begin
  found := parley_mail._p_require(v_caller, 'ADMINISTER');
  found := parley_mail._p_require_set_up();
  if name is null or upper(name collate "C") not in ('DEFAULT', '2007', '2013') then
    found := parley_mail._p_raise('choice', 'name', coalesce(name, 'null'), 'DEFAULT, 2007, 2013');
  end if;
  perform parley_mail._p_use_preset(name);
  perform parley_mail._p_record_audit(v_caller, 'set pressure preset', name, null);
end
$$;

comment on function parley_mail.set_pressure_preset(text, parley.caller) is
'Makes all thresholds of pressure those of a preset; daemons read them within ten seconds.
Arguments: name, DEFAULT; 2007 or 2013, the classic values of those years, which do not watch what only we measure.
Errors: PM001 not allowed, PM005 mail is not configured, PM010 no such preset.
Source: spec mail 14.2.';

create function parley_mail.set_threshold(
  resource text, medium_at double precision, high_at double precision, medium_below double precision,
  normal_below double precision, history_polls integer default 0, is_watched boolean default true,
  floor_at double precision default null, reserve_bytes bigint default null,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_unit text;
begin
  found := parley_mail._p_require(v_caller, 'ADMINISTER');
  found := parley_mail._p_require_set_up();
  select p.unit into v_unit
  from parley_mail._p_pressure_preset('DEFAULT') as p
  where p.resource = set_threshold.resource;
  if v_unit is null then
    found := parley_mail._p_raise(
      'choice', 'resource', coalesce(resource, 'null'),
      (select string_agg(p.resource, ', ') from parley_mail._p_pressure_preset('DEFAULT') as p)
    );
  end if;
  perform parley_store.set_threshold(
    'mail', resource, medium_at, high_at, medium_below, normal_below, history_polls, v_unit, is_watched, floor_at,
    reserve_bytes
  );
  perform parley_mail._p_record_audit(v_caller, 'set threshold', resource, jsonb_build_object(
    'medium_at', medium_at, 'high_at', high_at, 'medium_below', medium_below, 'normal_below', normal_below,
    'history_polls', history_polls, 'is_watched', is_watched, 'floor_at', floor_at, 'reserve_bytes', reserve_bytes
  ));
end
$$;

comment on function parley_mail.set_threshold(
  text, double precision, double precision, double precision, double precision, integer, boolean, double precision,
  bigint, parley.caller
) is
'Says from which values on a resource is under pressure; daemons read it within ten seconds.
Arguments: resource; medium_at and high_at, above which the level rises; medium_below and normal_below, below which it
falls; history_polls, after how many polls above Normal later actions begin; is_watched; floor_at, above which nobody is
excepted; reserve_bytes, of a volume, how much is to be left free.
Errors: PM001 not allowed, PM005 mail is not configured, PM010 no such resource, PS008 the values contradict each other.
Source: spec mail 14.2.';

create function parley_mail.set_pressure_action(
  resource text, action text, from_level text, after_history boolean default false,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
begin
  found := parley_mail._p_require(v_caller, 'ADMINISTER');
  found := parley_mail._p_require_set_up();
  if not exists (select from parley_mail._p_default_actions() as a where a.action = set_pressure_action.action) then
    found := parley_mail._p_raise(
      'choice', 'action', coalesce(action, 'null'),
      (select string_agg(distinct a.action, ', ') from parley_mail._p_default_actions() as a)
    );
  end if;
  perform parley_store.set_pressure_action('mail', resource, action, from_level, after_history);
  perform parley_mail._p_record_audit(
    v_caller, 'set pressure action', action,
    jsonb_build_object('resource', resource, 'from_level', from_level, 'after_history', after_history)
  );
end
$$;

comment on function parley_mail.set_pressure_action(text, text, text, boolean, parley.caller) is
'Says what is done while a resource is at a level or above it; daemons read it within ten seconds.
Arguments: resource and action, as parley_mail.pressure_actions has them; from_level, MEDIUM, HIGH or FLOOR (null:
never); after_history, at Medium only when it has lasted.
Errors: PM001 not allowed, PM005 mail is not configured, PM010 no such action, 23514 no such level.
Source: spec mail 14.3.';

create function parley_mail._p_measure(caller parley.caller default parley.current_caller())
returns table (resource text, value double precision)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  return query select m.resource, m.value from parley_store.measure('mail') as m;
  return query
  select 'submission queue'::text, coalesce(max(q.messages), 0)::double precision
  from parley_mail._p_submission_queue() as q;
  return query select 'log bytes'::text, pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::double precision;
end
$$;

comment on function parley_mail._p_measure(parley.caller) is
'Gives what the database knows of its pressure: what parley_store.measure does, and how many messages wait to be
categorized, estimated beyond a hundred items; and how many bytes of log the server has written since it was made, which
has no threshold.
Errors: PM001 the role does not hold SERVE.
Source: spec mail 14.2.';

create function parley_mail._p_record_pressure(
  node text, resource text, event_id integer, from_level text, to_level text, measured double precision,
  actions text[], message text, caller parley.caller default parley.current_caller()
) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  return parley_store.record_pressure(
    'mail', node, resource, event_id, from_level, to_level, measured, actions, message
  );
end
$$;

comment on function parley_mail._p_record_pressure(
  text, text, integer, text, text, double precision, text[], text, parley.caller
) is
'Records a change of a level, as parley_store.record_pressure does.
Errors: PM001 the role does not hold SERVE.
Source: spec mail 14.4.';
