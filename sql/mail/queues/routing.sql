-- Routing: by which way a recipient is reached (spec mail 6.2).
--
-- First what is bound to a service or a table of this database, then a mailbox of ours, then the send connector whose
-- address space fits best. An unknown address in a domain of which we know all recipients does not exist.

create type parley_mail._p_route as (lane text, status text, reason text);

comment on type parley_mail._p_route is 'Where a recipient goes next; or, where status is set, why nowhere.';

create function parley_mail._p_bound(address text, patterns text[]) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select 'SERVICE/' || p.binding || '/-'
    from parley_mail._p_service_pattern as p
    where p.domain = any (patterns) and parley_mail._p_matches_pattern(p.pattern, address)
    order by array_position(patterns, p.domain), length(replace(p.pattern, '*', '')) desc, p.binding
    limit 1
  );
end
$$;

comment on function parley_mail._p_bound(text, text[]) is
'Gives the lane of the service or table to which an address is bound, by the most specific pattern; null when it is not.
Source: spec mail 12.2.';

create function parley_mail._p_route_of(address text, store text, size bigint) returns parley_mail._p_route
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_domain constant text := parley_mail._p_domain_of(address);
  v_patterns constant text[] := parley_mail._p_domain_patterns(v_domain);
  v_route parley_mail._p_route;
  v_type text;
  v_space record;
begin
  v_route.lane := parley_mail._p_bound(address, v_patterns);
  if v_route.lane is not null then
    return v_route;
  elsif store is not null then
    v_route.lane := 'MAILBOX/' || store || '/-';
    return v_route;
  end if;
  select a.type into v_type
  from parley_mail._p_accepted_domain as a
  where a.domain = any (v_patterns)
  order by array_position(v_patterns, a.domain)
  limit 1;
  if v_type = 'AUTHORITATIVE' then
    v_route.status := '5.1.1';
    v_route.reason := 'RESOLVER.ADR.ExRecipNotFound; not found';
    return v_route;
  end if;
  select s.connector, s.delivery_kind, s.next_hop, s.max_message_size < size as is_too_large
  into v_space
  from parley_mail._p_address_space as s
  where s.type = 'SMTP' and (s.pattern = any (v_patterns) or (s.pattern = '--' and v_type is not null))
  order by
    s.max_message_size < size, coalesce(array_position(v_patterns, s.pattern) * 10, 15), s.cost, s.hops, s.connector
  limit 1;
  if not found then
    v_route.lane := 'UNREACHABLE/-/-';
  elsif v_space.is_too_large then
    v_route.status := '5.3.4';
    v_route.reason := 'ROUTING.SizeLimit; message too large for every way to this recipient';
  else
    v_route.lane := concat_ws('/', v_space.delivery_kind, v_space.connector, coalesce(v_space.next_hop, v_domain));
  end if;
  return v_route;
end
$$;

comment on function parley_mail._p_route_of(text, text, bigint) is
'Gives the next hop of a recipient. Of address spaces that fit, those of connectors that take the size come first, then
the most specific (d before -- before *.d before *), the lowest cost, the fewest hops, the lowest name.
Arguments: address; store, the mailbox store of a mailbox of ours; size, 0 for messages that are exempt from limits.
Source: spec mail 6.2.';
