-- Messages as services and tables get them: one JSON object with the envelope, the header, the text, and what is
-- attached (spec mail 12.2).
--
-- The daemon reads the MIME before the transaction that delivers (internal/mail/parts); here its findings are put
-- beside the fields that the database knows. Without it a message is delivered too, and says so: state NONE.

create function parley_mail._p_unfolded_headers(content bytea) returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(
    jsonb_build_array(split_part(h.line, ':', 1), btrim(substr(h.line, strpos(h.line, ':') + 1))) order by h.n
  ), '[]')
  from regexp_split_to_table(
    regexp_replace(
      encode(substring(content from 1 for greatest(position(E'\\x0d0a0d0a'::bytea in content) - 1, 0)), 'escape'),
      E'\r\n[ \t]+', ' ', 'g'
    ), E'\r\n'
  ) with ordinality as h (line, n)
  where strpos(h.line, ':') > 1
$$;

comment on function parley_mail._p_unfolded_headers(bytea) is
'Gives the header fields of a message, unfolded, in their order: a list of name and value. Bytes that are not ASCII
stand as backslash and three octal digits.';

create function parley_mail._p_body_of(message_id bigint, bytes bigint default null) returns bytea
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_holder record;
begin
  select b.message_id, b.content_id, b.body into v_holder
  from parley_mail._p_message as m
  join parley_mail._p_message as b on b.message_id = coalesce(m.body_message_id, m.message_id)
  where m.message_id = _p_body_of.message_id;
  if v_holder.content_id is null then
    return v_holder.body;
  end if;
  return parley_mail._p_read_stored(v_holder.content_id, v_holder.message_id, bytes);
end
$$;

comment on function parley_mail._p_body_of(bigint, bigint) is
'Gives the body of a message, wherever it stands, whole or, of one that is content, the first bytes of it; null where
there is no such message.
Arguments: message_id; bytes, how many of content at most: null, all.
Errors: PS010 bytes of it are missing.';

create function parley_mail._p_parsed(parsed bytea) returns jsonb
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce(convert_from(parsed, 'UTF8')::jsonb, '{"parsed": {"state": "NONE"}}'::jsonb);
exception
  when data_exception or program_limit_exceeded then
    return '{"parsed": {"state": "NONE", "problems": [{"problem": "UNSTORABLE"}]}}'::jsonb;
end
$$;

comment on function parley_mail._p_parsed(bytea) is
'Gives what a daemon has read of a message as fields of its payload. A text that the database cannot store, because its
encoding is not UTF8, does not keep the message from being delivered.
Arguments: parsed, JSON in UTF-8 as internal/mail/parts writes it; null: nobody has read it.
Source: spec mail 12.2.';

create function parley_mail._p_payload(
  message_id bigint, addresses text[], parsed bytea, raw_reference bigint
) returns jsonb
language sql
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'message_id', m.message_id, 'network_message_id', m.network_message_id, 'header_message_id', m.header_message_id,
    'received_at', m.received_at, 'sender', m.sender, 'recipient', addresses[1], 'recipients', to_jsonb(addresses),
    'subject', m.subject, 'size', m.size, 'source', m.source, 'source_ip', m.source_ip, 'helo', m.helo,
    'authenticated_as', m.authenticated_as, 'verdicts', m.verdicts, 'headers', parley_mail._p_unfolded_headers(b.body)
  ) || case
    -- In one line: not every decoder takes the line ends that encode writes.
    when raw_reference is null then jsonb_build_object('raw', translate(encode(b.body, 'base64'), E'\n', ''))
    else jsonb_build_object('raw_reference', raw_reference)
  end || parley_mail._p_parsed(parsed)
  from parley_mail._p_message as m
  cross join (
    -- A header stands at the beginning.
    select case
      when raw_reference is null then parley_mail._p_body_of(_p_payload.message_id)
      else parley_mail._p_body_of(_p_payload.message_id, 524288)
    end as body
    offset 0
  ) as b
  where m.message_id = _p_payload.message_id
$$;

comment on function parley_mail._p_payload(bigint, text[], bytea, bigint) is
'Gives a message as the JSON object that services get: envelope, verdicts, header fields, the whole of it as raw, in
base64, or a reference to it, and what was read of it.
Arguments: message_id; addresses, the recipients; parsed, as _p_parsed; raw_reference, as _p_keep_body gives it.
Source: spec mail 12.2.';
