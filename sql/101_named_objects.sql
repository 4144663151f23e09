-- What has a name, and the name that was meant by one that nothing has.
--
-- A message names the object that differs from what was given by upper and lower case alone, if whoever is shown the message may see that object
-- in the catalog (031_visible_objects.sql): before a right to it is asked, and where the right is refused, nothing may tell what else there is.

create view parley._p_named_object as
select 'message type' as class, t.message_type_id as object_id, t.name, t.owner from parley._p_message_type as t
union all
select 'contract' as class, c.service_contract_id as object_id, c.name, c.owner from parley._p_contract as c
union all
select 'queue' as class, q.queue_id as object_id, q.lookup_name as name, q.owner from parley._p_queue as q
union all
select 'service' as class, s.service_id as object_id, s.name, s.owner from parley._p_service as s
union all
select 'route' as class, r.route_id as object_id, r.name, r.owner from parley._p_route as r
union all
select 'certificate' as class, c.certificate_id as object_id, c.name, c.owner from parley._p_certificate as c
union all
select 'remote service binding' as class, b.remote_service_binding_id as object_id, b.name, b.owner from parley._p_remote_service_binding as b;

comment on view parley._p_named_object is 'Everything that rights are granted on, with its name as statements take it.';

create function parley._p_did_you_mean(name text, names text[]) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    (select format(' Did you mean "%s"?', n.name) from unnest(names) as n (name) where lower(n.name) = lower($1) and n.name <> $1 limit 1),
    ''
  )
$$;

comment on function parley._p_did_you_mean(text, text[]) is
'Names the one that differs by case only, for a message; nothing when there is none. For those who may see all of the names.';

create function parley._p_did_you_mean(role oid, class text, name text) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select parley._p_did_you_mean($3, array(
    select o.name
    from parley._p_named_object as o
    where o.class = $2 and lower(o.name) = lower($3) and parley._p_is_visible($1, $2, o.object_id, o.owner)
  ))
$$;

comment on function parley._p_did_you_mean(oid, text, text) is
'Names the object that differs by case only, for a message that a role will read, if the role may see it.
Arguments: role, 0 when it is not known who will read it: then only what everybody sees is named; class, such as service; name, as it was given.';

create function parley._p_did_you_mean_far(role oid, service_name text) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select parley._p_did_you_mean($2, array(
    select r.remote_service_name
    from parley._p_route as r
    where lower(r.remote_service_name) = lower($2) and not r.is_inbound and parley._p_is_visible($1, 'route', r.route_id, r.owner)
  ))
$$;

comment on function parley._p_did_you_mean_far(oid, text) is
'The same for a service elsewhere: names the one to which a route leads that the role may see.';
