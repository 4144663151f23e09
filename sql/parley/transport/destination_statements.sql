-- The daemon's questions about destinations, and its reports of them.

create function parley._p_destinations() returns table (
  destination_id integer, address text, due_ms double precision, attempts integer, has_probes boolean
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
begin
  return query
  select d.destination_id, d.address::text,
    coalesce(greatest(extract(epoch from d.due_at - clock_timestamp()) * 1000, 0), 0)::double precision, d.attempts,
    d.destination_id in (
      select e.destination_id
      from parley._p_unresumed as u
      join parley._p_endpoint as e using (endpoint_id)
    )
  from parley._p_destination as d
  where exists (
      select
      from generate_series(1, 10) as p (priority)
      where d.priorities & (1 << p.priority) <> 0
        and exists (
          select
          from parley._p_message as m
          where m.lane = parley._p_lane(d.destination_id, p.priority)
            and m.position >= coalesce(
              (select h.low_position from parley._p_newest_hint(parley._p_lane(d.destination_id, p.priority)) as h), 0
            )
        )
    )
    or exists (
      select
      from parley._p_parked as k
      where k.destination_id = d.destination_id and k.due_at <= clock_timestamp()
    )
    or exists (
      select
      from parley._p_transit as t
      where t.destination_id = d.destination_id
        and not exists (
          select
          from parley._p_parked as k
          where k.endpoint_id = t.endpoint_id and k.due_at > clock_timestamp() and k.due_at < 'infinity'
        )
    )
    or d.destination_id in (
      select e.destination_id
      from parley._p_unresumed as u
      join parley._p_endpoint as e using (endpoint_id)
    );
end
$$;

comment on function parley._p_destinations() is
'Gives the destinations for which something waits or is in transit, in how many milliseconds the next attempt is due,
and whether conversations have to be compared with their far sides first.';

create function parley._p_report_attempt(term bigint, destination_id integer, failure text) returns double precision
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_due double precision;
begin
  if not parley._p_holds_term(term) then
    return null;
  elsif coalesce(failure, '') = '' then
    update parley._p_destination as d
    set attempts = 0, status = '', failing_since = null, attempted_at = clock_timestamp(), due_at = null
    where d.destination_id = _p_report_attempt.destination_id and (d.attempts > 0 or d.status <> '');
    return 0;
  end if;
  update parley._p_destination as d
  set attempts = d.attempts + 1, status = failure, failing_since = coalesce(d.failing_since, clock_timestamp()),
    attempted_at = clock_timestamp(),
    due_at = clock_timestamp() + parley._p_back_off(d.attempts + 1)
  where d.destination_id = _p_report_attempt.destination_id
  returning extract(epoch from d.due_at - clock_timestamp()) * 1000 into v_due;
  return v_due;
end
$$;

comment on function parley._p_report_attempt(bigint, integer, text) is
'Records that a destination could not be reached, and gives in how many milliseconds to try again; or, with an empty
failure, that it has answered.
Null when the term is over.
Arguments: term; destination_id; failure, the text that the transmission queue shows.
Source: spec 6.9, 6.12.';

create function parley._p_unresolved(
  top integer
) returns table (endpoint_id bigint, conversation_id uuid, to_service text, to_broker uuid)
language sql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
  select e.endpoint_id, e.conversation_id, e.far_service, r.broker_instance::uuid
  from parley._p_endpoint as e
  cross join lateral parley._p_find_route(e.far_service, e.far_broker_instance, e.conversation_id) as r
  where e.endpoint_id in (
      select t.endpoint_id
      from parley._p_transmission as t
      join parley._p_endpoint as o using (endpoint_id)
      where o.state not in ('DI', 'ER') or t.message_type_id = -1
      union
      -- All that was sent may have its number already, and be parked.
      select t.endpoint_id
      from parley._p_transit as t
      where not exists (select from parley._p_parked as p where p.endpoint_id = t.endpoint_id and p.due_at < 'infinity')
    )
    and e.destination_id is null
    and (e.far_endpoint_id is null or e.far_endpoint_id < 0)
    and pg_sequence_last_value('parley._p_broker_switch') is null
    and r.address = 'LOCAL'
    and r.status is not null
  limit top
$$;

comment on function parley._p_unresolved(integer) is
'Gives conversations whose route says LOCAL, though this database does not have the service: the daemon may know another
one that does (spec 6.4).
Arguments: top, how many at most.';

create function parley._p_bind_conversations(
  term bigint, endpoint_ids bigint[], address text, status text
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set lock_timeout = '100ms'
as $$
declare
  v_id bigint;
  v_endpoint parley._p_endpoint;
  v_route record;
  v_address text;
  v_status text;
begin
  if not parley._p_holds_term(term) then
    return false;
  end if;
  if coalesce(address, '') <> '' then
    insert into parley._p_neighbour_service (service_name, address)
    select distinct e.far_service, _p_bind_conversations.address
    from parley._p_endpoint as e
    where e.endpoint_id = any (endpoint_ids)
    on conflict do nothing;
  end if;
  foreach v_id in array endpoint_ids loop
    begin
      -- A sender is waited for, but not for long: the others wait for us.
      select * into v_endpoint
      from parley._p_endpoint as e
      where e.endpoint_id = v_id and e.destination_id is null and (e.far_endpoint_id is null or e.far_endpoint_id < 0)
      for no key update;
      continue when not found;
      v_address := nullif(address, '');
      if v_address is null then
        v_route := parley._p_find_known_route(
          v_endpoint.far_service, v_endpoint.far_broker_instance, v_endpoint.conversation_id, false
        );
        v_address := v_route.otherwise;
      end if;
      v_status := parley._p_await_binding(v_endpoint, v_address);
      if v_address is not null and v_status is null then
        perform parley._p_bind_to(v_id, v_address);
        -- A run that was in transit when it was parked is due, be it at the same address, unless it waits for its time.
        update parley._p_parked as p
        set destination_id = e.destination_id,
          due_at = case when p.due_at = 'infinity' then clock_timestamp() else p.due_at end
        from parley._p_endpoint as e
        where p.endpoint_id = v_id and e.endpoint_id = v_id and exists (
          select
          from parley._p_transit as t
          where t.endpoint_id = v_id
        );
      else
        v_status := coalesce(v_status, nullif(status, ''), v_route.status, '');
        update parley._p_transmission as t
        set transmission_status = v_status
        where t.endpoint_id = v_id and t.transmission_status <> v_status;
      end if;
    exception
      when lock_not_available then
        null;
    end;
  end loop;
  return true;
end
$$;

comment on function parley._p_bind_conversations(bigint, bigint[], text, text) is
'Binds conversations that have no destination yet to one, and remembers that their services are there; or records why
there is none. One that somebody else holds is left for the next time. False when the term is over.
Without an address they go where their routes lead when LOCAL is not to be had (spec 6.3), if anywhere.
Arguments: term; endpoint_ids; address, broker:GUID, or empty; status, for the transmission queue, or empty for what the
routes say.';

create function parley._p_ask_for_transmission_wakeups(seconds integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform setval(
    'parley._p_transmission_wakeup',
    case when seconds > 0 then extract(epoch from clock_timestamp())::bigint + seconds else 0 end
  );
end
$$;

comment on function parley._p_ask_for_transmission_wakeups(integer) is
'Asks whoever sends to another database to notify channel parley, with the id of the destination, or "unresolved". 0
seconds end it.';

create function parley.honor_broker_priority(
  is_honored boolean,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  found := parley._p_require_administrator(v_caller, 'HONOR_BROKER_PRIORITY');
  update parley._p_broker as b set is_priority_honored = coalesce(is_honored, false);
end
$$;

comment on function parley.honor_broker_priority(boolean, parley.caller) is
'Lets priorities govern in which order messages leave for other databases, or not, as when it is new. RECEIVE follows
them in any case.
Arguments: is_honored.
Errors: 15151 not an administrator.
Source: spec 6.11, HONOR_BROKER_PRIORITY.';
