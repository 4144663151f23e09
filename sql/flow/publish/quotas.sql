-- Quotas: how much roles may publish in a minute.
--
-- A role has the limits of its own row, or of that of public, 0; nobody inherits any.

create table parley_flow._p_quota (
  role_number integer primary key,
  messages_per_minute integer check (messages_per_minute >= 0),
  bytes_per_minute bigint check (bytes_per_minute >= 0)
);

comment on table parley_flow._p_quota is
'How much a role may publish in a minute; null: as much as it likes. role_number: 0 is public.';

create table parley_flow._p_published (
  published_by integer not null,
  at timestamptz not null default clock_timestamp(),
  messages integer not null,
  bytes bigint not null
);

comment on table parley_flow._p_published is
'The messages that roles that have a quota published in the last minutes. Appended to, so that sessions of a role do
not wait for each other; what others have not committed yet is not counted, so that what is under way at once may pass
a quota.';

alter table parley_flow._p_published replica identity full;

create index _p_published_at on parley_flow._p_published (published_by, at);

create function parley_flow._p_count_against_quota(role oid, number integer, bodies bytea[]) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_quota parley_flow._p_quota;
  v_bytes bigint;
  v_sum record;
begin
  if not exists (select from parley_flow._p_quota as q) then
    return true;
  end if;
  select * into v_quota
  from parley_flow._p_quota as q
  where q.role_number = any (parley._p_numbers_of(role) || 0)
  order by q.role_number desc
  limit 1;
  if not found then
    return true;
  end if;
  v_bytes := (select sum(octet_length(b.body)) from unnest(bodies) as b (body));
  insert into parley_flow._p_published (published_by, messages, bytes) values (number, cardinality(bodies), v_bytes);
  select sum(p.messages) as messages, sum(p.bytes) as bytes into v_sum
  from parley_flow._p_published as p
  where p.published_by = number and p.at > clock_timestamp() - interval '1 minute';
  if v_sum.messages > v_quota.messages_per_minute then
    found := parley_flow._p_raise(
      'messages', pg_get_userbyid(role), (v_sum.messages - cardinality(bodies))::text, v_quota.messages_per_minute::text
    );
  elsif v_sum.bytes > v_quota.bytes_per_minute then
    found := parley_flow._p_raise(
      'bytes', pg_get_userbyid(role), (v_sum.bytes - v_bytes)::text, v_quota.bytes_per_minute::text
    );
  end if;
  return true;
end
$$;

comment on function parley_flow._p_count_against_quota(oid, integer, bytea[]) is
'Counts what a role publishes, and refuses it where that is more than its quota.
Errors: PF013.';

create function parley_flow.set_quota(
  role text, messages_per_minute integer default null, bytes_per_minute bigint default null,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_role oid;
  v_number integer;
begin
  found := parley_flow._p_require(v_caller, 'ADMINISTER');
  v_role := parley_flow._p_role(role);
  if messages_per_minute < 0 or bytes_per_minute < 0 then
    found := parley_flow._p_raise('quota', role, 'A limit is negative.');
  end if;
  v_number := coalesce((
    select max(q.role_number)
    from parley_flow._p_quota as q
    where q.role_number = any (parley._p_numbers_of(v_role))
  ), parley._p_number_at_once(v_role));
  insert into parley_flow._p_quota as q (role_number, messages_per_minute, bytes_per_minute)
  values (v_number, set_quota.messages_per_minute, set_quota.bytes_per_minute)
  on conflict on constraint _p_quota_pkey do update
  set messages_per_minute = excluded.messages_per_minute, bytes_per_minute = excluded.bytes_per_minute;
  perform parley_flow._p_record_audit(v_caller, 'set quota', role, jsonb_build_object(
    'messages_per_minute', messages_per_minute, 'bytes_per_minute', bytes_per_minute
  ));
end
$$;

comment on function parley_flow.set_quota(text, integer, bigint, parley.caller) is
'Limits how much a role may publish; public stands for each role that has no quota of its own.
Arguments: role; messages_per_minute and bytes_per_minute, null: no limit.
Errors: PF001 without ADMINISTER, PF002 no such role, PF010 negative.';

create function parley_flow.drop_quota(role text, caller parley.caller default parley.current_caller()) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_is_dropped boolean;
begin
  found := parley_flow._p_require(v_caller, 'ADMINISTER');
  delete from parley_flow._p_quota as q where q.role_number = any (parley_flow._p_numbers_named(drop_quota.role));
  v_is_dropped := found;
  perform parley_flow._p_record_audit(v_caller, 'drop quota', role, null);
  return v_is_dropped;
end
$$;

comment on function parley_flow.drop_quota(text, parley.caller) is
'Drops the quota of a role, which has that of public from then on; false when it has none of its own.
Arguments: role, or public, or a name that no role has since the database was restored.
Errors: PF001 without ADMINISTER, PF002 no such role.';

create function parley_flow._p_quotas(caller parley.caller default parley.current_caller())
returns table (role text, messages_per_minute integer, bytes_per_minute bigint)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select r.name, q.messages_per_minute, q.bytes_per_minute
  from (
    select w.role, parley._p_numbers_of(w.role) as numbers
    from (select parley.caller_role(caller) as role) as w
  ) as c
  cross join parley_flow._p_quota as q
  join parley._p_named_role as r on r.number = q.role_number
  where q.role_number = any (c.numbers)
    or (
      q.role_number = 0 and not exists (select from parley_flow._p_quota as o where o.role_number = any (c.numbers))
    )
    or parley_flow._p_holds(c.role, 'ADMINISTER')
$$;

comment on function parley_flow._p_quotas(parley.caller) is 'Gives what parley_flow.quotas shows.';

create view parley_flow.quotas as
select q.role, q.messages_per_minute, q.bytes_per_minute from parley_flow._p_quotas() as q;

comment on view parley_flow.quotas is
'How much roles may publish in a minute: the quota that applies to the current role, its own or that of public, and
those of all for who administers the engine.';
