-- Domains for which nothing leaves: an operator holds them, also before there is a queue for them (spec mail 11.3, 17).

create table parley_mail._p_held_domain (
  domain text primary key,
  reason text,
  held_by text not null,
  held_at timestamptz not null default clock_timestamp()
);

comment on table parley_mail._p_held_domain is 'Domains for which nothing leaves: their queues are suspended.';

create function parley_mail._p_suspend_held() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane record;
  v_suspended integer := 0;
begin
  for v_lane in
    select l.lane, h.domain
    from parley_mail._p_held_domain as h
    join parley_mail._p_delivery_kind as k on k.next_hop_is_domain
    join parley_store.lanes as l on l.system = k.system
    cross join parley_mail._p_parts_of_lane(l.lane) as p
    where p.kind = k.kind and p.next_hop = h.domain and l.suspended_at is null
    -- In the order in which who records outcomes locks lanes.
    order by l.lane_id
  loop
    v_suspended := v_suspended
      + parley_store.suspend_lane('mail', v_lane.lane, 'domain held: ' || v_lane.domain)::integer;
  end loop;
  return v_suspended;
end
$$;

comment on function parley_mail._p_suspend_held() is
'Suspends the queues of domains that are held and that are not suspended; gives how many.';

create function parley_mail.hold_domain(
  domain text, reason text default null, caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_is_new boolean;
  v_route parley_mail._p_route;
begin
  found := parley_mail._p_require(v_caller, 'OPERATE');
  if coalesce(domain !~ E'^[^/@\\s]+$', true) then
    found := parley_mail._p_raise('domain', coalesce(domain, 'null'));
  end if;
  insert into parley_mail._p_held_domain (domain, reason, held_by)
  values (parley_mail._p_folded(hold_domain.domain), hold_domain.reason, pg_get_userbyid(v_caller))
  on conflict on constraint _p_held_domain_pkey do nothing;
  v_is_new := found;
  perform parley_mail._p_suspend_held();
  v_route := parley_mail._p_route_of('postmaster@' || parley_mail._p_folded(domain), null, 0);
  if v_route.lane is null then
    raise notice using
      errcode = 'PM000',
      message = format('mail for %s is delivered here, and not held', domain),
      hint = 'Suspend the queues of its mailboxes, as parley_mail.queues lists them.';
  elsif v_route.lane <> 'UNREACHABLE/-/-' and not exists (
    select
    from parley_mail._p_parts_of_lane(v_route.lane) as p
    join parley_mail._p_delivery_kind as k on k.kind = p.kind
    where k.next_hop_is_domain
  ) then
    raise notice using
      errcode = 'PM000',
      message = format('mail for %s goes by queue %s, and is not held', domain, v_route.lane),
      hint = format(
        'Suspend that, with all that goes there: select parley_mail.suspend_queue(%L);', v_route.lane
      );
  end if;
  perform parley_mail._p_record_audit(v_caller, 'hold domain', domain, jsonb_build_object('reason', reason));
  return v_is_new;
end
$$;

comment on function parley_mail.hold_domain(text, text, parley.caller) is
'Has nothing leave for a domain, also from queues that come into being later; messages are taken and wait. Mail for it
that goes by a smart host waits in the queue of the host, and is not held: then a notice names that queue. False when
the domain was held.
Arguments: domain; reason.
Errors: PM001 not allowed, PM006 malformed.
Source: spec mail 17.';

create function parley_mail.release_domain(domain text, caller parley.caller default parley.current_caller())
returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
begin
  found := parley_mail._p_require(v_caller, 'OPERATE');
  delete from parley_mail._p_held_domain as h where h.domain = parley_mail._p_folded(release_domain.domain);
  if not found then
    return false;
  end if;
  perform parley_store.resume_lane('mail', l.lane, pg_get_userbyid(v_caller))
  from parley_store.lanes as l
  where l.system = 'mail' and l.suspended_for = 'domain held: ' || parley_mail._p_folded(release_domain.domain)
  order by l.lane_id;
  perform parley_mail._p_record_audit(v_caller, 'release domain', domain, null);
  return true;
end
$$;

comment on function parley_mail.release_domain(text, parley.caller) is
'Has mail for a domain that is held leave again; false when it was not held.
Arguments: domain.
Errors: PM001 not allowed.
Source: spec mail 17.';

create function parley_mail._p_held_domains(caller parley.caller default parley.current_caller())
returns setof parley_mail._p_held_domain
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select h.domain, h.reason, h.held_by, h.held_at
  from parley_mail._p_held_domain as h
  where parley_mail._p_holds(parley.caller_role(caller), 'VIEW')
$$;

comment on function parley_mail._p_held_domains(parley.caller) is 'Gives what parley_mail.held_domains shows.';

create view parley_mail.held_domains as
select h.domain, h.reason, h.held_by, h.held_at from parley_mail._p_held_domains() as h;

comment on view parley_mail.held_domains is 'Domains for which nothing leaves, for who holds VIEW.';
