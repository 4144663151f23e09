-- Objects that have a name, and the likeliest name where a name has no object.
--
-- A message names the object whose name differs from the given one by upper and lower case alone, if its reader may see
-- that object in the catalog (base/visible_objects.sql). Before a right to it is asked, and where the right is refused,
-- nothing may show which other objects exist.

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
select 'remote service binding' as class, b.remote_service_binding_id as object_id, b.name, b.owner
from parley._p_remote_service_binding as b;

comment on view parley._p_named_object is 'Everything that rights are granted on, with its name as statements take it.';

create function parley._p_did_you_mean(name text, names text[]) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    (
      select format(' Did you mean "%s"?', n.name)
      from unnest(names) as n (name)
      where lower(n.name) = lower($1) and n.name <> $1
      limit 1
    ),
    ''
  )
$$;

comment on function parley._p_did_you_mean(text, text[]) is
'Names the one that differs by case only, for a message; nothing when there is none. For
those who may see all of the names.';

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
Arguments: role, 0 when it is not known who will read it: then only what everybody sees is named; class, such
as service; name, as it was given.';

create function parley._p_did_you_mean_far(role oid, service_name text) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select parley._p_did_you_mean($2, array(
    select r.remote_service_name
    from parley._p_route as r
    where lower(r.remote_service_name) = lower($2)
      and not r.is_inbound
      and parley._p_is_visible($1, 'route', r.route_id, r.owner)
  ))
$$;

comment on function parley._p_did_you_mean_far(oid, text) is
'The same for a service elsewhere: names the one to which a route leads that the role may see.';

create function parley._p_queue_of_service(role oid, name text) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select q.lookup_name
    from parley._p_service as s
    join parley._p_queue as q using (queue_id)
    where s.name = _p_queue_of_service.name
      and parley._p_is_visible(role, 'service', s.service_id, s.owner)
      and parley._p_is_visible(role, 'queue', q.queue_id, q.owner)
  );
end
$$;

comment on function parley._p_queue_of_service(oid, text) is
'Gives the queue of a service whose name was given for a queue, for a message, if the role may see both; null
otherwise.';

create function parley._p_common_length(one text, other text) returns integer
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_low integer := 0;
  v_high integer := least(length(one), length(other));
  v_middle integer;
begin
  while v_low < v_high loop
    v_middle := (v_low + v_high + 1) / 2;
    if left(one, v_middle) = left(other, v_middle) then
      v_low := v_middle;
    else
      v_high := v_middle - 1;
    end if;
  end loop;
  return v_low;
end
$$;

comment on function parley._p_common_length(text, text) is 'Gives how many characters two texts begin with alike.';

create function parley._p_slip(name text, other text) returns integer
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_name text := lower(name);
  v_other text := lower(other);
  v_front integer;
  v_back integer;
  v_length integer;
begin
  if v_name = v_other then
    return case when name <> other then 0 end;
  elsif abs(length(v_name) - length(v_other)) > 2 then
    return null;
  end if;
  v_front := parley._p_common_length(v_name, v_other);
  v_back := least(
    parley._p_common_length(reverse(v_name), reverse(v_other)), length(v_name) - v_front, length(v_other) - v_front
  );
  v_length := greatest(length(v_name), length(v_other)) - v_front - v_back;
  return case
    when v_length <= 2
      and v_front + v_back >= 3
      and substr(v_name, v_front + 1, length(v_name) - v_front - v_back) !~ '[0-9]'
      and substr(v_other, v_front + 1, length(v_other) - v_front - v_back) !~ '[0-9]'
      then v_length
  end;
end
$$;

comment on function parley._p_slip(text, text) is
'Shows by how much one name may be a slip of the pen for the other: 0 when they differ by case only, 1 or 2 when at
one place by so many characters, else null. Names that differ in digits only, as those of many of a kind, are no slips
of each other; nor are short ones that have little in common.';

create function parley._p_near_service(role oid, service_name text) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select n.name
  from (
    select s.name, parley._p_slip($2, s.name) as slip
    from parley._p_service as s
    where parley._p_slip($2, s.name) is not null and parley._p_is_visible($1, 'service', s.service_id, s.owner)
    union
    select r.remote_service_name, parley._p_slip($2, r.remote_service_name)
    from parley._p_route as r
    where not r.is_inbound
      and parley._p_slip($2, r.remote_service_name) is not null
      and parley._p_is_visible($1, 'route', r.route_id, r.owner)
  ) as n
  order by n.slip, n.name collate "C"
  limit 1
$$;

comment on function parley._p_near_service(oid, text) is
'Gives the service, here or where a route leads, that may have been meant by a name that no service has, if the role
may see it; null when there is none.';
