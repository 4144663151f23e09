-- The policies of domains for hosts that send mail to them (MTA-STS), kept so that they outlast the daemon that read
-- them.

create table parley_mail._p_transport_policy (
  domain text primary key,
  policy jsonb not null,
  until timestamptz not null,
  kept_at timestamptz not null default clock_timestamp()
);

comment on table parley_mail._p_transport_policy is 'MTA-STS policies of domains, until they end.';

create function parley_mail._p_kept_policy(domain text, caller parley.caller default parley.current_caller())
returns jsonb
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  return (
    select p.policy
    from parley_mail._p_transport_policy as p
    where p.domain = parley_mail._p_folded(_p_kept_policy.domain) and p.until > clock_timestamp()
  );
end
$$;

comment on function parley_mail._p_kept_policy(text, parley.caller) is
'Gives the MTA-STS policy of a domain that is kept and not over; null when there is none.
Arguments: domain.
Errors: PM001 the role does not hold SERVE.
Source: spec mail 20.';

create function parley_mail._p_keep_policy(
  domain text, policy jsonb, until timestamptz, caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  delete from parley_mail._p_transport_policy as p where p.until < clock_timestamp() - interval '1 day';
  insert into parley_mail._p_transport_policy as p (domain, policy, until)
  values (parley_mail._p_folded(_p_keep_policy.domain), _p_keep_policy.policy, _p_keep_policy.until)
  on conflict on constraint _p_transport_policy_pkey do update
  set policy = excluded.policy, until = excluded.until, kept_at = clock_timestamp();
end
$$;

comment on function parley_mail._p_keep_policy(text, jsonb, timestamptz, parley.caller) is
'Keeps the MTA-STS policy of a domain.
Arguments: domain; policy, as the daemon writes it; until, when it ends.
Errors: PM001 the role does not hold SERVE.
Source: spec mail 20.';
