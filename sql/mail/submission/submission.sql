-- parley_mail.send and parley_mail.send_batch, and what their callers see of what they have submitted.

create function parley_mail._p_first_under_key(
  submitter parley_mail._p_submitter, key text, content jsonb, attachments parley_mail.attachment[], raw bytea,
  message_id bigint
) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_hash bytea;
  v_first record;
begin
  if length(key) not between 1 and 200 then
    found := parley_mail._p_raise('key');
  end if;
  v_hash := sha256(
    convert_to(content::text, 'UTF8') || coalesce(sha256(raw), '') || coalesce((
      select string_agg(
        coalesce(a.sha256, sha256(a.content))
          || convert_to(row(a.filename, a.content_type, a.content_id)::text, 'UTF8'), '' order by a.n
      )
      from unnest(attachments) with ordinality as a (filename, content_type, content, content_id, sha256, n)
    ), '')
  );
  loop
    -- A session that submits under the same key at the same time is waited for: if it commits, its message is the one.
    insert into parley_mail._p_idempotency as i (submitted_by, key, content_hash, message_id)
    values (submitter.number, _p_first_under_key.key, v_hash, _p_first_under_key.message_id)
    on conflict on constraint _p_idempotency_pkey do nothing;
    if found then
      return null;
    end if;
    select i.content_hash, i.message_id into v_first
    from parley_mail._p_idempotency as i
    where i.submitted_by = submitter.number and i.key = _p_first_under_key.key;
    exit when found;
  end loop;
  if v_first.content_hash <> v_hash then
    found := parley_mail._p_raise('other content', key, v_first.message_id::text);
  end if;
  return v_first.message_id;
end
$$;

comment on function parley_mail._p_first_under_key(
  parley_mail._p_submitter, text, jsonb, parley_mail.attachment[], bytea, bigint
) is
'Records a message under an idempotency key of a role; gives the number of the first of this key where there is one,
null otherwise.
Arguments: content, attachments, raw: what the caller gave, which has to be the same; message_id, of the new message.
Errors: PM010 malformed key, PM011 the key was used for other content, 40001 at an older snapshot.';

create function parley_mail._p_checked_sender(submitter parley_mail._p_submitter, sender text)
returns parley_mail._p_mailbox_of
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if strpos(sender, '@') = 0 and submitter.default_domain is not null and sender ~ '^[A-Za-z0-9._+-]+$' then
    sender := sender || '@' || submitter.default_domain;
  end if;
  return parley_mail._p_parsed_mailbox(sender);
end
$$;

comment on function parley_mail._p_checked_sender(parley_mail._p_submitter, text) is
'Gives the sender, with the default domain where it has none.
Errors: PM010.';

create function parley_mail._p_send_one_of(
  submitter parley_mail._p_submitter, options parley_mail._p_options, sender parley_mail._p_mailbox_of, written text,
  recipient text, address text, subject text, text text, html text, headers jsonb, variables jsonb, message_id bigint,
  attachments parley_mail.attachment[] default null, parent bigint default null
) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_header_id text := format('<%s@%s>', gen_random_uuid(), parley_mail._p_domain_of(sender.address));
  v_rendered bytea;
begin
  if variables is not null then
    subject := parley_mail._p_filled(subject, variables, false);
    text := parley_mail._p_filled(text, variables, false);
    html := parley_mail._p_filled(html, variables, true);
  end if;
  v_rendered := parley_mail._p_rendered(
    written, array[recipient], subject, text, html, headers, attachments, v_header_id, clock_timestamp()
  );
  perform parley_mail._p_store_message(
    submitter, options, message_id, v_header_id, sender.address, array[address], subject, v_rendered, parent,
    attachments is not null and parley_mail._p_is_rendered_eight_bit(attachments, null, v_rendered)
  );
  if submitter.has_quota then
    found := parley_mail._p_count_against_quota(submitter, 1, octet_length(v_rendered));
  end if;
  return octet_length(v_rendered);
end
$$;

comment on function parley_mail._p_send_one_of(
  parley_mail._p_submitter, parley_mail._p_options, parley_mail._p_mailbox_of, text, text, text, text, text, text,
  jsonb, jsonb, bigint, parley_mail.attachment[], bigint
) is
'Stores a message for one of several recipients, with the recipient''s variables; gives its bytes.
Errors: PM010, PM012, PM013.';

create function parley_mail.send(
  sender text, recipients text[], subject text default null, text text default null, html text default null,
  headers jsonb default null, attachments parley_mail.attachment[] default null, raw bytea default null,
  idempotency_key text default null, priority text default 'NORMAL', not_before timestamptz default null,
  expires timestamptz default null, notify text default null, ret text default null, envid text default null,
  variables jsonb default null, on_status text default null, tag text default null,
  verp boolean default false, caller parley.caller default parley.current_caller()
) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_submitter parley_mail._p_submitter := parley_mail._p_submitter_of(parley.caller_role(caller));
  v_sender parley_mail._p_mailbox_of := parley_mail._p_checked_sender(v_submitter, sender);
  v_addresses text[] := parley_mail._p_require_recipients(v_submitter, recipients);
  v_options parley_mail._p_options := parley_mail._p_checked_options(
    v_submitter, priority, not_before, expires, notify, ret, envid, on_status, tag, verp, v_sender.address
  );
  v_id bigint := nextval('parley_mail._p_message_id');
  v_header_id text := format('<%s@%s>', gen_random_uuid(), parley_mail._p_domain_of(v_sender.address));
  v_rendered bytea;
  v_first bigint;
  v_variables jsonb[];
  v_ids bigint[] := array[v_id];
begin
  -- They are counted from 1 below, and an array may begin elsewhere.
  if array_ndims(recipients) > 1 or array_lower(recipients, 1) <> 1 then
    recipients := array(select r.written from unnest(recipients) with ordinality as r (written, n) order by r.n);
  end if;
  sender := case when v_sender.display_name is null then v_sender.address else sender end;
  found := parley_mail._p_require_sender(v_submitter, v_sender.address);
  if headers is not null and jsonb_typeof(headers) = 'object' then
    found := parley_mail._p_require_senders_of(v_submitter, headers);
  end if;
  if raw is not null and (subject, text, html, headers, attachments, variables) is distinct from
    (null::text, null::text, null::text, null::jsonb, null::parley_mail.attachment[], null::jsonb) then
    found := parley_mail._p_raise('body', 'raw is given, and other parts of a message too.');
  end if;
  if v_submitter.number is null then
    v_submitter.number := parley._p_number_of(v_submitter.role);
  end if;
  if idempotency_key is not null then
    v_first := parley_mail._p_first_under_key(
      v_submitter, idempotency_key,
      jsonb_build_array(sender, recipients, subject, text, html, headers, variables, tag, upper(priority collate "C"))
        || case when v_options.has_verp then '["verp"]'::jsonb else '[]' end, attachments, raw, v_id
    );
    if v_first is not null then
      return v_first;
    end if;
  end if;
  if attachments is not null then
    attachments := parley_mail._p_with_stored(v_submitter, attachments);
  end if;
  if variables is not null then
    v_variables := parley_mail._p_variables_of(variables, cardinality(recipients));
    for i in 1..cardinality(recipients) loop
      v_ids[i] := case when i = 1 then v_id else nextval('parley_mail._p_message_id') end;
      perform parley_mail._p_send_one_of(
        v_submitter, v_options, v_sender, sender, recipients[i], v_addresses[i], subject, text, html, headers,
        v_variables[least(i, cardinality(v_variables))], v_ids[i], attachments, nullif(v_id, v_ids[i])
      );
    end loop;
    perform parley_mail._p_submit_as_stored(v_ids, v_options.not_before);
    return v_id;
  end if;
  if raw is not null then
    v_rendered := parley_mail._p_completed_raw(raw, v_header_id, clock_timestamp());
    found := parley_mail._p_require_senders_within(v_submitter, v_rendered);
    subject := parley_mail._p_header_of(v_rendered, 'Subject');
    v_header_id := parley_mail._p_named_id(parley_mail._p_header_of(v_rendered, 'Message-ID'));
  else
    v_rendered := parley_mail._p_rendered(
      sender, recipients, subject, text, html, headers, attachments, v_header_id, clock_timestamp()
    );
  end if;
  perform parley_mail._p_store_message(
    v_submitter, v_options, v_id, v_header_id, v_sender.address, v_addresses, subject, v_rendered, null,
    (raw is not null or attachments is not null)
      and parley_mail._p_is_rendered_eight_bit(attachments, raw, v_rendered)
  );
  if v_options.priority = 1 and v_options.not_before is null then
    perform parley.put('parley_mail_submission', convert_to(v_id::text, 'UTF8'), caller => parley.current_caller());
  else
    perform parley_mail._p_submit_as_stored(v_ids, v_options.not_before);
  end if;
  if v_submitter.has_quota then
    found := parley_mail._p_count_against_quota(v_submitter, 1, octet_length(v_rendered));
  end if;
  return v_id;
end
$$;

comment on function parley_mail.send(
  text, text[], text, text, text, jsonb, parley_mail.attachment[], bytea, text, text, timestamptz, timestamptz, text,
  text, text, jsonb, text, text, boolean, parley.caller
) is
'Submits a message in this transaction, and gives its number: with the commit it is under way, after a rollback it has
never been. It is rendered now; retries send the same bytes.
Arguments: sender, address@domain or Name <address@domain>, or a local part alone of the default domain; recipients,
written the same way; subject; text; html; headers, {"Name": "value"}, where From, To and Cc change what is shown and
not who gets it; attachments, each made by parley_mail.attachment or
parley_mail.stored_attachment; raw, a whole message instead of these;
idempotency_key, a second call with the same key and message gives the first number, whose status is in
parley_mail.submitted_messages and parley_mail.tracking; priority, HIGH, NORMAL or LOW; not_before; expires, null: by
priority; notify, NEVER or a list of SUCCESS, FAILURE, DELAY; ret, FULL or HDRS; envid; variables, an
object for all or an array with one for each recipient: then {{name}} is filled in, each recipient gets a message of his
own, and the number is that of the first; on_status, a Parley service that is informed of what becomes of it; tag, a
text of your own; verp, whether each recipient has a return path of its own, by which a bounce says whom it is about:
local-part+user=domain@domain-of-sender.
Errors: PM001 the role does not hold SEND, or may not send as this sender, PM010 malformed, PM011 the key was used for
other content, PM012 too large, PM013 over the quota of the role, PM014 resources are short.
Source: spec mail 4.3.';

create function parley_mail._p_submitted_messages(caller parley.caller default parley.current_caller())
returns table (
  message_id bigint, parent_message_id bigint, submitted_at timestamptz, sender text, recipients text[], subject text,
  tag text, size bigint, priority text, not_before timestamptz, expires_at timestamptz
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select m.message_id, m.parent_message_id, m.received_at, m.sender, m.recipients, m.subject, m.tag, m.size,
    (array['HIGH', 'NORMAL', 'LOW'])[m.priority + 1], m.not_before, m.expires_at
  from parley_mail._p_message as m
  where m.submitted_by = any ((select parley._p_numbers_of(parley.caller_role(caller)))::integer[])
$$;

comment on function parley_mail._p_submitted_messages(parley.caller) is
'Gives what parley_mail.submitted_messages shows.';

create view parley_mail.submitted_messages as
select s.message_id, s.parent_message_id, s.submitted_at, s.sender, s.recipients, s.subject, s.tag, s.size, s.priority,
  s.not_before, s.expires_at
from parley_mail._p_submitted_messages() as s;

comment on view parley_mail.submitted_messages is
'Messages that the current role has submitted and that are still under way; nobody else sees them here.';
