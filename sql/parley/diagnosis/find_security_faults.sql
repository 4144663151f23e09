-- Checks of dialog security (spec 9.4: ENCRYPTION ON, ANONYMOUS and OFF), as far as this database knows: remote service
-- bindings, the certificates on both ends of them, and who may send to a service here from another database. The far
-- database knows the rest, and is asked itself.

create function parley._p_find_security_faults(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with binding as (
    select b.name, b.to_service, b.remote_principal, b.is_anonymous,
      exists (select from pg_roles as r where r.oid = b.remote_principal) as has_role
    from parley._p_remote_service_binding as b
    -- A binding counts also for a target that is named alone; for an initiator alone all may.
    where scope.to_service is null or b.to_service = scope.to_service
  )
  select 'binding-role-missing', 'remote service binding', b.name,
    format('The role that stands for the service "%s" was dropped: what is sent there waits.', b.to_service),
    null::timestamptz,
    format('select parley.alter_remote_service_binding(%L, with_user => ''<role>'');', b.name)
  from binding as b
  where not b.has_role
  union all
  select 'binding-certificate-missing', 'remote service binding', b.name,
    format('Messages to the service "%s" cannot be sealed: %s', b.to_service, substring(c.status from E'^\\d+: (.*)$')),
    null,
    format(
      'parley dialog-certificate import <file> --role %s  -- the file comes from the other side',
      parley._p_shell_word(pg_get_userbyid(b.remote_principal))
    )
  from binding as b
  cross join lateral parley._p_find_dialog_certificate(b.remote_principal, false) as c
  where b.has_role and c.status is not null
  union all
  select distinct 'dialog-certificate-missing', 'service', s.name,
    format(
      'Dialogs with the service "%s" are to be signed by its owner: %s', b.to_service,
      substring(c.status from E'^\\d+: (.*)$')
    ),
    null::timestamptz,
    'parley dialog-certificate create --role ' || parley._p_shell_word(pg_get_userbyid(s.owner))
  from binding as b
  join parley._p_service as s
    on s.name = scope.from_service
    or scope.from_service is null
    and s.service_id in (
      select e.service_id from parley._p_endpoint as e where e.is_initiator and e.far_service = b.to_service
    )
  cross join lateral parley._p_find_dialog_certificate(s.owner, true) as c
  where not b.is_anonymous and c.status is not null and exists (select from pg_roles as r where r.oid = s.owner)
  union all
  select 'send-not-granted', 'service', s.name,
    format(
      'The service "%s" is not in this database, and nobody but the owner of the target holds SEND: its dialogs end '
        || 'with error -8494.',
      scope.from_service
    ),
    null,
    format(
      'select parley.grant(''SEND'', ''service'', %L, ''public'');  -- or the role that stands for the sender', s.name
    )
  from parley._p_service as s
  where s.name = scope.to_service
    and not parley._p_is_here(scope.from_service, null)
    and not exists (
      select
      from parley._p_permission as p
      where p.class = 'service' and p.object_id = s.service_id and p.permission in ('SEND', 'CONTROL')
    )
$$;

comment on function parley._p_find_security_faults(parley._p_scope) is
'Finds bindings whose role or certificate is missing or of no use, initiators that cannot sign, and targets to
which nobody elsewhere may send.';
