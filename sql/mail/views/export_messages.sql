-- The content of messages, for holders of READ_CONTENT: exported whole, or read in part. Each read stands in the audit,
-- and in the log of the server, where it stays when the reader rolls back.
--
-- An exported message is a file for the replay folder (spec mail 4.2): the envelope as fields before the header. Only
-- what is suspended is exported, so that it is not sent meanwhile; it stays where it is.

create function parley_mail._p_envelope_fields(message_id bigint, queue text) returns bytea
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select convert_to(parley_mail._p_envelope_text(m, r.fields), 'UTF8')
  from parley_mail._p_message as m
  cross join lateral (
    select string_agg(
      'X-Receiver: <' || a.address || '>' || coalesce(' NOTIFY=' || a.notify, '')
        || coalesce(' ORCPT=' || parley_mail._p_original_parameter(a.original), ''),
      E'\r\n' order by a.n
    ) || E'\r\n' as fields
    from (
      select p.address, p.notify, p.original_recipient as original, p.ordinal as n
      from parley_mail._p_recipient as p
      where p.message_id = m.message_id and p.lane = queue
      union all
      -- The messages that were set aside before they were categorized.
      select s.address, s.notify, s.original, s.n
      from unnest(m.recipients, m.notify, m.original_recipients) with ordinality as s (address, notify, original, n)
      where not exists (
        select from parley_mail._p_recipient as p where p.message_id = m.message_id and p.lane = queue
      )
    ) as a
  ) as r
  where m.message_id = _p_envelope_fields.message_id
$$;

comment on function parley_mail._p_envelope_fields(bigint, text) is
'Gives the envelope of a message in a queue as the fields with which a file of the replay folder begins.
Source: spec mail 4.2.';

create function parley_mail._p_record_read(caller oid, operation text, message_id bigint, detail jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  raise log 'mail: role % had the content of message % shown (%)', pg_get_userbyid(caller), message_id, operation;
  perform parley_mail._p_record_audit(caller, operation, message_id::text, detail);
end
$$;

comment on function parley_mail._p_record_read(oid, text, bigint, jsonb) is
'Records that somebody reads a message: in the audit, and in the log of the server, which no rollback takes back.';

create function parley_mail._p_require_held(filter jsonb) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_missing record;
begin
  found := parley_mail._p_require_set_up();
  with chosen as materialized (
    -- One that waits in several queues can be had as soon as it is suspended in one.
    select distinct on (w.message_id) w.message_id, w.status, w.queue
    from parley_mail._p_listed_messages(filter, null, 0, '') as w
    order by w.message_id, w.status <> 'SUSPENDED', w.queue collate "C"
  )

  select n.id, c.status, c.queue into v_missing
  from unnest((parley_mail._p_parsed_filter(filter)).messages) with ordinality as n (id, n)
  left join chosen as c on c.message_id = n.id
  where c.status <> 'SUSPENDED'
    or c.status is null and not exists (select from parley_mail._p_message as m where m.message_id = n.id)
  order by n.n
  limit 1;
  if v_missing.status is not null then
    found := parley_mail._p_raise('not suspended', v_missing.id::text, v_missing.status, v_missing.queue);
  elsif v_missing.id is not null then
    found := parley_mail._p_raise('message', v_missing.id::text);
  end if;
  return true;
end
$$;

comment on function parley_mail._p_require_held(jsonb) is
'Refuses a filter that names a message by its number that is not there, or that it matches in none but queues in which
it is not suspended.
Errors: PM005 mail is not configured, PM006 no such message, PM010 malformed filter, PM015 not suspended.';

create function parley_mail.export_messages(
  filter jsonb, top integer default 10, after bigint default 0, caller parley.caller default parley.current_caller()
) returns table (message_id bigint, queue text, file_name text, content bytea, bookmark bigint)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_item record;
begin
  found := parley_mail._p_require(v_caller, 'READ_CONTENT');
  found := parley_mail._p_require_top(top);
  -- Once is enough: who asks for the next ones has been given some.
  if filter ? 'messages' and coalesce(after, 0) = 0 then
    found := parley_mail._p_require_held(filter);
  end if;
  for v_item in
    select w.message_id, w.queue, w.item_id
    from parley_mail._p_matching(filter, 'export', null) as w
    where w.item_id > coalesce(after, 0)
    order by w.item_id
    limit top
  loop
    message_id := v_item.message_id;
    queue := v_item.queue;
    file_name := v_item.message_id || '-' || v_item.item_id || '.eml';
    content := parley_mail._p_envelope_fields(v_item.message_id, v_item.queue)
      || coalesce(parley_mail._p_body_of(v_item.message_id), '');
    bookmark := v_item.item_id;
    perform parley_mail._p_record_read(
      v_caller, 'export message', v_item.message_id, jsonb_build_object('queue', v_item.queue)
    );
    return next;
  end loop;
end
$$;

comment on function parley_mail.export_messages(jsonb, integer, bigint, parley.caller) is
'Gives suspended messages as files of the replay folder; they stay where they are. A message that is not suspended is
not given, and refused where the filter names it by its number.
Arguments: filter; top, how many at most; after, the bookmark of the last one that was given (0: from the beginning).
Errors: PM001 the role does not hold READ_CONTENT, PM006 no such message, PM010 malformed filter, PM015 a message is not
suspended.
Source: spec mail 4.2, 17.';

create function parley_mail.read_message(
  message_id bigint, part text default 'HEADER', from_byte bigint default 0, bytes integer default 65536,
  caller parley.caller default parley.current_caller()
) returns bytea
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_body bytea;
begin
  found := parley_mail._p_require(v_caller, 'READ_CONTENT');
  found := parley_mail._p_require_top(bytes);
  v_body := parley_mail._p_body_of(message_id);
  if v_body is null then
    found := parley_mail._p_raise('message', coalesce(message_id::text, 'null'));
  elsif upper(part collate "C") = 'HEADER' then
    v_body := substring(v_body from 1 for position(E'\\x0d0a0d0a'::bytea in v_body || E'\\x0d0a0d0a'::bytea) + 1);
  elsif coalesce(upper(part collate "C") <> 'ALL', true) then
    found := parley_mail._p_raise('choice', 'part', coalesce(part, 'null'), 'HEADER, ALL');
  end if;
  perform parley_mail._p_record_read(v_caller, 'read message', message_id, jsonb_build_object('part', part));
  return substring(v_body from least(greatest(coalesce(from_byte, 0), 0), 2000000000)::integer + 1 for bytes);
end
$$;

comment on function parley_mail.read_message(bigint, text, bigint, integer, parley.caller) is
'Gives a part of what a message says.
Arguments: message_id; part, HEADER, or ALL with the body; from_byte, where to begin; bytes, how many at most.
Errors: PM001 the role does not hold READ_CONTENT, PM006 no such message, PM010.
Source: spec mail 17.';
