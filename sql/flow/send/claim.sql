-- Claims: how messages come into the hands of a host that sends them.
--
-- A claim is a lease of the store on items of one lane. No transaction stays open while messages are sent, but where a
-- port writes into this database.

create function parley_flow._p_passed_lanes(passed_by text[], orchestrations text[]) returns text[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select array(
    select l.beginning
    from unnest(passed_by) as p (port)
    cross join lateral unnest(case
      when p.port like '%#' then array[p.port || '0', p.port || '1']
      when p.port = any (orchestrations) then array[p.port || '##']
      else array[p.port || '#']
    end) as l (beginning)
  )
$$;

comment on function parley_flow._p_passed_lanes(text[], text[]) is
'Gives for parley_store.claim_work the lanes of what a claim passes by: of an orchestration those of messages that begin
instances, or, with # at its end, the sixteen of messages for instances and convoys.
Arguments: passed_by, as _p_claim has it; orchestrations, their names.';

create function parley_flow._p_claim(
  host text, holder text, lanes integer default 10, each integer default 100, lease interval default '1 minute',
  timeout integer default 0, passed_by text[] default null, top integer default null,
  caller parley.caller default parley.current_caller()
) returns table (
  n integer, lease_id bigint, item_id bigint, stage text, send_port text, location text, order_key text,
  message_id bigint, interchange_id bigint, parent_id bigint, message_type text, received_at timestamptz,
  attempts integer, last_error text, size bigint, promoted jsonb, written jsonb, parts jsonb, content_id bigint,
  body bytea
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_host constant parley_flow._p_host := parley_flow._p_require_host(parley.caller_role(caller), host);
  v_claimed parley_store.claimed_item[];
  v_are_held boolean;
  v_are_suspected boolean;
  v_processes constant text[] := array(
    select s.name from parley_flow._p_send_port as s where s.host_id = v_host.host_id and s.is_process
  );
begin
  found := parley_flow._p_require_read_committed();
  v_claimed := array(
    select w
    from parley_store.claim_work(
      v_host.system, least(lanes * each, top, 10000), lanes, lease, holder, timeout => _p_claim.timeout,
      each => _p_claim.each, passed_by => case
        when cardinality(_p_claim.passed_by) > 0
        then parley_flow._p_passed_lanes(_p_claim.passed_by, v_processes)
      end
    ) as w
  );
  if v_claimed = '{}' then
    return;
  end if;
  -- As _p_is_stray and _p_is_closed have it (flow/send/strays.sql), in one statement of few rows.
  if exists (
    select
    from (select distinct c.lane from unnest(v_claimed) as c) as n
    left join parley_flow._p_send_port as s on s.name = split_part(n.lane, '#', 1)
    left join parley_flow._p_receive_location as l on starts_with(n.lane, '##') and l.name = substr(n.lane, 3)
    where case
      when starts_with(n.lane, '##') then l.host_id is distinct from v_host.host_id
      else s.host_id is distinct from v_host.host_id or s.state <> 'Started'
        or not case when s.name = n.lane then s.order_key is null else s.order_key is not null or not s.is_ordered end
    end
  ) then
    v_claimed := parley_flow._p_without_strays(v_host.system, v_claimed);
  end if;
  v_are_held := exists (select from parley_flow._p_held_key as k where k.system = v_host.system);
  if v_are_held then
    v_claimed := parley_flow._p_without_held(v_host.system, v_claimed);
  end if;
  v_are_suspected := exists (select from parley_flow._p_suspect as s where s.system = v_host.system);
  if v_are_suspected then
    v_claimed := parley_flow._p_without_suspects(v_claimed);
    v_claimed := parley_flow._p_without_killers(v_host, v_claimed);
  end if;
  return query
  select c.n::integer, c.lease_id, c.item_id,
    case
      when starts_with(c.lane, '##') then 'RECEIVE'
      when split_part(c.lane, '#', 1) <> all (v_processes) then 'SEND'
      when v_are_suspected and exists (
        select
        from parley_flow._p_suspect as s
        where s.message_id = c.subject and s.lane = c.lane and s.deaths >= 3
      ) then 'KILLED'
      else 'PROCESS'
    end,
    nullif(split_part(c.lane, '#', 1), ''), case when starts_with(c.lane, '##') then substr(c.lane, 3) end,
    convert_from(c.data, 'UTF8'), m.message_id, coalesce(m.interchange_id, m.message_id), m.parent_id, m.message_type,
    m.received_at, coalesce(k.attempts, c.attempts), coalesce(k.error, c.last_error), m.size, m.promoted, m.written,
    m.parts, m.content_id, m.body
  from unnest(v_claimed) with ordinality
    as c (lease_id, lane, item_id, subject, priority, attempts, since, expires_at, data, last_error, n)
  left join parley_flow._p_message as m on m.message_id = c.subject
  left join parley_flow._p_held_key as k on v_are_held and k.system = v_host.system and k.lane = c.lane
  -- A number below 0 is that of an instance that is to go on.
  where m.message_id is not null or c.subject < 0
  order by c.n;
  get diagnostics n = row_count;
  if n < cardinality(v_claimed) then
    perform parley_flow._p_drop_orphans(v_claimed);
  end if;
end
$$;

comment on function parley_flow._p_claim(
  text, text, integer, integer, interval, integer, text[], integer, parley.caller
) is
'Claims messages of the send ports of a host whose turn it is, those of each lane under a lease of its own; n is their
order. Commit before they are sent. stage is SEND; RECEIVE of a message that an operator resubmits into the pipeline of
location; PROCESS of one for the orchestration send_port, whose order_key says for which instance or convoy, and which
is no message where an instance only has to go on; KILLED of such a one of which hosts have died three times.
Of an ordered port the messages of a key are to be sent in this order, and none behind one that failed. A message of
which hosts may have died is claimed alone. A body of up to 8,000 bytes is given; a larger one is read by _p_read_body.
Arguments: host; holder, a name for the node; lanes, how many; each, how many messages of one; lease, for how long;
timeout, milliseconds to wait for work (0: do not wait); passed_by, send ports from which nothing is claimed now; the
name of an orchestration passes by what begins instances, with # at its end what is for instances and convoys; the empty
name passes by what operators resubmit;
top, how many messages of all lanes (null: as many as there are lanes and of each).
Errors: PF001, PF016, PS002.';

create function parley_flow._p_drop_orphans(claimed parley_store.claimed_item[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lease record;
begin
  for v_lease in
    select c.lease_id, array_agg(c.item_id) as items
    from unnest(claimed) as c
    where c.subject > 0 and not exists (select from parley_flow._p_message as m where m.message_id = c.subject)
    group by c.lease_id
  loop
    perform parley_store.complete_work(v_lease.lease_id, v_lease.items);
  end loop;
end
$$;

comment on function parley_flow._p_drop_orphans(parley_store.claimed_item[]) is
'Completes items whose message is gone.';

create function parley_flow._p_renew(
  host text, leases bigint[], lease interval default '1 minute', caller parley.caller default parley.current_caller(),
  out renewed bigint[], out gone bigint[]
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_host constant parley_flow._p_host := parley_flow._p_require_host(parley.caller_role(caller), host);
  v_own bigint[];
begin
  v_own := array(select distinct i.lease_id from parley_store.leased_items(v_host.system, leases) as i);
  select r.renewed into renewed from parley_store.renew_leases(v_own, lease) as r;
  gone := array(
    select u.lease_id from unnest(leases) as u (lease_id) where u.lease_id <> all (renewed) order by u.lease_id
  );
end
$$;

comment on function parley_flow._p_renew(text, bigint[], interval, parley.caller) is
'Extends leases of a host, and gives those that it has extended and those that are over or finished: what their holder
has in its hands may be in the hands of others.
Arguments: host; leases; lease, from now on.
Errors: PF001, PS002.';

create function parley_flow._p_read_body(
  host text, message_id bigint, content_id bigint, from_number integer, to_number integer,
  request_id bigint default null, caller parley.caller default parley.current_caller()
) returns table (number integer, body bytea, chunks integer, bytes bigint)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_host constant parley_flow._p_host := parley_flow._p_require_host(parley.caller_role(caller), host);
begin
  if not exists (select from parley_store.in_hand(v_host.system, array[message_id])) and not exists (
    select
    from parley_flow._p_request as r
    where r.request_id = _p_read_body.request_id and r.answer_id = _p_read_body.message_id
      and r.host_id = v_host.host_id
  ) then
    found := parley_flow._p_raise('message', coalesce(message_id::text, 'null'));
  end if;
  return query
  select c.number, c.body, o.chunks, o.bytes
  from parley_store.open_content(content_id, 'flow', message_id) as o
  cross join parley_store.read_chunks(content_id, 'flow', message_id, from_number, to_number) as c
  where o.chunks > 0;
  if not found and from_number = 0 then
    return query
    select 0, o.body, 1, o.bytes
    from parley_store.open_content(content_id, 'flow', message_id) as o
    where o.body is not null;
  end if;
end
$$;

comment on function parley_flow._p_read_body(text, bigint, bigint, integer, integer, bigint, parley.caller) is
'Gives chunks of a body or a part of a message that this host has claimed, or that answers a request of it, in their
order, and with each how many chunks and bytes it has: whoever reads on until there is none has no whole body before he
has as many.
Arguments: host; message_id and content_id, as _p_claim gives them; from_number and to_number, the first and the last
chunk, from 0 on; request_id, that the message answers, null: none.
Errors: PF001, PF006 the host has not claimed it, PS003, PS010 chunks are missing.';
