-- How mail transport is configured: object by object, or as a whole by a file.
--
-- create_object, alter_object and drop_object change one; apply changes many at once, all or none, and can be asked
-- what it would change. Each change runs in the caller's transaction: it raises the one version, notifies the channel
-- parley_mail with it, and is audited. Secrets are written, and shown to nobody but the daemon.
-- Locks: the row of the version, for update, before anything is read; so changes come one after the other.
-- Source: spec mail 3.1 to 3.3, 20 (declarative file, validation, dry run).

create type parley_mail.change as (kind text, name text, action text, settings jsonb, warning text);

comment on type parley_mail.change is
'The effect of a change of the configuration on an object. action: CREATE, ALTER, DROP; settings: what is set anew,
null for what goes back to its default, secrets as three stars; warning: what keeps the object from working as it is,
null: nothing that is known.';

create function parley_mail._p_shown(kind text, settings jsonb) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    jsonb_object_agg(s.key, case when s.value <> 'null' and exists (
      select
      from parley_mail.setting_definitions as d
      where d.kind = _p_shown.kind and d.setting = s.key and d.is_secret
    ) then '"***"' else s.value end), '{}'
  )
  from jsonb_each(settings) as s
$$;

comment on function parley_mail._p_shown(text, jsonb) is 'Gives settings with stars in the place of secrets.';

create function parley_mail._p_begin_change(caller oid) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_version bigint;
begin
  found := parley_mail._p_require(caller, 'ADMINISTER');
  update parley_mail._p_configuration_version as v
  set version = v.version + 1, changed_at = clock_timestamp()
  returning v.version into v_version;
  perform parley_mail._p_set_up();
  perform parley_store.notify('parley_mail', v_version::text);
  return v_version;
end
$$;

comment on function parley_mail._p_begin_change(oid) is
'Begins a change of the configuration: from here on nobody else changes it. Gives the new version.
Errors: PM001.';

create function parley_mail._p_write_object(caller oid, version bigint, kind text, name text, settings jsonb)
returns parley_mail.change
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_object parley_mail._p_object;
  v_before parley_mail._p_object;
begin
  name := parley_mail._p_object_name(kind, name);
  select * into v_before
  from parley_mail._p_object as o
  where o.kind = _p_write_object.kind and o.name = _p_write_object.name;
  v_object := v_before;
  v_object.kind := kind;
  v_object.name := name;
  v_object := parley_mail._p_changed_settings(v_object, settings);
  found := parley_mail._p_require_secret_again(v_before, v_object, settings);
  if v_before.settings = v_object.settings and v_before.secrets = v_object.secrets then
    return null;
  end if;
  insert into parley_mail._p_object as o (kind, name, settings, secrets, changed_by, version)
  values (
    v_object.kind, v_object.name, v_object.settings, v_object.secrets, pg_get_userbyid(caller), _p_write_object.version
  )
  on conflict on constraint _p_object_pkey do update
  set settings = excluded.settings, secrets = excluded.secrets, changed_at = clock_timestamp(),
    changed_by = excluded.changed_by, version = excluded.version;
  return (
    kind, name, case when v_before.kind is null then 'CREATE' else 'ALTER' end, parley_mail._p_shown(kind, settings),
    null
  )::parley_mail.change;
end
$$;

comment on function parley_mail._p_write_object(oid, bigint, text, text, jsonb) is
'Lays settings over those of an object, which it makes where there is none, and gives what that changes; null: nothing.
Errors: PM003.';

create function parley_mail._p_drop_object(kind text, name text) returns parley_mail.change
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  name := parley_mail._p_object_name(kind, name);
  delete from parley_mail._p_object as o where o.kind = _p_drop_object.kind and o.name = _p_drop_object.name;
  if not found then
    found := parley_mail._p_raise('absent', kind, name);
  end if;
  return (kind, name, 'DROP', null, null)::parley_mail.change;
end
$$;

comment on function parley_mail._p_drop_object(text, text) is
'Removes an object.
Errors: PM003 no such kind, PM004 no such object.';

create function parley_mail._p_end_change(caller oid, changes parley_mail.change[]) returns parley_mail.change[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_object parley_mail._p_object;
  v_change parley_mail.change;
  v_ended parley_mail.change[] := array[]::parley_mail.change[];
begin
  perform parley_mail._p_forget_derived(c.kind, c.name) from unnest(changes) as c;
  perform parley_mail._p_derive(o.kind, o.name, parley_mail._p_effective(o.kind, o.settings), _p_end_change.caller)
  from unnest(changes) as c
  join parley_mail._p_object as o using (kind, name)
  order by array_position(parley_mail._p_kinds(), o.kind);
  foreach v_change in array changes loop
    select * into v_object from parley_mail._p_object as o where o.kind = v_change.kind and o.name = v_change.name;
    if found then
      found := parley_mail._p_check_object(caller, v_object);
      v_change.warning := parley_mail._p_warning_about(v_object);
      if v_change.warning is not null then
        raise warning using
          message = format('%s "%s": %s', v_change.kind, v_change.name, v_change.warning),
          detail = 'It is configured all the same, since what it names may be created later.';
      end if;
    else
      found := parley_mail._p_require_unused(v_change.kind, v_change.name);
    end if;
    perform parley_mail._p_record_audit(
      caller, lower(v_change.action collate "C"), format('%s "%s"', v_change.kind, v_change.name), v_change.settings
    );
    v_ended := v_ended || v_change;
  end loop;
  return v_ended;
end
$$;

comment on function parley_mail._p_end_change(oid, parley_mail.change[]) is
'Ends a change of the configuration: writes the derived rows, checks the rules between objects, warns of objects that do
not work yet, and audits. Gives the changes with their warnings.
Errors: PM002, PM003, PM004.';

create function parley_mail.create_object(
  kind text, name text, settings jsonb default '{}', caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_version bigint := parley_mail._p_begin_change(v_caller);
begin
  name := parley_mail._p_object_name(kind, name);
  if exists (
    select from parley_mail._p_object as o where o.kind = create_object.kind and o.name = create_object.name
  ) then
    found := parley_mail._p_raise('exists', kind, name);
  end if;
  perform parley_mail._p_end_change(
    v_caller, array[parley_mail._p_write_object(v_caller, v_version, kind, name, settings)]
  );
end
$$;

comment on function parley_mail.create_object(text, text, jsonb, parley.caller) is
'Creates something that is configured.
Arguments: kind, such as receive connector; name, of a mailbox its address, of an accepted domain the domain; settings,
as parley_mail.setting_definitions lists them; what is not given has its default.
Errors: PM001 not allowed, PM002 no such role, PM003 malformed or contradictory, PM004 exists already.
Source: spec mail 3, 6, 11, 12.';

create function parley_mail.alter_object(
  kind text, name text, settings jsonb, caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_version bigint := parley_mail._p_begin_change(v_caller);
  v_change parley_mail.change;
begin
  name := parley_mail._p_object_name(kind, name);
  if kind <> 'organization' and not exists (
    select from parley_mail._p_object as o where o.kind = alter_object.kind and o.name = alter_object.name
  ) then
    found := parley_mail._p_raise('absent', kind, name);
  end if;
  v_change := parley_mail._p_write_object(v_caller, v_version, kind, name, settings);
  if v_change.kind is not null then
    perform parley_mail._p_end_change(v_caller, array[v_change]);
  end if;
end
$$;

comment on function parley_mail.alter_object(text, text, jsonb, parley.caller) is
'Changes settings of something that is configured; those that are not named stay.
Arguments: kind, name; settings, null takes one back to its default.
Errors: PM001 not allowed, PM002 no such role, PM003 malformed or contradictory, PM004 no such object.
Source: spec mail 3, 6, 11, 12.';

create function parley_mail.drop_object(kind text, name text, caller parley.caller default parley.current_caller())
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
begin
  perform parley_mail._p_begin_change(v_caller);
  perform parley_mail._p_end_change(v_caller, array[parley_mail._p_drop_object(kind, name)]);
end
$$;

comment on function parley_mail.drop_object(text, text, parley.caller) is
'Removes something that is configured. Messages that wait for it are routed anew.
Arguments: kind, name.
Errors: PM001 not allowed, PM003 no such kind, PM004 no such object, or another names it.
Source: spec mail 3, 6, 11, 12.';
