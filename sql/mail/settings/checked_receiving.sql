-- The rules between the settings of one object of receiving, and between it and others: receive connectors, folders and
-- HTTP. Checked as settings/checked_objects.sql says.
-- Source: spec mail 3.1, 3.4, 3.6, 4.

create function parley_mail._p_contradicts(kind text, name text, what text, cause text, remedy text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return parley_mail._p_raise('conflict', kind, name, what, cause, remedy);
end
$$;

comment on function parley_mail._p_contradicts(text, text, text, text, text) is
'Refuses an object that contradicts itself or another.
Errors: PM003, always.';

create function parley_mail._p_require_object(kind text, name text, setting text, wanted_kind text, wanted text)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if wanted is not null and not exists (
    select from parley_mail._p_object as o where o.kind = wanted_kind and o.name = wanted
  ) then
    found := parley_mail._p_raise(
      'conflict', kind, name, format('its setting %s', setting), format('There is no %s "%s".', wanted_kind, wanted),
      format('Create the %s, or name another.', wanted_kind)
    );
  end if;
  return true;
end
$$;

comment on function parley_mail._p_require_object(text, text, text, text, text) is
'Refuses an object that names another which does not exist; null names none.
Errors: PM003.';

create function parley_mail._p_check_ranges(name text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_other record;
begin
  select o.connector, o.binding, format('%s-%s', host(m.low), host(m.high)) as mine,
    format('%s-%s', host(o.low), host(o.high)) as others
  into v_other
  from parley_mail._p_receive_range as m
  join parley_mail._p_receive_range as o on o.binding = m.binding and o.connector <> m.connector
    and family(o.low) = family(m.low) and o.low <= m.high and m.low <= o.high
  where m.connector = _p_check_ranges.name
    and (
      (o.low = m.low and o.high = m.high)
      or not (o.low <= m.low and o.high >= m.high or m.low <= o.low and m.high >= o.high)
    )
  limit 1;
  if found then
    found := parley_mail._p_contradicts(
      'receive connector', name, format('receive connector "%s"', v_other.connector),
      format('On %s its range %s overlaps %s.', v_other.binding, v_other.mine, v_other.others),
      'Let one range lie within the other, or let them not meet: the smallest range that has a peer wins.'
    );
  end if;
  return true;
end
$$;

comment on function parley_mail._p_check_ranges(text) is
'Refuses a receive connector whose remote ranges overlap in part, or equal, those of another on the same binding.
Errors: PM003.
Source: spec mail 3.1.';

create function parley_mail._p_check_milters(name text, milters jsonb) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_milter jsonb;
begin
  for v_milter in select m.v from jsonb_array_elements(milters) as m (v) loop
    if not coalesce(
      v_milter ->> 'address' ~ E'^(inet6?:([^]:[]+|\\[[0-9A-Fa-f:.]+\\]):[0-9]{1,5}|unix:/.+)$'
      and coalesce(v_milter ->> 'default_action', 'TEMPFAIL') in ('TEMPFAIL', 'REJECT', 'QUARANTINE', 'ACCEPT')
      and coalesce(v_milter ->> 'timeout', '30') ~ '^[1-9][0-9]{0,2}$'
      and v_milter - array['address', 'default_action', 'timeout'] = '{}', false
    ) then
      found := parley_mail._p_contradicts('receive connector', name, 'itself', format('%s is no milter.', v_milter),
        'Write {"address": "inet:127.0.0.1:8891", "default_action": "TEMPFAIL", "timeout": 30}: an address '
        || 'inet:host:port or unix:/path, an action TEMPFAIL, REJECT, QUARANTINE or ACCEPT, and 1 to 999 seconds.');
    end if;
  end loop;
  return true;
end
$$;

comment on function parley_mail._p_check_milters(text, jsonb) is
'Refuses a receive connector with a milter that cannot be used.
Errors: PM003.';

create function parley_mail._p_check_certificate(kind text, name text, settings jsonb) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if (settings ->> 'certificate_file' is null) <> (settings ->> 'certificate_key_file' is null) then
    found := parley_mail._p_contradicts(kind, name, 'itself', 'A certificate needs its key, and a key its certificate.',
      'Give both certificate_file and certificate_key_file.');
  end if;
  return true;
end
$$;

comment on function parley_mail._p_check_certificate(text, text, jsonb) is
'Refuses an object that names a certificate without its key, or a key alone.
Errors: PM003.';

create function parley_mail._p_check_receive_connector(name text, settings jsonb) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_group text;
begin
  if (settings ->> 'connection_timeout')::integer <= (settings ->> 'inactivity_timeout')::integer then
    found := parley_mail._p_contradicts('receive connector', name, 'itself',
      'connection_timeout is not longer than inactivity_timeout.', 'Let a whole connection live longer.');
  end if;
  if settings -> 'authentication' ?| array['PLAIN', 'LOGIN'] and settings ->> 'tls' = 'OFF'
    and not (settings ->> 'implicit_tls')::boolean and not (settings ->> 'authentication_without_tls')::boolean then
    found := parley_mail._p_contradicts('receive connector', name, 'itself',
      'PLAIN and LOGIN would send passwords in clear text.',
      'Turn tls on, or set authentication_without_tls where the network is trusted.');
  end if;
  if settings ->> 'tls' = 'MUTUAL' and settings -> 'tls_domains' = '[]' then
    found := parley_mail._p_contradicts('receive connector', name, 'itself',
      'tls is MUTUAL, and tls_domains is empty: nobody could prove a name.', 'Give tls_domains.');
  end if;
  found := parley_mail._p_check_certificate('receive connector', name, settings);
  if (settings ->> 'enabled')::boolean and settings ->> 'certificate_file' is null
    and (settings ->> 'tls' in ('REQUIRED', 'MUTUAL') or (settings ->> 'implicit_tls')::boolean) then
    found := parley_mail._p_contradicts('receive connector', name, 'itself',
      'It cannot be used without TLS, and has no certificate.',
      'Give certificate_file and certificate_key_file, or set tls to OPPORTUNISTIC or OFF.');
  end if;
  if settings ->> 'dmarc' = 'ENFORCE' and 'OFF' in (settings ->> 'spf', settings ->> 'dkim') then
    found := parley_mail._p_contradicts('receive connector', name, 'itself',
      'dmarc is ENFORCE, and what it stands on is not verified.', 'Set spf and dkim to RECORD.');
  end if;
  found := parley_mail._p_check_milters(name, settings -> 'milters');
  for v_group in select g.name from jsonb_array_elements_text(settings -> 'permission_groups') as g (name) loop
    found := parley_mail._p_require_object('receive connector', name, 'permission_groups', 'permission group', v_group);
  end loop;
  return parley_mail._p_check_ranges(name);
end
$$;

comment on function parley_mail._p_check_receive_connector(text, jsonb) is
'Refuses a receive connector that contradicts itself or another.
Errors: PM003.';

create function parley_mail._p_check_folder(kind text, name text, settings jsonb) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_other record;
begin
  if settings ->> 'path' not like '/%' then
    found := parley_mail._p_contradicts(kind, name, 'itself', format('"%s" is no full path.', settings ->> 'path'),
      'Give a path that begins with "/".');
  end if;
  select o.kind, o.name into v_other
  from parley_mail._p_object as o
  where o.kind in ('pickup folder', 'replay folder')
    and (o.kind, o.name) <> (_p_check_folder.kind, _p_check_folder.name)
    and rtrim(o.settings ->> 'path', '/') = rtrim(_p_check_folder.settings ->> 'path', '/')
  limit 1;
  if found then
    found := parley_mail._p_contradicts(kind, name, format('%s "%s"', v_other.kind, v_other.name),
      'Both take files from one folder.', 'Give each a path of its own.');
  end if;
  return true;
end
$$;

comment on function parley_mail._p_check_folder(text, text, jsonb) is
'Refuses a folder without a full path, or with that of another.
Errors: PM003.
Source: spec mail 4.1, 4.2.';

create function parley_mail._p_check_http_listener(name text, settings jsonb) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_mail._p_check_certificate('http listener', name, settings);
  if settings ->> 'certificate_file' is null and not (settings ->> 'authentication_without_tls')::boolean then
    found := parley_mail._p_contradicts('http listener', name, 'itself', 'Passwords would be sent in clear text.',
      'Give certificate_file and its key, or set authentication_without_tls where the network is trusted.');
  end if;
  return true;
end
$$;

comment on function parley_mail._p_check_http_listener(text, jsonb) is
'Refuses an HTTP listener that would have passwords sent in clear text.
Errors: PM003.';
