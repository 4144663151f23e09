-- Claims: how messages come into the hands of a daemon that takes them to their next hop.
--
-- A claim is a lease of parley_store on items of one lane. No transaction stays open while messages are sent.

create function parley_mail._p_claim(
  hops integer, each integer, lease interval, holder text, passed_by text[] default null,
  caller parley.caller default parley.current_caller()
) returns table (
  lease_id bigint, item_id bigint, lane text, message_id bigint, network_message_id uuid, sender text, ret text,
  envid text, size bigint, content_id bigint, body_holder bigint, body bytea, is_eight_bit boolean,
  has_utf8_addresses boolean, is_originating boolean, received_at timestamptz, ordinals integer[], addresses text[],
  notify text[], original_recipients text[], return_paths text[], n bigint
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_claimed parley_store.claimed_item[];
  v_kept text[];
  v_rows bigint;
  v_empty record;
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  v_claimed := array(
    select w
    from parley_store.claim_work(
      'mail', hops * each, hops, lease, holder, each => _p_claim.each, passed_by => _p_claim.passed_by
    ) as w
  );
  if parley_mail._p_has_suspects() then
    v_claimed := parley_mail._p_without_suspects('mail', holder, v_claimed);
  end if;
  v_kept := array(
    select c.lane
    from unnest(v_claimed) as c
    cross join parley_mail._p_parts_of_lane(c.lane) as p
    join parley_mail._p_delivery_kind as k on k.kind = p.kind
    where k.keeps_duplicates
  );
  if v_kept <> '{}' then
    perform parley_mail._p_finish_duplicates(v_claimed, v_kept);
  end if;
  return query
  select
    c.lease_id, c.item_id, c.lane, m.message_id, m.network_message_id, m.sender, m.ret, m.envid, m.size, b.content_id,
    b.message_id, b.body, m.is_eight_bit, m.has_utf8_addresses,
    m.directionality = 'ORIGINATING', m.received_at, r.ordinals, r.addresses, r.notify,
    r.originals, r.return_paths, c.n
  from unnest(v_claimed) with ordinality
    as c (lease_id, lane, item_id, subject, priority, attempts, since, expires_at, data, last_error, n)
  join parley_mail._p_message as m on m.message_id = c.subject
  join parley_mail._p_message as b on b.message_id = coalesce(m.body_message_id, m.message_id)
  cross join lateral (
    select
      array_agg(p.ordinal order by p.ordinal) as ordinals, array_agg(p.address order by p.ordinal) as addresses,
      array_agg(p.notify order by p.ordinal) as notify,
      array_agg(p.original_recipient order by p.ordinal) as originals,
      array_agg(
        parley_mail._p_return_path(m.sender, p.address, p.original_recipient, m.has_utf8_addresses)
        order by p.ordinal
      ) filter (where m.has_verp) as return_paths
    from parley_mail._p_recipient as p
    where p.message_id = c.subject and p.lane = c.lane
  ) as r
  where r.ordinals is not null;
  get diagnostics v_rows = row_count;
  if v_rows = cardinality(v_claimed) then
    return;
  end if;
  -- A message that was removed meanwhile leaves an item behind.
  for v_empty in
    select c.lease_id, array_agg(c.item_id) as items
    from unnest(v_claimed) as c
    where not exists (
      select from parley_mail._p_recipient as p where p.message_id = c.subject and p.lane = c.lane
    )
    group by c.lease_id
  loop
    perform parley_store.complete_work(v_empty.lease_id, v_empty.items);
  end loop;
end
$$;

comment on function parley_mail._p_claim(integer, integer, interval, text, text[], parley.caller) is
'Claims messages of the next hops whose turn it is, those of each under a lease of its own, with the recipients that are
reached by it, but mailboxes that have got them; n is their order. Commit before they are sent. A message
of which somebody may have died is claimed alone, under a lease of its own. A body of up to 8,000 bytes is given; a
larger one is read by _p_read_body. is_originating: it was submitted here, so that it may be signed. return_paths: where
each recipient has one of its own; null where it is the sender.
Arguments: hops, how many; each, how many messages of one; lease, for how long; holder, a name for the daemon;
passed_by, beginnings of queues that this daemon leaves to others now, such as DNS/internet/.
Errors: PM001 the role does not hold SERVE, PS002.
Source: spec mail 1, 5, 11.2, 15.3.';

create function parley_mail._p_renew(
  leases bigint[], lease interval, waits boolean default true, caller parley.caller default parley.current_caller(),
  out renewed bigint[], out gone bigint[]
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  select r.renewed, r.gone into renewed, gone from parley_store.renew_leases(leases, lease, waits) as r;
end
$$;

comment on function parley_mail._p_renew(bigint[], interval, boolean, parley.caller) is
'Extends leases, and gives those that it has extended and those that are over or finished: what their holder has in its
hands may be in the hands of others.
Arguments: leases; lease, from now on; waits, for a lease that another transaction has locked: without, it is in
neither of the two.
Errors: PM001 the role does not hold SERVE, PS002.';

create function parley_mail._p_read_body(
  content_id bigint, body_holder bigint, from_number integer, to_number integer,
  caller parley.caller default parley.current_caller()
) returns table (number integer, body bytea, chunks integer, bytes bigint)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  return query
  select c.number, c.body, o.chunks, o.bytes
  from parley_store.open_content(content_id, 'mail', body_holder) as o
  cross join parley_store.read_chunks(content_id, 'mail', body_holder, from_number, to_number) as c
  where o.chunks > 0;
  if not found and from_number = 0 then
    return query
    select 0, o.body, 1, o.bytes
    from parley_store.open_content(content_id, 'mail', body_holder) as o
    where o.body is not null;
  end if;
end
$$;

comment on function parley_mail._p_read_body(bigint, bigint, integer, integer, parley.caller) is
'Gives chunks of a body, in their order, and with each how many chunks and bytes the body has. A reader that reads on
until there is none has the whole body only when it has as many.
Arguments: content_id and body_holder, as _p_claim gives them; from_number and to_number, the first and the last chunk,
from 0 on.
Errors: PM001 the role does not hold SERVE, PS003, PS010 chunks are missing.';

create function parley_mail._p_unneeded_bodies(
  body_holders bigint[], caller parley.caller default parley.current_caller()
) returns bigint[]
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  return array(
    select h.message_id
    from unnest(body_holders) as h (message_id)
    where not exists (select from parley_mail._p_message as m where m.message_id = h.message_id)
  );
end
$$;

comment on function parley_mail._p_unneeded_bodies(bigint[], parley.caller) is
'Gives those of some messages that nothing needs any more, no recipient, report or fork: a daemon drops their bodies.
Arguments: body_holders, as _p_claim gives them.
Errors: PM001 the role does not hold SERVE.
Source: spec mail 13.';
