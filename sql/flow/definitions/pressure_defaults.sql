-- The thresholds of pressure and the actions with which the engine begins; flow/operations/pressure.sql has the rest.
-- Source: spec integration 13.2.

create function parley_flow._p_default_thresholds() returns table (
  resource text, unit text, medium_at double precision, high_at double precision, medium_below double precision,
  normal_below double precision, history_polls integer
)
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  values
    -- The message count in the database of the original, and ten times as much for its spool.
    ('messages waiting', 'messages', 50000::double precision, 100000::double precision, 60000::double precision,
      40000::double precision, 0),
    ('spool', 'messages', 500000, 1000000, 600000, 400000, 0),
    ('process memory', '%', 72, 75, 73, 71, 30),
    ('system memory', '%', 88, 94, 89, 84, 0),
    ('memory stalls', '%', 20, 60, 50, 10, 10),
    ('connections', '%', 85, 95, 90, 80, 10)
$$;

comment on function parley_flow._p_default_thresholds() is 'Gives the thresholds with which the engine begins.';

create function parley_flow._p_seed_pressure() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley_store.set_threshold(
    'flow', t.resource, t.medium_at, t.high_at, t.medium_below, t.normal_below, t.history_polls, t.unit
  )
  from parley_flow._p_default_thresholds() as t;
  perform parley_store.set_pressure_action('flow', t.resource, 'throttle publishing', 'MEDIUM')
  from parley_flow._p_default_thresholds() as t;
  -- Sending frees the database, and takes memory.
  perform parley_store.set_pressure_action('flow', t.resource, 'throttle delivery', 'HIGH')
  from parley_flow._p_default_thresholds() as t
  where t.resource in ('process memory', 'system memory', 'memory stalls');
  -- Messages that something waits for end what is there: they come in until memory is short.
  perform parley_store.set_pressure_action('flow', t.resource, 'throttle correlation', 'HIGH')
  from parley_flow._p_default_thresholds() as t
  where t.resource in ('process memory', 'system memory', 'memory stalls');
end
$$;

comment on function parley_flow._p_seed_pressure() is
'Gives the engine its thresholds and actions, with the first definitions.';
