-- Raw messages that are kept for receivers of a reference to them: services and tables whose binding has raw REFERENCE
-- (spec mail 12.2).
--
-- A body that is kept has a number of its own, from the sequence of messages, under which it refers to the content; it
-- is kept in the transaction that delivers, and removed when its time is over or its receiver has done with it.
--
-- A role that may receive from the queue of the service that got the reference may read the body, and so may a role
-- that may read the table. The snapshot of the statement counts, and the service itself, not its name. A table is known
-- by its name and its oid, so that in a restored copy, where oids are others, nobody reads what another table got. A
-- role that may receive, or delete from the table, may release it. No other role learns whether there is one. Null
-- refuses.
--
-- Releasing only marks the row, and maintenance removes it. Removal locks the content, and a delivery of the same
-- content to another receiver would wait for that lock as long as the transaction of the first one lasts.

create table parley_mail._p_kept_body (
  body_id bigint primary key,
  service_id integer,
  target_table oid,
  target_name text,
  content_id bigint,
  body bytea,
  kept_until timestamptz not null
) with (toast_tuple_target = 8160);

comment on table parley_mail._p_kept_body is
'Bodies of messages that were delivered by reference: to which service or table, and until when they are kept.';

alter table parley_mail._p_kept_body alter column body set storage external;

create index _p_kept_body_until on parley_mail._p_kept_body (kept_until);

create function parley_mail._p_keep_body(message_id bigint, binding parley_mail._p_service_pattern) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_id bigint;
  v_service_id integer := (select s.service_id from parley.services as s where s.name = binding.service);
  v_holder record;
begin
  if binding.raw <> 'REFERENCE' or (v_service_id is null and binding.target_table is null) then
    return null;
  end if;
  select b.message_id, b.content_id, b.body into strict v_holder
  from parley_mail._p_message as m
  join parley_mail._p_message as b on b.message_id = coalesce(m.body_message_id, m.message_id)
  where m.message_id = _p_keep_body.message_id;
  v_id := nextval('parley_mail._p_message_id');
  if v_holder.content_id is not null then
    perform parley_store.share_content(v_holder.content_id, 'mail', v_holder.message_id, v_id);
  end if;
  insert into parley_mail._p_kept_body (
    body_id, service_id, target_table, target_name, content_id, body, kept_until
  )
  select v_id, v_service_id, c.oid, n.nspname || '.' || c.relname,
    v_holder.content_id, v_holder.body,
    clock_timestamp() + make_interval(secs => binding.raw_retention)
  from (select to_regclass(binding.target_table)::oid as target) as t
  left join pg_class as c on c.oid = t.target
  left join pg_namespace as n on n.oid = c.relnamespace;
  return v_id;
end
$$;

comment on function parley_mail._p_keep_body(bigint, parley_mail._p_service_pattern) is
'Keeps the body of a message for those who get it by a binding, and gives its number; null where it is given whole: the
binding has no reference, or its service is in another database, where nobody could read it.
Source: spec mail 12.2.';

create function parley_mail._p_may_use_kept(role oid, kept parley_mail._p_kept_body, privilege text) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(case
    when kept.target_table is not null then exists (
      select
      from pg_class as c
      join pg_namespace as n on n.oid = c.relnamespace
      join pg_roles as r on r.oid = $1
      where c.oid = kept.target_table and c.relkind in ('r', 'p')
        -- As it is called, not as it is quoted: that differs with quote_all_identifiers.
        and n.nspname || '.' || c.relname = kept.target_name
        and has_schema_privilege(r.oid, c.relnamespace, 'usage')
        and has_table_privilege(r.oid, c.oid, 'select') and has_table_privilege(r.oid, c.oid, $3)
        -- A policy may hide from him the row that has the reference.
        and (not c.relrowsecurity or r.rolsuper or r.rolbypassrls)
    )
    else exists (
      select
      from parley.services as s
      join parley.service_queues as q on q.object_id = s.service_queue_id
      where s.service_id = kept.service_id
        and (
          pg_has_role($1, q.principal_id, 'usage')
          or exists (
            select
            from parley.permissions as p
            where p.class = 'queue' and p.object_id = q.object_id and p.permission in ('RECEIVE', 'CONTROL')
              and case when p.grantee = 'PUBLIC' then true else pg_has_role($1, p.grantee, 'usage') end
          )
        )
    )
  end, false)
$$;

comment on function parley_mail._p_may_use_kept(oid, parley_mail._p_kept_body, text) is
'Reports whether a role may read a body that is kept: it may receive from the queue, or read the whole table, that got
the reference.
Arguments: role; kept; privilege on the table that it needs too: select to read, delete to release.';

create function parley_mail._p_find_kept(
  role oid, raw_reference bigint, privilege text
) returns parley_mail._p_kept_body
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_kept parley_mail._p_kept_body;
begin
  select * into v_kept
  from parley_mail._p_kept_body as k
  where k.body_id = raw_reference and k.kept_until > '-infinity';
  if not found or parley_mail._p_may_use_kept(role, v_kept, privilege) is not true then
    found := parley_mail._p_raise('raw message', coalesce(raw_reference::text, 'null'));
  end if;
  return v_kept;
end
$$;

comment on function parley_mail._p_find_kept(oid, bigint, text) is
'Finds a body that is kept and not released, for a role that may use it.
Arguments: role; raw_reference; privilege, as _p_may_use_kept.
Errors: PM006 there is none, or the role may not use it.';

create function parley_mail.read_raw(
  raw_reference bigint, from_byte bigint default 0, bytes integer default null,
  caller parley.caller default parley.current_caller()
) returns bytea
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_kept parley_mail._p_kept_body := parley_mail._p_find_kept(parley.caller_role(caller), raw_reference, 'select');
  v_from constant integer := least(greatest(coalesce(from_byte, 0), 0), 2000000000);
  v_bytes constant integer := least(greatest(coalesce(bytes, 2000000000), 0), 2000000000);
begin
  if v_kept.content_id is null then
    return substring(v_kept.body from v_from + 1 for v_bytes);
  end if;
  return parley_store.read_bytes(v_kept.content_id, 'mail', v_kept.body_id, v_from, v_bytes);
end
$$;

comment on function parley_mail.read_raw(bigint, bigint, integer, parley.caller) is
'Gives a raw message, or a piece of it, to who may receive from the queue, or read the whole table, that got the
reference.
Arguments: raw_reference, of the payload; from_byte, where to begin; bytes, how many at most: null, all.
Errors: PM006 there is none, it is kept no longer, or the role may not read it; PS010 bytes of it are missing.
Source: spec mail 12.2.';

create function parley_mail.release_raw(raw_reference bigint, caller parley.caller default parley.current_caller())
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_kept parley_mail._p_kept_body := parley_mail._p_find_kept(parley.caller_role(caller), raw_reference, 'delete');
begin
  update parley_mail._p_kept_body as k set kept_until = '-infinity' where k.body_id = v_kept.body_id;
end
$$;

comment on function parley_mail.release_raw(bigint, parley.caller) is
'Has a raw message removed that nobody needs any more, before its time is over. From the commit on it cannot be read;
its bytes go with the next maintenance. For who may receive from the queue, or delete from the table, that got the
reference.
Arguments: raw_reference, of the payload.
Errors: PM006 there is none, it is kept no longer, or the role may not release it.
Source: spec mail 12.2.';

create function parley_mail._p_remove_kept() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids bigint[];
begin
  with removed as (
    delete from parley_mail._p_kept_body as k
    where k.body_id in (
      select o.body_id
      from parley_mail._p_kept_body as o
      where o.kept_until < clock_timestamp()
      order by o.kept_until
      limit 1000
      for update skip locked
    )
    returning k.body_id
  )
  select array_agg(r.body_id) into v_ids from removed as r;
  if v_ids is null then
    return 0;
  end if;
  perform parley_store.release_content('mail', v_ids);
  return cardinality(v_ids);
end
$$;

comment on function parley_mail._p_remove_kept() is 'Removes bodies whose time is over, at most 1,000; gives how many.';
