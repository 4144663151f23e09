-- Resolution: who gets a message (spec mail 6.1).
--
-- Recipients are looked up in the directory, all of a batch at once. Aliases lead to their targets, addresses of a
-- mailbox to its primary one, groups to their members, forwarding to where it points, to any depth. A step to where a
-- recipient has been already is none: so harmless loops end, and an address that is reached in several ways gets the
-- message once. It is a loop when mailboxes forward to each other, keep nothing, and so the message ends nowhere.

create type parley_mail._p_resolved as (
  message_id bigint,
  submitted_ordinal integer,
  address text,
  original_recipient text,
  notify text,
  envelope_sender text,
  store text,
  status text,
  reason text,
  event text,
  part integer,
  ordinal integer,
  target_id bigint,
  lane text
);

comment on type parley_mail._p_resolved is
'The result of categorizing one recipient: an address that gets the message; or, where status is set, one that does
not, and why. event: RESOLVE, EXPAND or REDIRECT where it is not the address that was submitted, DUPLICATEEXPAND, or
DUPLICATEREDIRECT where forwarding led to it, where another recipient is the same address. envelope_sender: null is
that of the message. part and ordinal: its place in the message or in a fork, target_id; lane: the next hop.';

create function parley_mail._p_is_listed(list text[], address text) returns boolean
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select parley_mail._p_folded(address) = any (list) or parley_mail._p_domain_of(address) = any (list)
$$;

comment on function parley_mail._p_is_listed(text[], text) is
'Reports whether a list has an address or its domain; the list is in lower case.';

create function parley_mail._p_restriction(
  entry parley_mail._p_directory_entry, sender text, is_internal boolean, size bigint
) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  -- Most addresses have no entry.
  if entry.address is null then
    return null;
  end if;
  return case
    when entry.max_receive_size < size then '5.2.3'
    when entry.internal_senders_only and not is_internal then '5.7.1'
    when entry.reject_from <> '{}' and parley_mail._p_is_listed(entry.reject_from, sender) then '5.7.1'
    -- The null sender reports what became of mail: a mailbox has sent some, a group has not.
    when entry.accept_from <> '{}' and (sender <> '' or entry.kind = 'distribution group')
      and not parley_mail._p_is_listed(entry.accept_from, sender) then '5.7.1'
  end;
end
$$;

comment on function parley_mail._p_restriction(parley_mail._p_directory_entry, text, boolean, bigint) is
'Gives the status with which a mailbox or a group refuses a message; null when it takes it.
Arguments: entry; sender, of the envelope; is_internal, whether the message is of a sender of ours; size, 0 for messages
that are exempt from limits.
Source: spec mail 6.1 (6).';

create type parley_mail._p_reached as (
  message_id bigint,
  ordinal integer,
  address text,
  key text,
  notify text,
  envelope_sender text,
  event text,
  kind text,
  store text,
  status text,
  is_final boolean
);

comment on type parley_mail._p_reached is
'An address that was reached from a recipient of a message. key: it as it is compared; is_final: it gets the message;
status: it is refused.';

create function parley_mail._p_is_redirected(address text, redirect text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_patterns text[];
begin
  if redirect is null or address = parley_mail._p_folded(redirect) then
    return false;
  end if;
  v_patterns := parley_mail._p_domain_patterns(parley_mail._p_domain_of(address));
  return not exists (select from parley_mail._p_accepted_domain as a where a.domain = any (v_patterns))
    and parley_mail._p_bound(address, v_patterns) is null;
end
$$;

comment on function parley_mail._p_is_redirected(text, text) is
'Reports whether mail for an address outside goes to another one, because the organization only tests.
Arguments: address, in lower case; redirect, the setting redirect_all_to.
Source: spec mail 20.';

create function parley_mail._p_postmaster_for(address text) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_patterns text[];
  v_postmaster text;
begin
  if address not like 'postmaster@%' then
    return null;
  end if;
  select parley_mail._p_folded(coalesce(o.settings ->> 'postmaster', 'postmaster@' || o.default_domain))
  into v_postmaster
  from parley_mail._p_organization as o;
  v_patterns := parley_mail._p_domain_patterns(parley_mail._p_domain_of(address));
  if v_postmaster = address or parley_mail._p_bound(address, v_patterns) is not null or (
    select a.type
    from parley_mail._p_accepted_domain as a
    where a.domain = any (v_patterns)
    order by array_position(v_patterns, a.domain)
    limit 1
  ) is distinct from 'AUTHORITATIVE' then
    return null;
  end if;
  return v_postmaster;
end
$$;

comment on function parley_mail._p_postmaster_for(text) is
'Gives who gets the mail for postmaster@ a domain of ours where the directory has no such address: the postmaster of the
organization. Null for other addresses, and for that one itself.
Arguments: address, in lower case, that is not in the directory.
Source: RFC 5321 section 4.5.1.';

create function parley_mail._p_notify_of_members(notify text) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when notify ~ 'SUCCESS' then coalesce(
      nullif(array_to_string(array_remove(string_to_array(notify, ','), 'SUCCESS'), ','), ''), 'NEVER'
    )
    else notify
  end
$$;

comment on function parley_mail._p_notify_of_members(text) is
'Gives which reports are made about members of a group: that it was expanded is the success of the message to it.
Source: RFC 3461 section 5.2.7.';

create function parley_mail._p_reach(message_ids bigint[]) returns setof parley_mail._p_reached
language plpgsql stable
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  with recursive organization as (
    select o.settings ->> 'redirect_all_to' as redirect from parley_mail._p_organization as o
  ),

  message as (
    select
      m.message_id, m.sender, m.recipients, m.notify,
      m.directionality = 'ORIGINATING' or m.source = 'DSN' as is_internal,
      case when m.source = 'DSN' then 0 else m.size end as size,
      case
        when m.source = 'DSN' or m.directionality <> 'ORIGINATING' then null
        when m.size > s.max_send_size then '5.2.3'
        when cardinality(m.recipients) > s.max_recipients then '5.5.3'
      end as refused
    from parley_mail._p_message as m
    left join parley_mail._p_directory_entry as s on s.address = parley_mail._p_folded(m.sender)
    where m.message_id = any (message_ids)
  ),

  reached as (
    select m.message_id, r.ordinal::integer as ordinal, r.address, parley_mail._p_folded(r.address) as key, r.notify,
      null::text as envelope_sender, null::text as event
    from message as m
    cross join unnest(m.recipients, m.notify) with ordinality as r (address, notify, ordinal)
    union
    select
      r.message_id, r.ordinal, t.address, parley_mail._p_folded(t.address),
      case
        when d.kind = 'distribution group' and d.report_to = 'NONE' then 'NEVER'
        when d.kind = 'distribution group' and d.entry = r.key then parley_mail._p_notify_of_members(r.notify)
        else r.notify
      end,
      case when d.kind = 'distribution group' and d.report_to = 'MANAGER' then d.manager else r.envelope_sender end,
      case
        when d.kind = 'distribution group' and d.entry = r.key or r.event = 'EXPAND' then 'EXPAND'
        when d.kind = 'mailbox' and d.entry = r.key or d.address is null or r.event = 'REDIRECT' then 'REDIRECT'
        else 'RESOLVE'
      end
    from reached as r
    join message as m on m.message_id = r.message_id
    cross join organization as o
    left join parley_mail._p_directory_entry as d on d.address = r.key
    cross join lateral (
      select d.entry as address where d.entry <> r.key
      union all
      select g.member
      from parley_mail._p_group_member as g
      where d.kind = 'distribution group' and g.entry = r.key
      union all
      select f.address
      from unnest(d.forward_to) as f (address)
      where d.kind = 'mailbox' and d.entry = r.key and d.forwarding <> 'NONE'
      union all
      select o.redirect where d.address is null and parley_mail._p_is_redirected(r.key, o.redirect)
      union all
      select p.address
      from (select parley_mail._p_postmaster_for(r.key) as address where d.address is null) as p
      where p.address is not null
    ) as t
    where m.refused is null and parley_mail._p_restriction(d, m.sender, m.is_internal, m.size) is null
  )

  select
    r.message_id, r.ordinal, r.address, r.key, r.notify, r.envelope_sender, r.event, d.kind, d.store,
    coalesce(m.refused, parley_mail._p_restriction(d, m.sender, m.is_internal, m.size)),
    d.address is null and not parley_mail._p_is_redirected(r.key, o.redirect)
    and parley_mail._p_postmaster_for(r.key) is null
    or (d.kind = 'mailbox' and d.entry = r.key and d.forwarding <> 'ONLY')
  from reached as r
  join message as m on m.message_id = r.message_id
  cross join organization as o
  left join parley_mail._p_directory_entry as d on d.address = r.key;
end
$$;

comment on function parley_mail._p_reach(bigint[]) is
'Gives every address that is reached from the recipients of some messages, by one way or several.
Source: spec mail 6.1.';

create function parley_mail._p_resolve(message_ids bigint[]) returns setof parley_mail._p_resolved
language plpgsql stable
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  with reached as materialized (
    select r.message_id, r.ordinal, r.address, r.key, r.notify, r.envelope_sender, r.event, r.kind, r.store, r.status,
      r.is_final
    from parley_mail._p_reach(message_ids) as r
  ),

  submitted as (
    select m.message_id, r.ordinal::integer as ordinal, r.address, r.notify, r.original
    from parley_mail._p_message as m
    cross join unnest(m.recipients, m.notify, m.original_recipients) with ordinality
      as r (address, notify, original, ordinal)
    where m.message_id = any (message_ids)
  ),

  ended as (
    select r.message_id, r.ordinal, r.address, r.key, r.notify, r.envelope_sender, r.store, r.event, r.status
    from reached as r
    where r.is_final or r.status is not null
    union all
    select s.message_id, s.ordinal, s.address, parley_mail._p_folded(s.address), s.notify, null, null, null, '5.4.6'
    from submitted as s
    where not exists (
      select
      from reached as r
      where r.message_id = s.message_id and r.ordinal = s.ordinal
        and (r.is_final or r.status is not null or r.kind = 'distribution group')
    )
  )

  select
    e.message_id, e.ordinal, e.address,
    case
      when s.original is not null or e.event is null then s.original
      when s.address ~ '[^ -~]' then 'utf-8;' || s.address
      else 'rfc822;' || s.address
    end,
    e.notify, e.envelope_sender, e.store, e.status,
    case e.status
      when '5.2.3' then 'RESOLVER.RST.SizeLimit; message too large for this recipient or sender'
      when '5.5.3' then 'RESOLVER.ADR.RecipLimit; too many recipients'
      when '5.4.6' then 'RESOLVER.FWD.Loop; forwarding goes in a circle'
      when '5.7.1' then 'RESOLVER.RST.NotAuthorized; not allowed to send to this recipient'
    end,
    case
      when row_number() over same_address = 1 then e.event
      when e.event = 'REDIRECT' then 'DUPLICATEREDIRECT'
      else 'DUPLICATEEXPAND'
    end,
    null::integer, null::integer, null::bigint, null::text
  from ended as e
  join submitted as s on s.message_id = e.message_id and s.ordinal = e.ordinal
  window same_address as (partition by e.message_id, e.key order by (e.status is not null)::integer, e.ordinal);
end
$$;

comment on function parley_mail._p_resolve(bigint[]) is
'Gives who gets some messages: a row for each address that gets one, and for each that is refused. Where an address
leads to another, it is the original recipient, of the type that RFC 6533 gives it.
Source: spec mail 6.1.';
