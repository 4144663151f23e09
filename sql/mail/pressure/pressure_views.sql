-- Views of pressure, for holders of VIEW, and for the daemons.

create function parley_mail._p_may_see_pressure(role oid) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select parley_mail._p_holds(role, 'VIEW') or parley_mail._p_holds(role, 'SERVE')
$$;

comment on function parley_mail._p_may_see_pressure(oid) is 'Reports whether a role holds VIEW or SERVE.';

create function parley_mail._p_thresholds(caller parley.caller default parley.current_caller())
returns setof parley_store.thresholds
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select
    t.system, t.resource, t.unit, t.medium_at, t.high_at, t.medium_below, t.normal_below, t.floor_at,
    case
      when t.resource = 'log volume'
        then least(t.reserve_bytes, 3 * pg_size_bytes(current_setting('max_wal_size')))
      else t.reserve_bytes
    end, t.history_polls, t.is_watched
  from parley_store.thresholds as t
  where t.system = 'mail' and parley_mail._p_may_see_pressure(parley.caller_role(caller))
$$;

comment on function parley_mail._p_thresholds(parley.caller) is 'Gives what parley_mail.thresholds shows.';

create view parley_mail.thresholds as
select t.resource, t.unit, t.medium_at, t.high_at, t.medium_below, t.normal_below, t.floor_at, t.reserve_bytes,
  t.history_polls, t.is_watched
from parley_mail._p_thresholds() as t;

comment on view parley_mail.thresholds is
'From which values on a resource is under pressure. Set with parley_mail.set_threshold and set_pressure_preset.
Columns: medium_at, high_at, above which the level rises; medium_below, normal_below, below which it falls; floor_at,
above which nobody is excepted; reserve_bytes, how much of a volume is to be left free, of the log at most three times
max_wal_size; history_polls, after how many polls above Normal later actions begin.';

create function parley_mail._p_pressure_actions(caller parley.caller default parley.current_caller())
returns setof parley_store.pressure_actions
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select a.system, a.resource, a.action, a.from_level, a.after_history
  from parley_store.pressure_actions as a
  where a.system = 'mail' and parley_mail._p_may_see_pressure(parley.caller_role(caller))
$$;

comment on function parley_mail._p_pressure_actions(parley.caller) is 'Gives what parley_mail.pressure_actions shows.';

create view parley_mail.pressure_actions as
select a.resource, a.action, a.from_level, a.after_history from parley_mail._p_pressure_actions() as a;

comment on view parley_mail.pressure_actions is
'The actions taken while a resource is at a level or above it. Set with parley_mail.set_pressure_action.
Columns: after_history, at Medium only after history_polls polls above Normal; at High at once.';

create function parley_mail._p_pressure_changes(caller parley.caller default parley.current_caller())
returns setof parley_store.pressure_changes
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select
    c.change_id, c.system, c.node, c.resource, c.event_id, c.from_level, c.to_level, c.value, c.actions, c.message,
    c.changed_at
  from parley_store.pressure_changes as c
  where c.system = 'mail' and parley_mail._p_may_see_pressure(parley.caller_role(caller))
$$;

comment on function parley_mail._p_pressure_changes(parley.caller) is 'Gives what parley_mail.pressure_changes shows.';

create view parley_mail.pressure_changes as
select c.change_id, c.node, c.resource, c.event_id, c.from_level, c.to_level, c.value, c.actions, c.message,
  c.changed_at
from parley_mail._p_pressure_changes() as c;

comment on view parley_mail.pressure_changes is
'Each change of a level on each daemon, with the event that was written.
Columns: event_id, 15004 rose, 15005 fell, 15006 and 15007 mail is refused because of a volume or of memory; message,
every resource with its value, level and thresholds, and what is done.';

create function parley_mail._p_pressure_history(caller parley.caller default parley.current_caller())
returns setof parley_store.pressure_history
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select h.system, h.node, h.resource, h.level, h.transitions, h.total_time, h.longest_time, h.last_entered_at
  from parley_store.pressure_history as h
  where h.system = 'mail' and parley_mail._p_may_see_pressure(parley.caller_role(caller))
$$;

comment on function parley_mail._p_pressure_history(parley.caller) is 'Gives what parley_mail.pressure_history shows.';

create view parley_mail.pressure_history as
select h.node, h.resource, h.level, h.transitions, h.total_time, h.longest_time, h.last_entered_at
from parley_mail._p_pressure_history() as h;

comment on view parley_mail.pressure_history is
'How often a resource has come to a level on a daemon, how long it was there in all, and how long at most.';
