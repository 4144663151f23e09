-- The questions that a daemon asks while a peer is still connected, so that a message that would come back as a report
-- is refused at once (spec mail 3.2, 3.6). Nothing is decided here that the categorizer does not decide in the same way
-- later.
--
-- Cost: one or two probes of the directory; a daemon keeps an answer that is_for_all for some seconds.

create type parley_mail._p_recipient_check as (status text, reason text, is_for_all boolean);

comment on type parley_mail._p_recipient_check is
'Whether a recipient is taken. status: null, or why not; is_for_all: it does not depend on sender and size.';

create function parley_mail._p_check_recipient(
  recipient text, sender text, is_internal boolean, size bigint, caller parley.caller default parley.current_caller()
) returns parley_mail._p_recipient_check
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_check parley_mail._p_recipient_check;
  v_entry parley_mail._p_directory_entry;
  v_address text := parley_mail._p_folded(recipient);
  v_patterns text[];
  v_postmaster text;
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  v_check.is_for_all := true;
  -- An alias leads on, to any depth that the categorizer would follow; a circle of aliases is left to it.
  for v_step in 1..20 loop
    select e.* into v_entry from parley_mail._p_directory_entry as e where e.address = v_address;
    if v_entry.address is null then
      v_postmaster := parley_mail._p_postmaster_for(v_address);
      if v_postmaster is not null then
        v_address := v_postmaster;
        continue;
      end if;
      v_patterns := parley_mail._p_domain_patterns(parley_mail._p_domain_of(v_address));
      if parley_mail._p_bound(v_address, v_patterns) is null and (
        select a.type
        from parley_mail._p_accepted_domain as a
        where a.domain = any (v_patterns)
        order by array_position(v_patterns, a.domain)
        limit 1
      ) = 'AUTHORITATIVE' then
        v_check.status := '5.1.1';
        v_check.reason := 'RESOLVER.ADR.ExRecipNotFound; not found';
      end if;
      return v_check;
    end if;
    v_check.is_for_all := v_check.is_for_all and v_entry.max_receive_size is null
      and not v_entry.internal_senders_only and v_entry.accept_from = '{}' and v_entry.reject_from = '{}';
    v_check.status := parley_mail._p_restriction(v_entry, sender, is_internal, size);
    if v_check.status is not null then
      v_check.reason := case v_check.status
        when '5.2.3' then 'RESOLVER.RST.SizeLimit; message too large for this recipient'
        else 'RESOLVER.RST.NotAuthorized; not allowed to send to this recipient'
      end;
      return v_check;
    end if;
    exit when v_entry.kind <> 'alias';
    v_address := parley_mail._p_folded(v_entry.entry);
  end loop;
  return v_check;
end
$$;

comment on function parley_mail._p_check_recipient(text, text, boolean, bigint, parley.caller) is
'Reports whether a recipient in our domains would be refused by the directory.
Arguments: recipient; sender, of the envelope; is_internal, whether he is one of ours; size, as announced, 0 where
it was not.
Errors: PM001 the role does not hold SERVE.
Source: spec mail 3.6, 6.1.';

create type parley_mail._p_sender_check as (max_send_size bigint, max_recipients integer);

comment on type parley_mail._p_sender_check is
'The settings that hold for a sender of ours; null where nothing is said of him.';

create function parley_mail._p_check_sender(sender text, caller parley.caller default parley.current_caller())
returns parley_mail._p_sender_check
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_check parley_mail._p_sender_check;
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  select e.max_send_size, e.max_recipients into v_check
  from parley_mail._p_directory_entry as e
  where e.address = parley_mail._p_folded(_p_check_sender.sender);
  return v_check;
end
$$;

comment on function parley_mail._p_check_sender(text, parley.caller) is
'Gives the limits of a sender of ours.
Arguments: sender, of the envelope.
Errors: PM001 the role does not hold SERVE.
Source: spec mail 3.2.';

create function parley_mail._p_may_submit(role text, caller parley.caller default parley.current_caller())
returns boolean
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  return coalesce(
    (
      select r.rolcanlogin and coalesce(r.rolvaliduntil > clock_timestamp(), true)
        and parley_mail._p_holds(r.oid, 'SEND') and not parley_mail._p_is_superuser(r.oid)
      from pg_roles as r
      where r.rolname = _p_may_submit.role
    ),
    false
  );
end
$$;

comment on function parley_mail._p_may_submit(text, parley.caller) is
'Reports whether a role of PostgreSQL may log in, holds SEND and is no superuser, so that a user who stands for it may
submit.
Arguments: role.
Errors: PM001 the role of the caller does not hold SERVE.
Source: spec mail 3.4.';
