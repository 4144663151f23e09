-- Quotas: how much roles may submit by parley_mail.send, and store by parley_mail.put_attachment, and as whom they may
-- send (spec mail 4.3, 14.3).
--
-- A role has the limits of its own row, or of that of public, 0; nobody inherits any. Each submission reads the row
-- that applies, and waits for nobody who changes it.

create table parley_mail._p_quota (
  role_number integer primary key,
  messages_per_minute integer check (messages_per_minute >= 0),
  bytes_per_minute bigint check (bytes_per_minute >= 0),
  is_exempt_from_pressure boolean not null default false,
  stored_bytes bigint not null default 104857600 check (stored_bytes >= 0),
  allowed_senders text[]
);

comment on table parley_mail._p_quota is
'How much a role may submit in a minute; null: as much as it likes. is_exempt_from_pressure: it may submit while
resources are short; stored_bytes: how many bytes of attachments it may have stored; allowed_senders:
addresses and domains that it may send as, in the form in which they are compared, null: those that are ours;
role_number: 0 is public.';

create function parley_mail._p_check_quota(
  role text, messages_per_minute integer, bytes_per_minute bigint, stored_bytes bigint, without text[]
) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit record;
begin
  for v_limit in
    select l.name, l.value
    from (
      values ('messages_per_minute', messages_per_minute::bigint), ('bytes_per_minute', bytes_per_minute),
        ('stored_bytes', stored_bytes)
    ) as l (name, value)
    where l.value is not null
  loop
    if v_limit.value < 0 then
      found := parley_mail._p_raise('quota', role, format('%s is %s.', v_limit.name, v_limit.value));
    elsif v_limit.name = any (without) then
      found := parley_mail._p_raise('quota', role, format('%s is given, and lifted.', v_limit.name));
    end if;
  end loop;
  for v_limit in
    select w.name
    from unnest(without) as w (name)
    where (w.name in ('messages_per_minute', 'bytes_per_minute', 'stored_bytes', 'allowed_senders')) is not true
    limit 1
  loop
    found := parley_mail._p_raise(
      'choice', 'without', coalesce(v_limit.name, 'null'),
      'messages_per_minute, bytes_per_minute, stored_bytes, allowed_senders'
    );
  end loop;
  return true;
end
$$;

comment on function parley_mail._p_check_quota(text, integer, bigint, bigint, text[]) is
'Refuses limits that a quota cannot have.
Errors: PM010.';

create function parley_mail._p_checked_senders(role text, allowed_senders text[], without text[]) returns text[]
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_sender text;
begin
  if allowed_senders is not null and 'allowed_senders' = any (without) then
    found := parley_mail._p_raise('quota', role, 'allowed_senders is given, and lifted.');
  elsif allowed_senders = '{}' then
    found := parley_mail._p_raise('quota', role, 'allowed_senders is empty: to forbid all, revoke SEND.');
  end if;
  foreach v_sender in array coalesce(allowed_senders, '{}') loop
    if (v_sender = '*' or parley_mail._p_is_address(v_sender)
        or parley_mail._p_is_domain(regexp_replace(v_sender, E'^\\*\\.', ''))) is not true then
      found := parley_mail._p_raise('quota', role, format(
        '"%s" of allowed_senders is neither an address nor a domain, *.domain or *.',
        coalesce(left(v_sender, 100), 'null')
      ));
    end if;
  end loop;
  return array(
    select parley_mail._p_folded(a.sender) from unnest(allowed_senders) with ordinality as a (sender, n) order by a.n
  );
end
$$;

comment on function parley_mail._p_checked_senders(text, text[], text[]) is
'Gives senders that a role may be allowed in the form in which they are compared.
Arguments: role, for the error; allowed_senders; without, of set_quota.
Errors: PM010.';

create function parley_mail.set_quota(
  role text, messages_per_minute integer default null, bytes_per_minute bigint default null,
  is_exempt_from_pressure boolean default null, stored_bytes bigint default null, without text[] default null,
  allowed_senders text[] default null, caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_role oid;
  v_number integer;
  v_senders text[];
begin
  found := parley_mail._p_require(v_caller, 'ADMINISTER');
  v_role := parley_mail._p_role(role);
  found := parley_mail._p_check_quota(role, messages_per_minute, bytes_per_minute, stored_bytes, without);
  if allowed_senders is not null or 'allowed_senders' = any (without) then
    v_senders := parley_mail._p_checked_senders(role, allowed_senders, without);
    -- Users who stand for the role are held to it by daemons.
    perform parley_mail._p_begin_change(v_caller);
  end if;
  v_number := coalesce((
    select max(q.role_number)
    from parley_mail._p_quota as q
    where q.role_number = any (parley._p_numbers_of(v_role))
  ), parley._p_number_at_once(v_role));
  insert into parley_mail._p_quota as q (
    role_number, messages_per_minute, bytes_per_minute, is_exempt_from_pressure, stored_bytes, allowed_senders
  )
  values (
    v_number, set_quota.messages_per_minute, set_quota.bytes_per_minute,
    coalesce(set_quota.is_exempt_from_pressure, false), coalesce(set_quota.stored_bytes, 104857600),
    case when set_quota.allowed_senders is not null then v_senders end
  )
  on conflict on constraint _p_quota_pkey do update
  set
    messages_per_minute = case
      when 'messages_per_minute' = any (without) then null
      else coalesce(set_quota.messages_per_minute, q.messages_per_minute)
    end,
    bytes_per_minute = case
      when 'bytes_per_minute' = any (without) then null
      else coalesce(set_quota.bytes_per_minute, q.bytes_per_minute)
    end,
    is_exempt_from_pressure = coalesce(set_quota.is_exempt_from_pressure, q.is_exempt_from_pressure),
    stored_bytes = case
      when 'stored_bytes' = any (without) then 104857600
      else coalesce(set_quota.stored_bytes, q.stored_bytes)
    end,
    allowed_senders = case
      when 'allowed_senders' = any (without) then null
      when set_quota.allowed_senders is not null then v_senders
      else q.allowed_senders
    end;
  perform parley_mail._p_record_audit(v_caller, 'set quota', role, jsonb_strip_nulls(jsonb_build_object(
    'messages_per_minute', messages_per_minute, 'bytes_per_minute', bytes_per_minute,
    'is_exempt_from_pressure', is_exempt_from_pressure, 'stored_bytes', stored_bytes, 'without', without,
    'allowed_senders', allowed_senders
  )));
end
$$;

comment on function parley_mail.set_quota(text, integer, bigint, boolean, bigint, text[], text[], parley.caller) is
'Limits how much a role may submit by parley_mail.send, and as whom it may send; public stands for each role that has no
quota of its own. A null argument leaves its limit as it is; in a new quota it is no limit, no exemption, and 100 MB of
stored_bytes.
Arguments: role; messages_per_minute; bytes_per_minute; is_exempt_from_pressure, whether it may submit while resources
are short, until nearly nothing is left of a volume; stored_bytes, how much it may store by parley_mail.put_attachment;
without, names of limits that it has no longer, where stored_bytes becomes 100 MB; allowed_senders, addresses, domains
and *.domains that it may send as, "*" for all: without a list it sends from the accepted domains and the default
domain.
Errors: PM001 not allowed, PM002 no such role, PM010 negative, malformed, or given and lifted.
Source: spec mail 4.3, 14.3.';

create function parley_mail.drop_quota(role text, caller parley.caller default parley.current_caller())
returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_numbers integer[];
  v_is_dropped boolean;
begin
  found := parley_mail._p_require(v_caller, 'ADMINISTER');
  v_numbers := parley_mail._p_numbers_named(drop_quota.role);
  if exists (
    select from parley_mail._p_quota as q where q.role_number = any (v_numbers) and q.allowed_senders is not null
  ) then
    -- Users who stand for the role are held to its list by daemons.
    perform parley_mail._p_begin_change(v_caller);
  end if;
  delete from parley_mail._p_quota as q where q.role_number = any (v_numbers);
  v_is_dropped := found;
  perform parley_mail._p_record_audit(v_caller, 'drop quota', role, null);
  return v_is_dropped;
end
$$;

comment on function parley_mail.drop_quota(text, parley.caller) is
'Drops the quota of a role, which has that of public from then on; false when it has none of its own.
Arguments: role, or public, or a name that no role has since the database was restored.
Errors: PM001 not allowed, PM002 no such role.
Source: spec mail 4.3.';

create function parley_mail._p_quotas(caller parley.caller default parley.current_caller())
returns table (
  role text, messages_per_minute integer, bytes_per_minute bigint, is_exempt_from_pressure boolean, stored_bytes bigint,
  allowed_senders text[]
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select r.name, q.messages_per_minute, q.bytes_per_minute, q.is_exempt_from_pressure, q.stored_bytes,
    q.allowed_senders
  from (
    select w.role, parley._p_numbers_of(w.role) as numbers
    from (select parley.caller_role(caller) as role) as w
  ) as c
  cross join parley_mail._p_quota as q
  join parley._p_named_role as r on r.number = q.role_number
  where q.role_number = any (c.numbers)
    or (
      q.role_number = 0 and not exists (select from parley_mail._p_quota as o where o.role_number = any (c.numbers))
    )
    or parley_mail._p_holds(c.role, 'ADMINISTER')
$$;

comment on function parley_mail._p_quotas(parley.caller) is 'Gives what parley_mail.quotas shows.';

create view parley_mail.quotas as
select q.role, q.messages_per_minute, q.bytes_per_minute, q.is_exempt_from_pressure, q.stored_bytes,
  q.allowed_senders
from parley_mail._p_quotas() as q;

comment on view parley_mail.quotas is
'How much roles may submit in a minute and store: the quota that applies to the current role, its own or that of public,
and those of all for who administers mail. Null is no limit, of allowed_senders that
they are those of our domains. A role without a row has no limit a minute, and may store 100 MB.';

create function parley_mail._p_senders_of_role(role text) returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce((
    select jsonb_build_object('allowed_senders', to_jsonb(o.allowed_senders))
    from (
      select q.allowed_senders
      from parley_mail._p_quota as q
      where q.role_number
        = any (parley._p_numbers_of(to_regrole(quote_ident(_p_senders_of_role.role))) || 0)
      order by q.role_number desc
      limit 1
    ) as o
    where o.allowed_senders is not null
  ), '{}');
end
$$;

comment on function parley_mail._p_senders_of_role(text) is
'Gives, as a setting of a credential, the senders that a role is allowed by its quota; {}: it has no list.';

create function parley_mail._p_follow_roles() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_gone constant integer := parley._p_follow_roles();
begin
  delete from parley_mail._p_right as r
  using parley._p_role_number as k
  where k.number = r.grantee and k.role = 0;
  delete from parley_mail._p_quota as q
  using parley._p_role_number as k
  where k.number = q.role_number and k.role = 0;
  return v_gone;
end
$$;

comment on function parley_mail._p_follow_roles() is
'Follows roles that were renamed or dropped, as the broker does, and takes rights and quotas from those that are gone;
gives how many numbers have become nobody''s.';
