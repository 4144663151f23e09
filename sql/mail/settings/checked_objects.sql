-- The rules between the settings of an object, and between objects: checked when a change is complete, so that the
-- order in a file of configuration does not matter. The change holds the row of the version, so no other one alters the
-- objects that are checked here.

create function parley_mail._p_check_send_connector(name text, settings jsonb, secrets jsonb) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_space jsonb;
begin
  if settings -> 'address_spaces' = '[]' then
    found := parley_mail._p_contradicts('send connector', name, 'itself', 'It has no address space.',
      'Give address_spaces, such as [{"pattern": "*"}].');
  end if;
  for v_space in select s.v from jsonb_array_elements(settings -> 'address_spaces') as s (v) loop
    if not coalesce(
      (
        v_space ->> 'pattern' in ('*', '--')
        or upper((v_space ->> 'type') collate "C") <> 'SMTP'
        or parley_mail._p_is_domain(regexp_replace(v_space ->> 'pattern', E'^\\*\\.', ''))
      )
      and coalesce(v_space ->> 'cost', '1') ~ '^([1-9][0-9]?|100)$', false
    ) then
      found := parley_mail._p_contradicts('send connector', name, 'itself',
        format('%s is no address space.', v_space),
        'Write {"pattern": "example.com", "cost": 10}: a domain, *.domain, * or --, and a cost from 1 to 100.');
    end if;
  end loop;
  if exists (
    select
    from parley_mail._p_delivery_kind as k
    where k.kind = settings ->> 'routing' and not k.next_hop_is_domain
  ) and not exists (
    select from jsonb_array_elements(settings -> 'smart_hosts') as h (v) where h.v ->> 'host' <> ''
  ) then
    found := parley_mail._p_contradicts('send connector', name, 'itself',
      format('routing is %s, and there is none.', settings ->> 'routing'),
      'Give smart_hosts, such as [{"host": "relay.example"}].');
  end if;
  found := parley_mail._p_check_certificate('send connector', name, settings);
  if settings ->> 'authentication' = 'EXTERNAL'
    and (settings ->> 'certificate_file' is null or settings ->> 'tls' = 'OFF') then
    found := parley_mail._p_contradicts('send connector', name, 'itself',
      'authentication EXTERNAL needs a certificate, and TLS in which to show it.',
      'Give certificate_file and certificate_key_file, and another tls than OFF.');
  end if;
  if settings ->> 'authentication' not in ('NONE', 'EXTERNAL')
    and (settings ->> 'username' is null or secrets ->> 'password' is null) then
    found := parley_mail._p_contradicts('send connector', name, 'itself', 'authentication needs a name and a password.',
      'Give username and password.');
  end if;
  if settings ->> 'tls' = 'DOMAIN' and settings ->> 'tls_domain' is null then
    found := parley_mail._p_contradicts('send connector', name, 'itself', 'tls is DOMAIN, and there is none.',
      'Give tls_domain, the name that the certificate must carry.');
  end if;
  return parley_mail._p_check_rates(name, settings) and parley_mail._p_check_retry_rules(name, settings)
    and parley_mail._p_check_delays('send connector', name, settings ->> 'retry_policy');
end
$$;

comment on function parley_mail._p_check_send_connector(text, jsonb, jsonb) is
'Refuses a send connector that contradicts itself.
Errors: PM003.';

create function parley_mail._p_require_secret_again(
  before parley_mail._p_object, after parley_mail._p_object, given jsonb
) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before jsonb;
  v_after jsonb;
  v_changed text;
begin
  -- An operator who changes the way may not know the password, and could have it sent to a host of his own.
  if before.kind is distinct from 'send connector' or not before.secrets ? 'password' or given ? 'password' then
    return true;
  end if;
  v_before := parley_mail._p_effective(before.kind, before.settings);
  v_after := parley_mail._p_effective(after.kind, after.settings);
  select string_agg(w.setting, ', ' order by w.setting) into v_changed
  from unnest(array[
    'routing', 'smart_hosts', 'port', 'dns_servers', 'authentication', 'tls', 'implicit_tls', 'tls_domain', 'mta_sts',
    -- By DNS the hosts are those of the domains.
    (
      select 'address_spaces'
      from parley_mail._p_delivery_kind as k
      where k.kind = v_after ->> 'routing' and k.next_hop_is_domain
    )
  ]) as w (setting)
  where v_before -> w.setting is distinct from v_after -> w.setting;
  if v_changed is not null then
    found := parley_mail._p_raise('password again', before.kind, before.name, v_changed);
  end if;
  return true;
end
$$;

comment on function parley_mail._p_require_secret_again(parley_mail._p_object, parley_mail._p_object, jsonb) is
'Refuses to have the password that is kept of a send connector said to other hosts, or said in another way, by somebody
who does not give it again.
Arguments: before, after: the object; given, the settings that were named.
Errors: PM003.';

create function parley_mail._p_check_binding(caller oid, name text, settings jsonb) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pattern text := parley_mail._p_folded(settings ->> 'pattern');
begin
  if parley_mail._p_is_domain(regexp_replace(split_part(v_pattern, '@', -1), E'^\\*\\.', '')) is not true then
    found := parley_mail._p_contradicts('service binding', name, 'itself', format('"%s" is no pattern.', v_pattern),
      'Write local@domain, *@domain, local+*@domain or a domain.');
  end if;
  if (settings ->> 'service' is null) = (settings ->> 'table' is null) then
    found := parley_mail._p_contradicts('service binding', name, 'itself', 'It names not one target.',
      'Give either service or table.');
  end if;
  if settings ->> 'service' is not null and settings ->> 'from_service' is null then
    found := parley_mail._p_contradicts('service binding', name, 'itself', 'It says not in whose name to send.',
      'Give from_service, a service of this database.');
  end if;
  -- Delivery begins dialogs and inserts with the rights of the schema's owner: whoever binds must be allowed to do it
  -- himself, now and whenever something is delivered (_p_require_binding_rights).
  if settings ->> 'from_service' is not null
    and parley_mail._p_may_send_from(caller, settings ->> 'from_service') is not true then
    found := parley_mail._p_contradicts('service binding', name, 'its setting from_service',
      'There is no such service, or it is not yours.',
      'Name a service of this database that you own, or parley_mail/Status.');
  end if;
  if exists (
    select
    from parley.services as s
    where s.name = settings ->> 'service'
      and parley_mail._p_may_send_to(caller, s.service_id, s.principal_id) is not true
  ) then
    found := parley_mail._p_contradicts('service binding', name, 'its setting service', 'You may not send to it.',
      'Have its owner grant you SEND on it.');
  end if;
  if settings ->> 'table' is not null and (
    to_regclass(settings ->> 'table') is null
    or has_table_privilege(caller, to_regclass(settings ->> 'table')::oid, 'insert') is not true
    or not exists (
      select from pg_class as c where c.oid = to_regclass(settings ->> 'table') and c.relkind in ('r', 'p')
    )
    or parley_mail._p_foreign_part(to_regclass(settings ->> 'table')) is not null
  ) then
    found := parley_mail._p_contradicts('service binding', name, 'its setting table',
      'There is no such table, or you may not insert into it, or somebody owns it, may make triggers on it, or owns a '
      'function or a type of it who may not act as the owner of mail transport.',
      'Name a table as schema.name that you may insert into, of the owner of the schema parley_mail, with all in it.');
  end if;
  return true;
end
$$;

comment on function parley_mail._p_check_binding(oid, text, jsonb) is
'Refuses a service binding that contradicts itself, or names a table into which its author may not insert, a service to
which he may not send, or one in whose name he may not.
Errors: PM003.';

create function parley_mail._p_accepts_contract(service text, contract text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_service_id integer;
begin
  select s.service_id into v_service_id from parley.services as s where s.name = service;
  if not found then
    return null;
  elsif exists (
    select
    from parley.service_contract_usages as u
    join parley.service_contracts as c using (service_contract_id)
    where u.service_id = v_service_id and c.name = _p_accepts_contract.contract
  ) then
    return true;
  end if;
  -- A route may lead past the service that is here.
  return nullif(
    exists (select from parley.routes as r where r.remote_service_name = service and not r.is_expired), true
  );
end
$$;

comment on function parley_mail._p_accepts_contract(text, text) is
'Reports whether a service of this database accepts a contract; null: it is not here, or a route names it.';

create function parley_mail._p_warning_about(object parley_mail._p_object) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_settings constant jsonb := parley_mail._p_effective(object.kind, object.settings);
  v_service constant text := v_settings ->> 'service';
  v_accepts constant boolean := parley_mail._p_accepts_contract(v_service, v_settings ->> 'contract');
begin
  if object.kind <> 'service binding' or v_service is null or v_accepts then
    return null;
  elsif not v_accepts then
    return format(
      'service "%s" does not accept the contract "%s", and mail for it waits until it does', v_service,
      v_settings ->> 'contract'
    );
  elsif exists (
    -- It knows routes, and what other databases of the daemon have.
    select
    from parley.diagnose_configuration(
      v_settings ->> 'from_service', v_service, v_settings ->> 'contract', caller => parley.current_caller()
    ) as d
    where d.code in ('service-missing', 'route-missing', 'route-to-nowhere') and d.object_name = v_service
  ) then
    return format(
      'service "%s" does not exist, here or where a route leads, and mail for it waits until it does', v_service
    );
  end if;
  return null;
end
$$;

comment on function parley_mail._p_warning_about(parley_mail._p_object) is
'Names what an object needs and does not have yet; null: nothing that is known. Nothing is refused for it.';

create function parley_mail._p_check_credential_role(caller oid, name text, role text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_role oid := to_regrole(quote_ident(role));
begin
  if v_role is null then
    found := parley_mail._p_raise('role', role);
  elsif parley_mail._p_is_superuser(v_role) then
    found := parley_mail._p_contradicts('credential', name, 'its setting role',
      'It is a superuser, or a member of one: whoever reaches port 587 could guess its password.',
      'Name a role that may send mail and nothing more.');
  elsif pg_has_role(caller, v_role, 'member') is not true then
    found := parley_mail._p_contradicts('credential', name, 'its setting role', 'You are no member of this role.',
      'Name a role that was granted to you, or have a credential with a password instead.');
  end if;
  return true;
end
$$;

comment on function parley_mail._p_check_credential_role(oid, text, text) is
'Refuses a credential that stands for a role of PostgreSQL which its author could not take himself, or which is a
superuser.
Arguments: caller, its author; name, of the credential; role.
Errors: PM002 no such role, PM003.';

create function parley_mail._p_check_other(caller oid, kind text, name text, settings jsonb, secrets jsonb)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if kind = 'mailbox' then
    found := parley_mail._p_require_object(kind, name, 'store', 'mailbox store', settings ->> 'store');
    if settings ->> 'forwarding' <> 'NONE' and settings -> 'forward_to' = '[]' then
      found := parley_mail._p_contradicts(kind, name, 'itself', 'forwarding is on, and forward_to is empty.',
        'Give forward_to, or set forwarding to NONE.');
    elsif settings ->> 'forwarding' <> 'ONLY' and settings ->> 'store' is null then
      found := parley_mail._p_contradicts(kind, name, 'itself', 'It keeps mail, and has no store.',
        'Give store, or set forwarding to ONLY.');
    end if;
  elsif kind = 'distribution group' and settings ->> 'report_to' = 'MANAGER' and settings ->> 'manager' is null then
    found := parley_mail._p_contradicts(kind, name, 'itself', 'report_to is MANAGER, and there is none.',
      'Give manager.');
  elsif kind = 'alias' and parley_mail._p_folded(settings ->> 'target') = name then
    found := parley_mail._p_contradicts(kind, name, 'itself', 'It is its own target.', 'Give another target.');
  elsif kind = 'credential' then
    if settings ->> 'role' is not null then
      found := parley_mail._p_check_credential_role(caller, name, settings ->> 'role');
    elsif settings ->> 'role' is null and secrets ->> 'verifier' is null then
      found := parley_mail._p_contradicts(kind, name, 'itself', 'Nothing says how it proves itself.',
        'Give password, verifier or role.');
    end if;
    if secrets ->> 'verifier' !~ E'^SCRAM-SHA-256\\$[0-9]+:[A-Za-z0-9+/=]+\\$[A-Za-z0-9+/=]+:[A-Za-z0-9+/=]+$' then
      found := parley_mail._p_contradicts(kind, name, 'itself', 'verifier is malformed.',
        'Give password, or a verifier in the form of PostgreSQL.');
    end if;
  elsif kind = 'signing key' then
    found := parley_mail._p_check_signing_key(name, settings, secrets ->> 'private_key');
  elsif kind = 'organization' then
    found := parley_mail._p_check_delays(kind, name);
  end if;
  return true;
end
$$;

comment on function parley_mail._p_check_other(oid, text, text, jsonb, jsonb) is
'Refuses an object of another kind that contradicts itself or another.
Errors: PM002 no such role, PM003.';

create function parley_mail._p_check_object(caller oid, object parley_mail._p_object) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_settings jsonb := parley_mail._p_effective(object.kind, object.settings);
begin
  return case object.kind
    when 'receive connector' then parley_mail._p_check_receive_connector(object.name, v_settings)
    when 'pickup folder' then parley_mail._p_check_folder(object.kind, object.name, v_settings)
    when 'replay folder' then parley_mail._p_check_folder(object.kind, object.name, v_settings)
    when 'http listener' then parley_mail._p_check_http_listener(object.name, v_settings)
    when 'send connector' then parley_mail._p_check_send_connector(object.name, v_settings, object.secrets)
    when 'service binding' then parley_mail._p_check_binding(caller, object.name, v_settings)
    else parley_mail._p_check_other(caller, object.kind, object.name, v_settings, object.secrets)
  end;
end
$$;

comment on function parley_mail._p_check_object(oid, parley_mail._p_object) is
'Refuses an object that contradicts itself or another. Arguments: caller, who changes it; object, as it is now.
Errors: PM002, PM003.';

create function parley_mail._p_require_unused(kind text, name text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_user record;
begin
  select o.kind, o.name into v_user
  from parley_mail._p_object as o
  where (_p_require_unused.kind = 'mailbox store' and o.kind = 'mailbox'
      and o.settings ->> 'store' = _p_require_unused.name)
    or (_p_require_unused.kind = 'permission group' and o.kind = 'receive connector'
      and o.settings -> 'permission_groups' ? _p_require_unused.name)
  order by o.kind, o.name
  limit 1;
  if found then
    found := parley_mail._p_raise('in use', kind, name, format('%s "%s"', v_user.kind, v_user.name));
  end if;
  return true;
end
$$;

comment on function parley_mail._p_require_unused(text, text) is
'Refuses to drop what another object names.
Errors: PM004.';
