-- The fate that a message to an address would have, found without sending one.
--
-- The message is made, categorized as every other is, and rolled back: so the answer is that of the categorizer.

create type parley_mail.address_test as (
  recipient text,
  by_way_of text,
  original_recipient text,
  queue text,
  delivery_type text,
  connector text,
  next_hop text,
  queue_status text,
  is_held boolean,
  status text,
  reason text,
  goes_to text,
  next_hop_is_domain boolean
);

comment on type parley_mail.address_test is
'An address that would get a message. by_way_of: RESOLVE, EXPAND or REDIRECT where it is not the address itself;
queue, delivery_type, connector, next_hop: where it would go; queue_status: of that queue, null when there is none
yet; is_held: an operator holds its domain; status and reason: with what it is refused, or null; goes_to: the way in
words; next_hop_is_domain: the next hop is the domain of the address, and its name servers know the hosts.';

create function parley_mail._p_placed_once(address text, sender text, size bigint)
returns parley_mail._p_resolved[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_id bigint := nextval('parley_mail._p_message_id');
  v_rows parley_mail._p_resolved[];
begin
  begin
    insert into parley_mail._p_message (
      message_id, network_message_id, sender, recipients, expires_at, source, directionality, size
    )
    select
      v_id, gen_random_uuid(), s.sender, array[_p_placed_once.address], clock_timestamp() + interval '1 day', 'SMTP',
      case
        when exists (
          select
          from parley_mail._p_accepted_domain as a
          where a.domain = any (parley_mail._p_domain_patterns(parley_mail._p_domain_of(s.sender)))
        ) then 'ORIGINATING' else 'INCOMING'
      end, _p_placed_once.size
    from (select coalesce(_p_placed_once.sender, '') as sender) as s;
    v_rows := array(select r from parley_mail._p_placed(array[v_id], 1000) as r);
    raise sqlstate 'PM999';
  exception
    when sqlstate 'PM999' then
      null;
  end;
  return v_rows;
end
$$;

comment on function parley_mail._p_placed_once(text, text, bigint) is
'Gives who would get a message, and by which way; nothing of it is left.';

create function parley_mail.test_address(
  address text, sender text default null, size bigint default 1000, caller parley.caller default parley.current_caller()
) returns setof parley_mail.address_test
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_sender text;
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'VIEW');
  found := parley_mail._p_require_set_up();
  if sender is null then
    select 'postmaster@' || o.default_domain into v_sender from parley_mail._p_organization as o;
  elsif sender <> '' then
    v_sender := (parley_mail._p_parsed_mailbox(sender)).address;
  end if;
  return query
  select
    r.address, r.event, r.original_recipient, case when r.status is null then r.lane end,
    k.kind, nullif(p.connector, '-'), nullif(p.next_hop, '-'), l.status,
    coalesce(k.next_hop_is_domain and exists (
      select from parley_mail._p_held_domain as h where h.domain = p.next_hop
    ), false),
    r.status, r.reason, format(k.goes_to, p.connector, p.next_hop), coalesce(k.next_hop_is_domain, false)
  from unnest(parley_mail._p_placed_once(
    (parley_mail._p_parsed_mailbox(test_address.address)).address, v_sender, greatest(coalesce(test_address.size, 0), 0)
  )) as r
  cross join parley_mail._p_parts_of_lane(case when r.status is null then r.lane end) as p
  left join parley_mail._p_delivery_kind as k on k.kind = p.kind
  left join parley_store.lanes as l on l.system = k.system and l.lane = r.lane
  where r.part is not null
  order by r.ordinal;
end
$$;

comment on function parley_mail.test_address(text, text, bigint, parley.caller) is
'Says what would become of a message to an address, and sends none: who gets it, by which queue, connector and next hop,
or why not.
Arguments: address; sender, empty for the null sender (null: the postmaster); size, in bytes.
Errors: PM001 not allowed, PM005 mail is not configured, PM010 malformed.';
