-- Submission by SQL (spec mail 4.3): select parley_mail.send(...) is part of the caller's transaction.
--
-- The message is rendered and stored when the call returns: a rollback leaves nothing, a commit makes it visible at
-- once, and no retry sends other bytes. Cost without a key and a quota: one statement that reads what applies to the
-- caller, one insert, one put.

create type parley_mail._p_submitter as (
  role oid,
  number integer,
  may_send boolean,
  is_refusing boolean,
  reason text,
  default_domain text,
  max_size bigint,
  max_recipients integer,
  expiry_seconds integer[],
  messages_per_minute integer,
  bytes_per_minute bigint,
  has_quota boolean,
  allowed_senders text[]
);

comment on type parley_mail._p_submitter is
'The role that submits, and the settings that apply to it. number: null before it has one (_p_number_of);
allowed_senders: null where the domains that are ours are (submission/allowed_senders.sql).';

create function parley_mail._p_submitter_of(caller oid) returns parley_mail._p_submitter
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_submitter parley_mail._p_submitter;
begin
  select _p_submitter_of.caller,
    m.number,
    exists (select from parley_mail._p_right as r where r.name = 'SEND' and r.grantee = any (m.numbers || 0)),
    not o.is_set_up or (
      coalesce(o.refusing_until > clock_timestamp(), false) and (o.is_at_floor or q.is_exempt_from_pressure is not true)
    ), o.refusing_reason,
    o.default_domain, o.max_send_size, o.max_recipients, o.expiry_seconds,
    q.messages_per_minute, q.bytes_per_minute,
    q.role_number is not null,
    q.allowed_senders
  into v_submitter
  from parley_mail._p_organization as o
  cross join (
    select array_agg(k.number) as numbers,
      max(k.number) filter (where k.is_current and k.place = p.place) as number
    from parley._p_place as p
    join parley._p_role_number as k on case
      when k.place = p.place then k.role = _p_submitter_of.caller
      else k.name = pg_get_userbyid(_p_submitter_of.caller) and k.role <> 0
    end
  ) as m
  left join lateral (
    select n.role_number, n.messages_per_minute, n.bytes_per_minute, n.is_exempt_from_pressure,
      n.allowed_senders
    from parley_mail._p_quota as n
    where n.role_number = any (m.numbers || 0)
    order by n.role_number desc
    limit 1
  ) as q on true;
  -- The roles that have it by inheritance alone: most have it by name or by public.
  if v_submitter.may_send is not true then
    v_submitter.may_send := exists (
      select
      from parley_mail._p_granted as r
      where r.name = 'SEND' and pg_has_role(_p_submitter_of.caller, r.role, 'usage')
    );
  end if;
  if v_submitter.may_send is not true then
    found := parley_mail._p_require(caller, 'SEND');
  end if;
  if v_submitter.is_refusing is not false then
    found := parley_mail._p_require_set_up();
    found := parley_mail._p_raise('pressure', coalesce(v_submitter.reason, 'Resources are short.'));
  end if;
  return v_submitter;
end
$$;

comment on function parley_mail._p_submitter_of(oid) is
'Gives what applies to a role that submits.
Errors: PM001 it may not send, PM005 mail is not configured, PM014 resources are short.';

create function parley_mail._p_count_against_quota(submitter parley_mail._p_submitter, messages integer, bytes bigint)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_sum record;
begin
  insert into parley_mail._p_submitted (submitted_by, messages, bytes)
  values (submitter.number, _p_count_against_quota.messages, _p_count_against_quota.bytes);
  select sum(s.messages) as messages, sum(s.bytes) as bytes into v_sum
  from parley_mail._p_submitted as s
  where s.submitted_by = submitter.number and s.at > clock_timestamp() - interval '1 minute';
  if v_sum.messages > submitter.messages_per_minute then
    found := parley_mail._p_raise('messages', pg_get_userbyid(submitter.role), (v_sum.messages - messages)::text,
      submitter.messages_per_minute::text);
  elsif v_sum.bytes > submitter.bytes_per_minute then
    found := parley_mail._p_raise('bytes', pg_get_userbyid(submitter.role), (v_sum.bytes - bytes)::text,
      submitter.bytes_per_minute::text);
  end if;
  return true;
end
$$;

comment on function parley_mail._p_count_against_quota(parley_mail._p_submitter, integer, bigint) is
'Counts what a role submits, and refuses it where that is more than its quota.
Errors: PM013.';

create type parley_mail._p_options as (
  priority smallint,
  not_before timestamptz,
  expires_at timestamptz,
  notify text,
  ret text,
  envid text,
  on_status text,
  tag text,
  is_expiry_given boolean,
  has_verp boolean
);

comment on type parley_mail._p_options is 'The arguments of a submission besides the message, checked.';

create function parley_mail._p_downgraded(priority smallint, size bigint, sender text) returns smallint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if priority = 0 and (
    size > (select o.max_high_priority_size from parley_mail._p_organization as o)
    or exists (
      select
      from parley_mail._p_directory_entry as e
      where e.address = parley_mail._p_folded(_p_downgraded.sender) and e.downgrade_high
    )
  ) then
    return 1;
  end if;
  return priority;
end
$$;

comment on function parley_mail._p_downgraded(smallint, bigint, text) is
'Gives the priority that a message may have: high becomes normal where it is too large for that, or where the sender''s
messages are not to be of high priority.
Arguments: priority, as it was submitted; size, null where it is not known yet; sender, of the envelope.
Source: spec mail 10.';

create function parley_mail._p_checked_options(
  submitter parley_mail._p_submitter, priority text, not_before timestamptz, expires timestamptz, notify text, ret text,
  envid text, on_status text, tag text, verp boolean, sender text
) returns parley_mail._p_options
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_options parley_mail._p_options;
begin
  v_options.priority := case upper(priority collate "C") when 'NORMAL' then 1 when 'HIGH' then 0 when 'LOW' then 2 end;
  if v_options.priority is null then
    found := parley_mail._p_raise('choice', 'priority', coalesce(priority, 'null'), 'HIGH, NORMAL, LOW');
  end if;
  v_options.is_expiry_given := expires is not null;
  v_options.not_before := case when not_before > clock_timestamp() then not_before end;
  v_options.expires_at := coalesce(
    expires,
    coalesce(v_options.not_before, clock_timestamp())
      + submitter.expiry_seconds[v_options.priority + 1] * interval '1 second'
  );
  -- A time that is infinite, or has a year of five digits, is none to programs that read reports and lists.
  if v_options.expires_at > '9999-01-01Z' or v_options.not_before > '9999-01-01Z' then
    found := parley_mail._p_raise('far time');
  end if;
  if v_options.expires_at <= coalesce(v_options.not_before, clock_timestamp()) then
    found := parley_mail._p_raise('times');
  end if;
  if notify is not null then
    v_options.notify := upper(replace(notify, ' ', '') collate "C");
    if v_options.notify !~ '^(NEVER|(SUCCESS|FAILURE|DELAY)(,(SUCCESS|FAILURE|DELAY))*)$' then
      found := parley_mail._p_raise('choice', 'notify', notify, 'NEVER, or a list of SUCCESS, FAILURE, DELAY');
    end if;
  end if;
  if ret is not null then
    v_options.ret := upper(ret collate "C");
    if v_options.ret not in ('FULL', 'HDRS') then
      found := parley_mail._p_raise('choice', 'ret', ret, 'FULL, HDRS');
    end if;
  end if;
  if envid ~ '[^!-~]' or length(envid) > 100 or envid = '' then
    found := parley_mail._p_raise('choice', 'envid', left(envid, 100), '1 to 100 printable ASCII characters');
  end if;
  if tag ~ '[[:cntrl:]]' then
    found := parley_mail._p_raise('control', 'tag');
  elsif length(tag) > 200 then
    found := parley_mail._p_raise('choice', 'tag', left(tag, 20) || '...', 'a text of at most 200 characters');
  end if;
  v_options.envid := envid;
  v_options.tag := tag;
  v_options.has_verp := verp is true;
  if v_options.has_verp then
    found := parley_mail._p_require_return_paths(sender);
  end if;
  v_options.on_status := on_status;
  if on_status is not null then
    found := parley_mail._p_require_status_service(submitter.role, on_status);
  end if;
  return v_options;
end
$$;

comment on function parley_mail._p_checked_options(
  parley_mail._p_submitter, text, timestamptz, timestamptz, text, text, text, text, text, boolean, text
) is
'Gives what a submission says besides the message; sender is its address.
Errors: PM010.';

create function parley_mail._p_require_recipients(submitter parley_mail._p_submitter, recipients text[]) returns text[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_recipient text;
  v_addresses text[];
begin
  if cardinality(recipients) > 0 is not true then
    found := parley_mail._p_raise('no recipients');
  elsif cardinality(recipients) > submitter.max_recipients then
    found := parley_mail._p_raise(
      'too many recipients', cardinality(recipients)::text, submitter.max_recipients::text
    );
  end if;
  -- Most are bare addresses. To check many together takes half the time of a call for each.
  if cardinality(recipients) > 10 and array_ndims(recipients) = 1 and array_lower(recipients, 1) = 1 and not exists (
    select
    from unnest(recipients) as r (written)
    where r.written ~ '[<"(]' or octet_length(r.written) <> length(r.written)
      or parley_mail._p_is_address(r.written) is not true
  ) then
    return recipients;
  end if;
  foreach v_recipient in array recipients loop
    if v_recipient ~ '[<(]' then
      v_addresses := v_addresses || (parley_mail._p_parsed_mailbox(v_recipient)).address;
    else
      v_addresses := v_addresses || parley_mail._p_require_address(v_recipient);
    end if;
  end loop;
  return v_addresses;
end
$$;

comment on function parley_mail._p_require_recipients(parley_mail._p_submitter, text[]) is
'Gives the addresses of recipients, or refuses them.
Errors: PM010.';

create function parley_mail._p_priority_of_item(priority smallint) returns integer
language sql immutable parallel safe
as $$
  select case when priority operator(pg_catalog.=) 0 then 10 when priority operator(pg_catalog.=) 1 then 5 else 1 end
$$;

comment on function parley_mail._p_priority_of_item(smallint) is
'Gives the priority, 10 first, of items of work for messages of a priority.';

create function parley_mail._p_store_message(
  submitter parley_mail._p_submitter, options parley_mail._p_options, message_id bigint, header_message_id text,
  sender text, addresses text[], subject text, rendered bytea, parent bigint, is_eight_bit boolean
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_size constant bigint := octet_length(rendered);
  v_priority smallint := options.priority;
begin
  if v_size > submitter.max_size then
    found := parley_mail._p_raise('size', v_size::text, submitter.max_size::text, 'max_send_size of the organization');
  end if;
  if v_priority = 0 then
    v_priority := parley_mail._p_downgraded(v_priority, v_size, sender);
    if v_priority <> 0 and not options.is_expiry_given then
      options.expires_at := options.expires_at
        + (submitter.expiry_seconds[v_priority + 1] - submitter.expiry_seconds[1]) * interval '1 second';
    end if;
  end if;
  insert into parley_mail._p_message (
    message_id, network_message_id, header_message_id, sender, recipients, notify, ret, envid, priority, not_before,
    expires_at, source, directionality, submitted_by, size, content_id, parent_message_id, has_utf8_addresses, has_verp,
    on_status, tag, subject, body, is_eight_bit
  )
  values (
    _p_store_message.message_id, gen_random_uuid(), _p_store_message.header_message_id, _p_store_message.sender,
    addresses, case when options.notify is not null then array_fill(options.notify, array[cardinality(addresses)]) end,
    options.ret, options.envid, v_priority, options.not_before, options.expires_at, 'SQL', 'ORIGINATING',
    submitter.number, v_size,
    case when v_size > 8000 then parley_mail._p_stored_content(_p_store_message.message_id, rendered) end, parent,
    not parley_mail._p_is_ascii(_p_store_message.sender || array_to_string(addresses, '')), options.has_verp,
    options.on_status, options.tag, left(_p_store_message.subject, 500), case when v_size <= 8000 then rendered end,
    _p_store_message.is_eight_bit
  );
end
$$;

comment on function parley_mail._p_store_message(
  parley_mail._p_submitter, parley_mail._p_options, bigint, text, text, text[], text, bytea, bigint, boolean
) is
'Stores a message that is submitted by SQL; the caller has it categorized.
Errors: PM012 too large.';

create function parley_mail._p_submit(ids bigint[], priority smallint, not_before timestamptz) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley.put_batch(
    'parley_mail_submission',
    array(
      select string_agg(i.id::text, ' ' order by i.n)
      from unnest(ids) with ordinality as i (id, n)
      group by (i.n - 1) / 50
      order by (i.n - 1) / 50
    ),
    priority => parley_mail._p_priority_of_item(priority), deliver_at => not_before
  );
end
$$;

comment on function parley_mail._p_submit(bigint[], smallint, timestamptz) is
'Has messages categorized: an item of the submission queue for each fifty.';

create function parley_mail._p_submit_as_stored(ids bigint[], not_before timestamptz) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_alike record;
begin
  for v_alike in
    select m.priority, array_agg(m.message_id order by m.message_id) as ids
    from parley_mail._p_message as m
    where m.message_id = any (_p_submit_as_stored.ids)
    group by m.priority
  loop
    perform parley_mail._p_submit(v_alike.ids, v_alike.priority, not_before);
  end loop;
end
$$;

comment on function parley_mail._p_submit_as_stored(bigint[], timestamptz) is
'Has messages categorized by the priority with which each was stored, which may be less than was asked for.';
