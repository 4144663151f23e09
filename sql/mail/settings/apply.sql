-- The configuration as a whole: applied from a file, written into one, read by daemons.

create function parley_mail._p_apply(caller oid, configuration jsonb, prune boolean) returns parley_mail.change[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_version bigint := parley_mail._p_begin_change(caller);
  v_changes parley_mail.change[] := array[]::parley_mail.change[];
  v_change parley_mail.change;
  v_kind text;
  v_object record;
begin
  for v_kind in select k.kind from jsonb_object_keys(configuration) as k (kind) loop
    if v_kind <> all (parley_mail._p_kinds()) then
      found := parley_mail._p_raise('kind', v_kind, array_to_string(parley_mail._p_kinds(), ', '));
    elsif jsonb_typeof(configuration -> v_kind) <> 'object' then
      found := parley_mail._p_raise('configuration', format('Kind "%s" has no names of objects in it.', v_kind));
    end if;
  end loop;
  foreach v_kind in array parley_mail._p_kinds() loop
    for v_object in
      select n.key as name, n.value as settings
      from jsonb_each(coalesce(configuration -> v_kind, '{}')) as n
      order by n.key
    loop
      v_change := parley_mail._p_write_object(caller, v_version, v_kind, v_object.name, v_object.settings);
      v_changes := v_changes || case when v_change.kind is not null then array[v_change] else '{}' end;
    end loop;
    if prune and configuration ? v_kind and v_kind not in ('organization', 'permission group') then
      v_changes := v_changes || array(
        select parley_mail._p_drop_object(o.kind, o.name)
        from parley_mail._p_object as o
        where o.kind = v_kind and o.name not in (
          select parley_mail._p_object_name(v_kind, k.name) from jsonb_object_keys(configuration -> v_kind) as k (name)
        )
      );
    end if;
  end loop;
  return parley_mail._p_end_change(caller, v_changes);
end
$$;

comment on function parley_mail._p_apply(oid, jsonb, boolean) is
'Applies a configuration, all of it, and gives what that changed.
Errors: PM001, PM002, PM003, PM004.';

create function parley_mail.apply(
  configuration jsonb, dry_run boolean default false, prune boolean default false,
  caller parley.caller default parley.current_caller()
) returns setof parley_mail.change
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_changes parley_mail.change[];
begin
  if jsonb_typeof(configuration) is distinct from 'object' then
    found := parley_mail._p_raise('configuration', format('It is %s.', coalesce(jsonb_typeof(configuration), 'null')));
  end if;
  if dry_run is not false then
    begin
      v_changes := parley_mail._p_apply(v_caller, configuration, prune is true);
      -- No class: a code that ends in 000 would catch every error of mail.
      raise exception using errcode = 'PM999', message = 'undo';
    exception
      when sqlstate 'PM999' then
        null;
    end;
  else
    v_changes := parley_mail._p_apply(v_caller, configuration, prune is true);
  end if;
  return query select c.kind, c.name, c.action, c.settings, c.warning from unnest(v_changes) as c;
end
$$;

comment on function parley_mail.apply(jsonb, boolean, boolean, parley.caller) is
'Makes the configuration what a file says, all of it or nothing, and returns what changes: a row for each object.
Arguments: configuration, {"kind": {"name": {"setting": value}}}, where settings that are not named stay and null takes
one back to its default; dry_run, check everything and change nothing; prune, drop objects that the file does not name,
of the kinds that it names. An object that is there already but does not work yet, as a service binding whose service
does not exist, is a warning, in the column of this name too.
Errors: PM001 not allowed, PM002 no such role, PM003 malformed or contradictory, PM004 in use.
Source: spec mail 20.';

create function parley_mail.export_configuration(caller parley.caller default parley.current_caller()) returns jsonb
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'VIEW');
  return (
    select coalesce(jsonb_object_agg(k.kind, k.objects), '{}')
    from (
      select o.kind, jsonb_object_agg(o.name, o.settings) as objects from parley_mail._p_object as o group by o.kind
    ) as k
  );
end
$$;

comment on function parley_mail.export_configuration(parley.caller) is
'Gives what is configured in the form that parley_mail.apply takes: what was set, without defaults and secrets.
Errors: PM001 not allowed.';

create function parley_mail._p_configuration(caller parley.caller default parley.current_caller()) returns jsonb
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  found := parley_mail._p_require_set_up();
  return (
    select jsonb_build_object(
      'version', v.version,
      'ranges', (
        select coalesce(jsonb_agg(jsonb_build_object(
          'connector', r.connector, 'binding', r.binding, 'low', host(r.low), 'high', host(r.high)
        ) order by r.binding, r.connector, r.low), '[]')
        from parley_mail._p_receive_range as r
      ),
      'nodes', (
        select coalesce(jsonb_agg(jsonb_build_object(
          'name', d.name, 'host', d.host,
          'listeners', case
            when d.stopped_at is null and d.reported_at > clock_timestamp() - interval '1 minute' then d.listeners
            else '{}'
          end
        )), '[]')
        from parley_mail._p_daemon as d
      ),
      'kinds', (
        select jsonb_object_agg(k.kind, jsonb_build_object(
          'object_kind', k.object_kind, 'next_hop_is_domain', k.next_hop_is_domain
        ))
        from parley_mail._p_delivery_kind as k
        where k.object_kind is not null
      ),
      'objects', (
        select coalesce(jsonb_object_agg(k.kind, k.objects), '{}')
        from (
          select n.kind, (
            select coalesce(
              jsonb_object_agg(
                o.name,
                parley_mail._p_effective(o.kind, o.settings) || o.secrets || case
                  when o.kind = 'credential' and o.settings ? 'role'
                    and coalesce(o.settings -> 'allowed_senders', '[]') = '[]'
                    then parley_mail._p_senders_of_role(o.settings ->> 'role')
                  else '{}'
                end
              ),
              case n.kind
                when 'organization' then jsonb_build_object(n.kind, parley_mail._p_effective(n.kind, '{}'))
                else '{}'
              end
            )
            from parley_mail._p_object as o
            where o.kind = n.kind
          ) as objects
          from unnest(parley_mail._p_kinds()) as n (kind)
          where n.kind not in ('mailbox', 'distribution group', 'alias')
        ) as k
      )
    )
    from parley_mail._p_configuration_version as v
  );
end
$$;

comment on function parley_mail._p_configuration(parley.caller) is
'Gives the whole configuration for a daemon: {"version", "ranges": [{connector, binding, low, high}], "nodes": [{name,
host, listeners}], "kinds": {kind of delivery: {object_kind, next_hop_is_domain}}, "objects": {kind: {name: settings}}}
with defaults and secrets, and without the directory, which is asked address by address.
Errors: PM001 the caller does not hold SERVE, PM005 there is none.';

create function parley_mail._p_objects(caller parley.caller default parley.current_caller())
returns table (
  kind text, name text, settings jsonb, effective_settings jsonb, has_secrets boolean, changed_at timestamptz,
  changed_by text
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select o.kind, o.name, o.settings, parley_mail._p_effective(o.kind, o.settings), o.secrets <> '{}', o.changed_at,
    o.changed_by
  from parley_mail._p_object as o
  where parley_mail._p_holds(parley.caller_role(caller), 'VIEW')
$$;

comment on function parley_mail._p_objects(parley.caller) is 'Gives what parley_mail.objects shows.';

create view parley_mail.objects as
select o.kind, o.name, o.settings, o.effective_settings, o.has_secrets, o.changed_at, o.changed_by
from parley_mail._p_objects() as o;

comment on view parley_mail.objects is
'Everything that is configured, for who holds VIEW. settings: what was set; effective_settings: with defaults.';

-- The groups of spec mail 3.3, and the organization.
insert into parley_mail._p_object (kind, name, settings, changed_by, version)
select g.kind, g.name, g.settings::jsonb, current_user, 1
from (
  values
    ('permission group', 'Anonymous', '{"principals": ["ANONYMOUS"],
      "rights": ["SUBMIT", "ANY_SENDER", "AUTHORITATIVE_DOMAIN_SENDER", "ACCEPT_ROUTING_HEADERS"]}'),
    ('permission group', 'Users', '{"principals": ["AUTHENTICATED"],
      "rights": ["SUBMIT", "AUTHORITATIVE_DOMAIN_SENDER", "ANY_RECIPIENT", "AUTHENTICATED_FLAG", "BYPASS_ANTI_SPAM",
      "ACCEPT_ROUTING_HEADERS"]}'),
    ('permission group', 'Peer servers', '{"principals": ["PEER_SERVER"],
      "rights": ["SUBMIT", "ANY_RECIPIENT", "ANY_SENDER", "AUTHORITATIVE_DOMAIN_SENDER", "AUTHENTICATED_FLAG",
      "BYPASS_ANTI_SPAM", "BYPASS_SIZE_LIMIT", "ACCEPT_ROUTING_HEADERS", "ACCEPT_ORGANIZATION_HEADERS",
      "ACCEPT_FOREST_HEADERS", "XCLIENT", "PROXY_FROM", "SHADOW"]}'),
    ('permission group', 'Externally secured', '{"principals": ["IP_TRUSTED"],
      "rights": ["SUBMIT", "ANY_RECIPIENT", "ANY_SENDER", "AUTHORITATIVE_DOMAIN_SENDER", "AUTHENTICATED_FLAG",
      "BYPASS_ANTI_SPAM", "BYPASS_SIZE_LIMIT", "ACCEPT_ROUTING_HEADERS"]}'),
    ('permission group', 'Partners', '{"principals": ["PARTNER"],
      "rights": ["SUBMIT", "ANY_SENDER", "ACCEPT_ROUTING_HEADERS"]}'),
    ('organization', 'organization', '{}')
) as g (kind, name, settings);

select parley_mail._p_derive(o.kind, o.name, parley_mail._p_effective(o.kind, o.settings), null)
from parley_mail._p_object as o
where o.kind = 'organization';
