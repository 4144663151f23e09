-- Submission of many messages of one kind in one call.
--
-- The text that all of them share is rendered once, with marks in the places of the recipient and the Message-ID; each
-- message is that text with its own in the place of the marks. With variables, or where a name is not ASCII, each
-- message is rendered for itself. Messages are put into the submission queue in groups.

create function parley_mail._p_send_alike(
  submitter parley_mail._p_submitter, options parley_mail._p_options, sender parley_mail._p_mailbox_of,
  written text, addresses text[], subject text, text text, html text, headers jsonb
) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_domain constant text := parley_mail._p_domain_of(sender.address);
  -- 122 random bits: no text holds them.
  v_mark constant text := replace(gen_random_uuid()::text, '-', '');
  v_pattern text := convert_from(parley_mail._p_rendered(
    written, array[v_mark || '@example.com'], subject, text, html, headers, null,
    format('<%s-id@%s>', v_mark, v_domain), clock_timestamp()
  ), 'UTF8');
  v_ids bigint[];
  v_bytes bigint;
begin
  if octet_length(v_pattern) > 7000 or (headers is not null and headers ?| array['To', 'to', 'Cc', 'cc']) then
    return null;
  end if;
  if parley_mail._p_downgraded(options.priority, octet_length(v_pattern), sender.address) <> options.priority then
    return null;
  end if;
  with message as (
    insert into parley_mail._p_message (
      message_id, network_message_id, header_message_id, sender, recipients, notify, ret, envid, priority, not_before,
      expires_at, source, directionality, submitted_by, size, has_utf8_addresses, has_verp, on_status, tag, subject,
      body
    )
    select nextval('parley_mail._p_message_id'), m.id, format('<%s@%s>', m.id, v_domain), sender.address,
      array[m.address], case when options.notify is not null then array[options.notify] end, options.ret, options.envid,
      options.priority, options.not_before, options.expires_at, 'SQL', 'ORIGINATING', submitter.number,
      octet_length(m.body),
      not parley_mail._p_is_ascii(sender.address || m.address), options.has_verp, options.on_status, options.tag,
      left(_p_send_alike.subject, 500), m.body
    from (
      select a.address, a.id, convert_to(replace(
        replace(v_pattern, v_mark || '@example.com', a.address), v_mark || '-id', a.id::text
      ), 'UTF8') as body
      from (
        select u.address, gen_random_uuid() as id from unnest(addresses) as u (address) offset 0
      ) as a
      -- Without it each message is rendered twice, for its size too.
      offset 0
    ) as m
    returning message_id, size
  )

  select array_agg(m.message_id order by m.message_id), sum(m.size) into v_ids, v_bytes from message as m;
  if submitter.has_quota then
    found := parley_mail._p_count_against_quota(submitter, cardinality(v_ids), v_bytes);
  end if;
  return v_ids;
end
$$;

comment on function parley_mail._p_send_alike(
  parley_mail._p_submitter, parley_mail._p_options, parley_mail._p_mailbox_of, text, text[], text, text, text, jsonb
) is
'Stores a message for each recipient that differs in nothing but the recipient and the Message-ID, and gives their
numbers; null when they are too large for that.
Errors: PM010, PM013.';

create function parley_mail.send_batch(
  sender text, recipients text[], subject text default null, text text default null, html text default null,
  headers jsonb default null, variables jsonb default null, priority text default 'NORMAL',
  not_before timestamptz default null, expires timestamptz default null, notify text default null,
  ret text default null, envid text default null, on_status text default null, tag text default null,
  verp boolean default false, attachments parley_mail.attachment[] default null,
  caller parley.caller default parley.current_caller()
) returns setof bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_submitter parley_mail._p_submitter := parley_mail._p_submitter_of(parley.caller_role(caller));
  v_sender parley_mail._p_mailbox_of := parley_mail._p_checked_sender(v_submitter, sender);
  v_options parley_mail._p_options := parley_mail._p_checked_options(
    v_submitter, priority, not_before, expires, notify, ret, envid, on_status, tag, verp, v_sender.address
  );
  v_addresses text[];
  v_variables jsonb[];
  v_ids bigint[];
begin
  -- They are counted from 1 below, and an array may begin elsewhere.
  if array_ndims(recipients) > 1 or array_lower(recipients, 1) <> 1 then
    recipients := array(select r.written from unnest(recipients) with ordinality as r (written, n) order by r.n);
  end if;
  if v_sender.display_name is null then
    sender := v_sender.address;
  end if;
  found := parley_mail._p_require_sender(v_submitter, v_sender.address);
  if headers is not null and jsonb_typeof(headers) = 'object' then
    found := parley_mail._p_require_senders_of(v_submitter, headers);
  end if;
  if v_submitter.number is null then
    v_submitter.number := parley._p_number_of(v_submitter.role);
  end if;
  -- Each recipient is a message: the limit is one of the call.
  v_submitter.max_recipients := 100000;
  v_addresses := parley_mail._p_require_recipients(v_submitter, recipients);
  if attachments is not null then
    attachments := parley_mail._p_with_stored(v_submitter, attachments);
  end if;
  if variables is null and attachments is null and v_addresses = recipients then
    v_ids := parley_mail._p_send_alike(
      v_submitter, v_options, v_sender, sender, v_addresses, subject, text, html, headers
    );
  end if;
  if v_ids is null then
    v_variables := parley_mail._p_variables_of(coalesce(variables, '{}'), cardinality(recipients));
    for i in 1..cardinality(recipients) loop
      v_ids := v_ids || nextval('parley_mail._p_message_id');
      perform parley_mail._p_send_one_of(
        v_submitter, v_options, v_sender, sender, recipients[i], v_addresses[i], subject, text, html, headers,
        case when variables is not null then v_variables[least(i, cardinality(v_variables))] end, v_ids[i], attachments
      );
    end loop;
  end if;
  if v_options.priority = 0 then
    perform parley_mail._p_submit_as_stored(v_ids, v_options.not_before);
  else
    perform parley_mail._p_submit(v_ids, v_options.priority, v_options.not_before);
  end if;
  return query select i.id from unnest(v_ids) as i (id);
end
$$;

comment on function parley_mail.send_batch(
  text, text[], text, text, text, jsonb, jsonb, text, timestamptz, timestamptz, text, text, text, text, text, boolean,
  parley_mail.attachment[], parley.caller
) is
'Submits a message of his own to each of many recipients, in this transaction, and gives their numbers in the order of
the recipients.
Arguments: sender; recipients, up to 100,000; subject, text, html, headers, of all of them; variables, an object for all
or an array with one for each recipient; the others as in parley_mail.send.
Errors: PM001 the role does not hold SEND, or may not send as this sender, PM010 malformed, PM012 too large, PM013 over
the quota of the role, PM014 resources are short.
Source: spec mail 4.3.';
