-- GRANT and REVOKE on the broker's objects.

create function parley._p_securable(
  caller oid, class text, object text, out canonical_class text, out object_id integer, out owner oid,
  out permissions text[]
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  canonical_class := lower(replace(class, '_', ' ') collate "C");
  permissions := array['CONTROL', 'TAKE OWNERSHIP', 'ALTER', 'VIEW DEFINITION'];
  case canonical_class
    when 'database' then
      object_id := 0;
      permissions := array[
        'CREATE MESSAGE TYPE', 'CREATE CONTRACT', 'CREATE QUEUE', 'CREATE SERVICE', 'CREATE ROUTE',
        'CREATE CERTIFICATE', 'CREATE REMOTE SERVICE BINDING',
        'ALTER ANY MESSAGE TYPE', 'ALTER ANY CONTRACT', 'ALTER ANY QUEUE', 'ALTER ANY SERVICE', 'ALTER ANY ROUTE',
        'ALTER ANY CERTIFICATE', 'ALTER ANY REMOTE SERVICE BINDING', 'VIEW DEFINITION', 'ALTER TRACE'
      ];
    when 'message type' then
      select t.message_type_id, t.owner into object_id, owner from parley._p_message_type as t where t.name = object;
      permissions := permissions || 'REFERENCES'::text;
    when 'contract' then
      select c.service_contract_id, c.owner into object_id, owner from parley._p_contract as c where c.name = object;
      permissions := permissions || 'REFERENCES'::text;
    when 'queue' then
      object_id := (parley._p_find_queue(caller, object)).queue_id;
      owner := (parley._p_find_queue(caller, object)).owner;
      permissions := permissions || array['RECEIVE', 'SEND', 'REFERENCES'];
    when 'service' then
      select s.service_id, s.owner into object_id, owner from parley._p_service as s where s.name = object;
      permissions := permissions || 'SEND'::text;
    when 'route' then
      select r.route_id, r.owner into object_id, owner from parley._p_route as r where r.name = object;
    when 'certificate' then
      select c.certificate_id, c.owner into object_id, owner from parley._p_certificate as c where c.name = object;
    when 'remote service binding' then
      select b.remote_service_binding_id, b.owner into object_id, owner
      from parley._p_remote_service_binding as b
      where b.name = object;
    else
      found := parley._p_raise(15151, 'class', class);
  end case;
  if object_id is null then
    found := parley._p_raise(15151, 'object of a grant', canonical_class, object);
  end if;
end
$$;

comment on function parley._p_securable(oid, text, text) is
'Finds what a permission is granted on, and which permissions it has.
Errors: 208, 9609, 15151.';

create function parley._p_require_grantor(
  caller oid, permission text, class text, object_id integer, owner oid, object text
) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if parley._p_has_permission(caller, 'CONTROL', class, object_id, owner) then
    return true;
  end if;
  perform
  from parley._p_permission as p
  where p.class = _p_require_grantor.class
    and p.object_id = _p_require_grantor.object_id
    and p.permission = _p_require_grantor.permission
    and p.is_grantable
    and pg_has_role(caller, p.grantee, 'usage');
  if not found then
    found := parley._p_raise(15151, 'grantor', permission, class, object, pg_get_userbyid(caller));
  end if;
  return true;
end
$$;

comment on function parley._p_require_grantor(oid, text, text, integer, oid, text) is
'Refuses callers that may not grant a permission.
Errors: 15151.';

create function parley._p_notice_sender_without_service(grantee oid) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if exists (select from parley._p_service as s where pg_has_role(grantee, s.owner, 'usage')) then
    return;
  end if;
  raise notice using
    message = format('role "%s" owns no service, so it cannot begin a dialog yet', pg_get_userbyid(grantee)),
    detail = 'Service Broker error 8494. A dialog begins from a service, and the owner of that one is asked for SEND.',
    hint = format(
      'Give it a queue and a service of its own: select parley.alter_authorization(''service'', %L, %L);',
      '<service>', pg_get_userbyid(grantee)
    );
end
$$;

comment on function parley._p_notice_sender_without_service(oid) is
'Says by a notice what a role that was granted SEND on a service still lacks: a service from which it may begin a
dialog. It says nothing where the role has one.';

create function parley.grant(
  permission text, class text, object text, grantee text, with_grant_option boolean default false,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_on record := parley._p_securable(v_caller, class, object);
  v_permission text := upper(permission collate "C");
  v_grantee oid;
begin
  if v_permission <> all (v_on.permissions) then
    found := parley._p_raise(
      15151, 'permission', permission, v_on.canonical_class, array_to_string(v_on.permissions, ', ')
    );
  end if;
  found := parley._p_require_grantor(v_caller, v_permission, v_on.canonical_class, v_on.object_id, v_on.owner, object);
  v_grantee := parley._p_role(grantee);
  insert into parley._p_permission as p (class, object_id, permission, grantee, grantor, is_grantable)
  values (v_on.canonical_class, v_on.object_id, v_permission, v_grantee, v_caller, with_grant_option)
  on conflict on constraint _p_permission_pkey do update set is_grantable = p.is_grantable or excluded.is_grantable;
  if v_permission = 'SEND' and v_on.canonical_class = 'service' and v_grantee <> 0 then
    perform parley._p_notice_sender_without_service(v_grantee);
  end if;
end
$$;

comment on function parley.grant(text, text, text, text, boolean, parley.caller) is
'Grants a permission: parley.grant(''SEND'', ''service'', ''//example.com/orders'', ''web'').
Arguments: permission; class, database, message type, contract, queue, service, route, certificate or remote service
binding; object, its name (null for database); grantee, a role or PUBLIC; with_grant_option.
Permissions: CREATE and ALTER ANY of MESSAGE TYPE, CONTRACT, QUEUE, SERVICE, ROUTE, CERTIFICATE, REMOTE SERVICE BINDING,
and VIEW DEFINITION, which shows the whole catalog, and ALTER TRACE, which shows what is sent and received by whom
(start_trace), on the database; CONTROL, TAKE OWNERSHIP, ALTER, VIEW DEFINITION on all else; REFERENCES on message
types, contracts and queues; RECEIVE on queues; SEND on services.
Errors: 208 and 15151 not found, no such permission, or not allowed to grant it.
Source: spec 7.6.';

create function parley.revoke(
  permission text, class text, object text, grantee text,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_on record := parley._p_securable(v_caller, class, object);
begin
  found := parley._p_require_grantor(
    v_caller, upper(permission collate "C"), v_on.canonical_class, v_on.object_id, v_on.owner, object
  );
  delete from parley._p_permission as p
  where p.class = v_on.canonical_class
    and p.object_id = v_on.object_id
    and p.permission = upper(revoke.permission collate "C")
    and p.grantee = parley._p_role(revoke.grantee)::regrole;
  -- Senders that were known to hold the right must be asked again.
  if v_on.canonical_class = 'queue' then
    perform parley._p_forget_routes_of_queue(v_on.object_id);
  end if;
end
$$;

comment on function parley.revoke(text, text, text, text, parley.caller) is
'Takes a permission back; nothing happens when it was not granted.
Arguments: as grant.
Errors: 208 and 15151 not found, or not allowed to revoke it.
Source: spec 7.6.';

create function parley.alter_authorization(
  class text, object text, "owner" text,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_on record := parley._p_securable(v_caller, class, object);
  v_owner oid;
begin
  if v_on.object_id < 65536 then
    found := parley._p_raise(9663, 'object', class, object);
  end if;
  found := parley._p_require_permission(
    v_caller, 'TAKE OWNERSHIP', v_on.canonical_class, v_on.object_id, object, v_on.owner
  );
  v_owner := parley._p_new_owner(v_caller, "owner");
  case v_on.canonical_class
    when 'message type' then
      update parley._p_message_type as t set owner = v_owner where t.message_type_id = v_on.object_id;
    when 'contract' then
      update parley._p_contract as c set owner = v_owner where c.service_contract_id = v_on.object_id;
    when 'queue' then
      update parley._p_queue as q set owner = v_owner, modify_date = now() where q.queue_id = v_on.object_id;
      perform parley._p_forget_routes_of_queue(v_on.object_id);
    when 'service' then
      update parley._p_service as s set owner = v_owner where s.service_id = v_on.object_id;
    when 'route' then
      update parley._p_route as r set owner = v_owner where r.route_id = v_on.object_id;
    when 'certificate' then
      update parley._p_certificate as c set owner = v_owner where c.certificate_id = v_on.object_id;
    when 'remote service binding' then
      update parley._p_remote_service_binding as b
      set owner = v_owner
      where b.remote_service_binding_id = v_on.object_id;
  end case;
end
$$;

comment on function parley.alter_authorization(text, text, text, parley.caller) is
'Gives an object another owner. Conversations keep the owner they were begun under.
Arguments: class, message type, contract, queue, service, route, certificate or remote service binding;
object, its name; owner, a role.
Errors: 208, 229, 9663 system object, 15151 not found or may not be the owner.
Source: spec 2.0.';
