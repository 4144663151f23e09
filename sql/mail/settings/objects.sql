-- The configuration: objects of several kinds, each with a name and settings.
--
-- A row has what was set; what was not has its default (connector_settings.sql, directory_settings.sql), so a default
-- that a later release changes takes effect. Secrets stand in a column of their own. Settings that are read for each
-- message stand besides in tables that are derived from these rows (settings/derived.sql) whenever one is changed.

create table parley_mail._p_object (
  kind text not null,
  name text not null,
  settings jsonb not null default '{}',
  secrets jsonb not null default '{}',
  changed_at timestamptz not null default clock_timestamp(),
  changed_by text not null,
  version bigint not null,
  primary key (kind, name)
);

comment on table parley_mail._p_object is
'Everything that is configured: kind, name, and what was set. version is that of the configuration when it changed.';

create function parley_mail._p_kinds() returns text[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select array[
    'organization', 'permission group', 'mailbox store', 'accepted domain', 'signing key', 'credential',
    'receive connector', 'send connector', 'service binding', 'mailbox', 'distribution group', 'alias',
    'pickup folder', 'replay folder', 'http listener'
  ]
$$;

comment on function parley_mail._p_kinds() is
'Gives the kinds of objects, in an order in which each stands behind those that it may name.';

create function parley_mail._p_effective(kind text, settings jsonb) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_object_agg(d.setting, coalesce(settings -> d.setting, d.default_value, 'null')), '{}')
  from parley_mail.setting_definitions as d
  where d.kind = _p_effective.kind and not d.is_secret
$$;

comment on function parley_mail._p_effective(text, jsonb) is
'Gives all settings of an object without its secrets: what was set, else the default.';

create function parley_mail._p_object_name(kind text, name text) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if kind is null or kind <> all (parley_mail._p_kinds()) then
    found := parley_mail._p_raise('kind', coalesce(kind, 'null'), array_to_string(parley_mail._p_kinds(), ', '));
  end if;
  if kind in ('mailbox', 'distribution group', 'alias') then
    if parley_mail._p_is_address(name) is not true then
      found := parley_mail._p_raise('name', kind, coalesce(name, 'null'), 'its mail address');
    end if;
    return parley_mail._p_folded(name);
  elsif kind = 'accepted domain' then
    if parley_mail._p_is_domain(regexp_replace(name, E'^\\*\\.', '')) is not true then
      found := parley_mail._p_raise('name', kind, coalesce(name, 'null'), 'a domain, or *.domain for all below it');
    end if;
    return parley_mail._p_folded(name);
  elsif kind = 'organization' then
    return 'organization';
  elsif coalesce(length(name), 0) not between 1 and 128 or name ~ '[[:cntrl:]]' then
    found := parley_mail._p_raise('name', kind, coalesce(left(name, 200), 'null'), 'a text of 1 to 128 characters');
  elsif strpos(name, '/') > 0 and exists (
    select from parley_mail._p_delivery_kind as k where k.object_kind = _p_object_name.kind
  ) then
    -- It stands in the names of queues, KIND/CONNECTOR/NEXT_HOP.
    found := parley_mail._p_raise('name', kind, left(name, 200), 'a text without "/"');
  end if;
  return name;
end
$$;

comment on function parley_mail._p_object_name(text, text) is
'Gives a name in the form in which it is kept: addresses and domains as they are compared.
Errors: PM003 no such kind, no name of this kind.';

create function parley_mail._p_preset(usage text) returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select p.settings::jsonb
  from (
    values
      ('CLIENT', '{"bindings": ["0.0.0.0:587", "[::]:587"], "tls": "REQUIRED", "permission_groups": ["Users"],
        "authentication": ["PLAIN", "LOGIN", "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"], "message_rate": 60,
        "message_rate_source": "USER", "spf": "OFF", "dmarc": "OFF", "refuse_reserved_domains": true}'),
      ('INTERNAL', '{"permission_groups": ["Peer servers"], "max_connections_per_source": 0, "tarpit": 0,
        "max_connections_per_source_percent": 100, "max_recipients": 5000, "spf": "OFF", "dmarc": "OFF"}'),
      ('INTERNET', '{"permission_groups": ["Anonymous"], "message_rate": 600, "refuse_reserved_domains": true}'),
      ('PARTNER', '{"permission_groups": ["Partners"], "tls": "MUTUAL"}'),
      ('CUSTOM', '{}')
  ) as p (usage, settings)
  where p.usage = _p_preset.usage
$$;

comment on function parley_mail._p_preset(text) is
'Gives what a usage of a receive connector sets when it is created and nothing else was said (spec mail 3.1).';

create function parley_mail._p_changed_settings(object parley_mail._p_object, settings jsonb)
returns parley_mail._p_object
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_checked jsonb := parley_mail._p_checked_settings(object.kind, object.name, settings);
  v_secrets text[] := array(
    select d.setting from parley_mail.setting_definitions as d where d.kind = object.kind and d.is_secret
  );
  v_missing record;
begin
  if object.version is null and object.kind = 'receive connector' then
    v_checked := parley_mail._p_preset(coalesce(v_checked ->> 'usage', 'CUSTOM')) || v_checked;
  end if;
  if object.kind = 'credential' and v_checked ->> 'password' is not null then
    v_checked := v_checked - 'password'
      || jsonb_build_object('verifier', parley_mail._p_scram_verifier(v_checked ->> 'password'));
  end if;
  object.settings := jsonb_strip_nulls(
    coalesce(object.settings, '{}') || (v_checked - v_secrets)
  );
  object.secrets := jsonb_strip_nulls(coalesce(object.secrets, '{}') || (
    select coalesce(jsonb_object_agg(c.key, c.value), '{}')
    from jsonb_each(v_checked) as c
    where c.key = any (v_secrets)
  ));
  select d.setting, d.remark into v_missing
  from parley_mail.setting_definitions as d
  where d.kind = object.kind and d.is_required and not (object.settings || object.secrets) ? d.setting
  limit 1;
  if found then
    found := parley_mail._p_raise(
      'missing', object.kind, object.name, v_missing.setting, coalesce(nullif(v_missing.remark, ''), v_missing.setting)
    );
  end if;
  return object;
end
$$;

comment on function parley_mail._p_changed_settings(parley_mail._p_object, jsonb) is
'Gives an object with settings laid over those it has; null takes one back to its default.
Errors: PM003.';

create function parley_mail._p_scram_verifier(password text, iterations integer default 4096) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_salt bytea := substr(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()), 9, 16);
  v_round bytea;
  v_salted bit(256);
  v_inner bytea;
  v_outer bytea;
  v_key bytea := convert_to(password, 'UTF8');
begin
  if octet_length(v_key) > 64 then
    v_key := sha256(v_key);
  end if;
  v_inner := parley_mail._p_hmac_pad(v_key, 54);
  v_outer := parley_mail._p_hmac_pad(v_key, 92);
  v_round := sha256(v_outer || sha256(v_inner || v_salt || E'\\x00000001'::bytea));
  v_salted := ('x' || encode(v_round, 'hex'))::bit(256);
  for i in 2..iterations loop
    v_round := sha256(v_outer || sha256(v_inner || v_round));
    v_salted := v_salted # ('x' || encode(v_round, 'hex'))::bit(256);
  end loop;
  v_round := decode((
    select string_agg(lpad(to_hex(substring(v_salted from b.n * 8 + 1 for 8)::integer), 2, '0'), '' order by b.n)
    from generate_series(0, 31) as b (n)
  ), 'hex');
  v_inner := parley_mail._p_hmac_pad(v_round, 54);
  v_outer := parley_mail._p_hmac_pad(v_round, 92);
  return format(
    'SCRAM-SHA-256$%s:%s$%s:%s', iterations, encode(v_salt, 'base64'),
    encode(sha256(sha256(v_outer || sha256(v_inner || convert_to('Client Key', 'UTF8')))), 'base64'),
    encode(sha256(v_outer || sha256(v_inner || convert_to('Server Key', 'UTF8'))), 'base64')
  );
end
$$;

comment on function parley_mail._p_scram_verifier(text, integer) is
'Makes the verifier of a password, in the form of PostgreSQL: who reads it can check the password and not learn it.
Arguments: password, as the client will say it (prepared by SASLprep where it is not ASCII); iterations.
Source: RFC 5802, RFC 7677.';

create function parley_mail._p_hmac_pad(key bytea, pad integer) returns bytea
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_padded bytea := decode(repeat(lpad(to_hex(pad), 2, '0'), 64), 'hex');
begin
  for i in 0..octet_length(key) - 1 loop
    v_padded := set_byte(v_padded, i, get_byte(key, i) # pad);
  end loop;
  return v_padded;
end
$$;

comment on function parley_mail._p_hmac_pad(bytea, integer) is
'Gives a key of at most 64 bytes, laid over 64 bytes of one value, as HMAC does (RFC 2104).';
