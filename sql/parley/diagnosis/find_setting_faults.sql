-- Checks of settings that an administrator has changed for everybody: in the server, in this database, or for a role.
--
-- Sessions of the daemon and of the command set what they need when they connect (docs/reference/settings.md), so these
-- are about sessions of applications and readers. A setting of the connection string is that of one program, and no
-- finding. Settings of roles that are not for this database alone may be meant for another one; they are named all the
-- same.

create function parley._p_watched_settings()
returns table (name text, fits text, code text, effect text)
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  values
    ('default_transaction_isolation', '^read (un)?committed$', 'isolation-default',
      'A transaction at this level does not see what others commit meanwhile: RECEIVE and TAKE never wait, leave no '
        || 'hints to others and fail with 40001, and what needs READ COMMITTED is refused.'),
    ('default_transaction_read_only', '^(off|false|no|0)$', 'read-only-default',
      'A session that does not begin READ WRITE can neither send nor receive; the daemon waits until it is off.'),
    ('idle_session_timeout', '^0$', 'time-out-short',
      'It ends sessions that listen for messages; those of the Go package and the daemon are spared.'),
    ('statement_timeout', '^0$', 'time-out',
      'It ends a RECEIVE or TAKE that waits longer, and a procedure of activation that runs longer.'),
    ('idle_in_transaction_session_timeout', '^0$', 'time-out',
      'It ends a reader that works longer between two statements; his messages come back.'),
    ('transaction_timeout', '^0$', 'time-out',
      'It ends a reader whose transaction lasts longer; his messages come back.'),
    ('lock_timeout', '^0$', 'time-out', 'It ends a SEND or END CONVERSATION that waits longer for the conversation.')
$$;

comment on function parley._p_watched_settings() is
'Gives the settings that change how the broker serves a session: fits, a regular expression of the values that do not;
code of the finding; effect.';

create function parley._p_setting_ms(value text) returns numeric
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select m.parts[1]::numeric * case m.parts[2]
    when 'us' then 0.001
    when 's' then 1000
    when 'min' then 60000
    when 'h' then 3600000
    when 'd' then 86400000
    else 1
  end
  from regexp_match(value, '^ *([0-9]{1,20}(?:[.][0-9]{0,20})?) *([a-z]*) *$') as m (parts)
$$;

comment on function parley._p_setting_ms(text) is
'Gives a time-out, as a setting has it, in milliseconds; null where it is none. Any other setting may be asked too: the
planner chooses whether a condition on the name comes first.';

create function parley._p_find_settings(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with changed as (
    select
      case when s.setrole = 0 then 'database' else 'role' end as object_kind,
      case when s.setrole = 0 then current_database()::text else pg_get_userbyid(s.setrole)::text end as object_name,
      split_part(c.entry, '=', 1) as name, substr(c.entry, strpos(c.entry, '=') + 1) as value,
      case
        when s.setrole = 0 then format('alter database %I', current_database())
        when s.setdatabase = 0 then format('alter role %I', pg_get_userbyid(s.setrole))
        else format('alter role %I in database %I', pg_get_userbyid(s.setrole), current_database())
      end || format(' reset %s;', split_part(c.entry, '=', 1)) as cure
    from pg_db_role_setting as s
    cross join lateral unnest(s.setconfig) as c (entry)
    where s.setdatabase in (0, parley._p_database_oid())
    union all
    select 'server', p.name, p.name, p.reset_val, format('alter system reset %s; select pg_reload_conf();', p.name)
    from pg_settings as p
    where p.source <> 'client'
      and not exists (
        select
        from pg_db_role_setting as s
        cross join lateral unnest(s.setconfig) as c (entry)
        where s.setdatabase in (0, parley._p_database_oid())
          and split_part(c.entry, '=', 1) = p.name
          and (
            substr(c.entry, strpos(c.entry, '=') + 1) = p.reset_val
            or parley._p_setting_ms(substr(c.entry, strpos(c.entry, '=') + 1)) = parley._p_setting_ms(p.reset_val)
          )
      )
  )
  select
    case when w.code = 'time-out' and parley._p_setting_ms(c.value) < 10000 then 'time-out-short' else w.code end,
    c.object_kind, c.object_name, format('%s is %s. %s', c.name, c.value, w.effect), null::timestamptz, c.cure
  from changed as c
  join parley._p_watched_settings() as w on w.name = c.name
  where lower(c.value collate "C") !~ w.fits and parley._p_setting_ms(c.value) is distinct from 0
    and scope.queue_ids is null
$$;

comment on function parley._p_find_settings(parley._p_scope) is
'Finds settings that an administrator has made for the server, the database or a role, and that change how the broker
serves their sessions.';
