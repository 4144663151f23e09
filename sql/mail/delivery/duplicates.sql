-- The messages that mailboxes have got: so that one copy of a message is delivered where two arrive (spec mail 12.1,
-- 15.3).
--
-- A host that gets no reply to a message that it has sent whole sends it again; here it is another message with the
-- same content. Two messages of one identity (_p_message.identity: Message-Id, Date, the other fields that say what the
-- message is, and the whole body) are copies. Of copies, and of one message that comes twice, a mailbox gets one in the
-- duplicate_window of the mailbox store. Content that differs is never a duplicate: a sender cannot keep a message from
-- its reader by sending another under its Message-Id first.
--
-- A row is written in the transaction that records the delivery, and asked for when a message is claimed: what two
-- daemons have in their hands at the same time, or what a daemon delivered that died before it could say so, comes
-- twice. Cost: two index entries for each recipient of a mailbox store, and none for what goes elsewhere. The functions
-- that run for each delivery are PL/pgSQL, which keeps their plans: as SQL, planned at each call, they made recording
-- an outcome a tenth slower.

create table parley_mail._p_delivered (
  key bytea primary key,
  until timestamptz not null
);

comment on table parley_mail._p_delivered is
'The messages that mailboxes have got, for as long as the setting duplicate_window of their store says. key: a hash of
the identity of the message and the address.';

create index _p_delivered_until on parley_mail._p_delivered (until);

create function parley_mail._p_duplicate_window(lane text) returns interval
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce((
    select (o.settings ->> 'duplicate_window')::integer
    from parley_mail._p_parts_of_lane(lane) as p
    join parley_mail._p_delivery_kind as k on k.kind = p.kind
    join parley_mail._p_object as o on o.kind = k.object_kind and o.name = p.connector
  ), 14400) * interval '1 second';
end
$$;

comment on function parley_mail._p_duplicate_window(text) is
'Gives for how long the object of a lane, such as a mailbox store, remembers what was delivered; none when it does not.
Arguments: lane, whose kind of delivery keeps duplicates.';

create function parley_mail._p_delivery_key(identity uuid, address text) returns bytea
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select substring(sha256(convert_to(identity::text || '/' || parley_mail._p_folded(address), 'UTF8')) from 1 for 16)
$$;

comment on function parley_mail._p_delivery_key(uuid, text) is
'Gives under which key the delivery of a message to a mailbox is remembered.';

create function parley_mail._p_remember_delivered(message_ids bigint[], addresses text[], lanes text[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley_mail._p_delivered as d (key, until)
  select k.key, clock_timestamp() + max(k.duration)
  from (
    select parley_mail._p_delivery_key(coalesce(m.identity, m.network_message_id), u.address) as key, w.duration
    from unnest(message_ids, addresses, lanes) as u (message_id, address, lane)
    join parley_mail._p_message as m on m.message_id = u.message_id
    join (
      select s.lane, parley_mail._p_duplicate_window(s.lane) as duration
      from (select distinct n.lane from unnest(lanes) as n (lane)) as s
    ) as w on w.lane = u.lane
    where w.duration > interval '0'
  ) as k
  group by k.key
  order by k.key
  on conflict on constraint _p_delivered_pkey do update set until = excluded.until;
end
$$;

comment on function parley_mail._p_remember_delivered(bigint[], text[], text[]) is
'Records that mailboxes have got messages, where their store asks for it.
Arguments: an element each for each recipient: message, address, lane, whose kind of delivery keeps duplicates.';

create function parley_mail._p_finish_duplicates(claimed parley_store.claimed_item[], lanes text[]) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_known parley_mail._p_outcome[];
begin
  v_known := array(
    select (
      null, null, r.message_id, r.ordinal, 'DUPLICATE', null, '2.0.0', 'the mailbox has got this message already',
      l.connector, null, null, null, null
    )::parley_mail._p_outcome
    from unnest(claimed) as c
    cross join parley_mail._p_parts_of_lane(c.lane) as l
    join parley_mail._p_recipient as r on r.message_id = c.subject and r.lane = c.lane
    join parley_mail._p_message as m on m.message_id = c.subject
    join parley_mail._p_delivered as d
      on d.key = parley_mail._p_delivery_key(coalesce(m.identity, m.network_message_id), r.address)
    where c.lane = any (lanes) and d.until > clock_timestamp()
      and parley_mail._p_duplicate_window(c.lane) > interval '0'
    order by r.message_id, r.ordinal
  );
  if v_known <> '{}' then
    perform parley_mail._p_finish_recipients(v_known);
    perform parley_mail._p_remove_finished(array(select distinct k.message_id from unnest(v_known) as k));
  end if;
  return cardinality(v_known);
end
$$;

comment on function parley_mail._p_finish_duplicates(parley_store.claimed_item[], text[]) is
'Finishes those recipients of claimed messages that have got them already, with the event DUPLICATEDELIVER and the
report of a delivery; gives how many. Their items are the caller''s to complete.
Arguments: claimed; lanes, those among theirs whose kind of delivery keeps duplicates.
Source: spec mail 12.1, 15.3.';

create function parley_mail._p_forget_delivered(recipients integer default 10000) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_forgotten integer;
begin
  delete from parley_mail._p_delivered as d
  where d.key in (
    select o.key from parley_mail._p_delivered as o where o.until < clock_timestamp() order by o.until limit recipients
    for update skip locked
  );
  get diagnostics v_forgotten = row_count;
  return v_forgotten;
end
$$;

comment on function parley_mail._p_forget_delivered(integer) is
'Removes what is remembered no more of deliveries to mailboxes; gives how many.';
