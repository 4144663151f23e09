-- The body of a message, and the message as a whole: which parts there are and how they are nested.
--
--   multipart/mixed             when there are attachments
--     multipart/related         when some of them are shown within HTML
--       multipart/alternative   when there are text and HTML
--         text/plain, text/html

create function parley_mail._p_text_part(type text, written text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_text text := written;
begin
  if strpos(v_text, E'\r') > 0 then
    v_text := replace(replace(v_text, E'\r\n', E'\n'), E'\r', E'\n');
  end if;
  if parley_mail._p_is_ascii(v_text) and (
    length(v_text) <= 998
    or (select max(length(l.line)) from unnest(string_to_array(v_text, E'\n')) as l (line)) <= 998
  ) then
    return format(E'Content-Type: %s; charset=us-ascii\r\nContent-Transfer-Encoding: 7bit\r\n\r\n', type)
      || replace(v_text, E'\n', E'\r\n');
  end if;
  return format(E'Content-Type: %s; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n', type)
    || replace(encode(convert_to(replace(v_text, E'\n', E'\r\n'), 'UTF8'), 'base64'), E'\n', E'\r\n');
end
$$;

comment on function parley_mail._p_text_part(text, text) is
'Gives a part of text with its headers, without a line end behind it.
Arguments: type, text/plain or text/html; written, the text.';

create function parley_mail._p_is_attached_message(attachment parley_mail.attachment) returns boolean
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select attachment.content_type ~* '^message/rfc822 *(;|$)'
$$;

comment on function parley_mail._p_is_attached_message(parley_mail.attachment) is
'Reports whether an attachment is a whole message; null where its type is not given.';

create function parley_mail._p_attachment_part(
  attachment parley_mail.attachment, number integer, mark text
) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_type text := coalesce(attachment.content_type, 'application/octet-stream');
  v_is_message boolean := coalesce(parley_mail._p_is_attached_message(attachment), false);
begin
  if attachment.content is null then
    found := parley_mail._p_raise('attachment', number::text, 'It has neither content nor the hash of a stored one.');
  elsif attachment.filename ~ '[[:cntrl:]]' or v_type ~ '[[:cntrl:]]' or attachment.content_id ~ '[[:cntrl:]]' then
    found := parley_mail._p_raise('control', format('attachment %s', number));
  elsif v_type !~ (E'^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+'
      || E'(; *[A-Za-z0-9-]+=("[^"\\\\]*"|[^][ "(),/:;<=>?@\\\\]+))*$')
    or length(v_type) > 200 or not parley_mail._p_is_ascii(v_type)
    or (v_type ~* '^(multipart|message)/' and not v_is_message) then
    found := parley_mail._p_raise('attachment', number::text, format('"%s" is no type.', left(v_type, 100)));
  elsif attachment.content_id !~ '^[A-Za-z0-9._%+@-]{1,200}$' then
    found := parley_mail._p_raise('attachment', number::text, 'Its content_id has characters that an id cannot have.');
  end if;
  return 'Content-Type: ' || v_type || E'\r\nContent-Transfer-Encoding: ' || case
      when not v_is_message then 'base64' when parley_mail._p_is_eight_bit(attachment.content) then '8bit' else '7bit'
    end || E'\r\nContent-Disposition: ' || case when attachment.content_id is null then 'attachment' else 'inline' end
    || coalesce(parley_mail._p_parameter('filename', nullif(attachment.filename, '')), '')
    || coalesce(E'\r\nContent-ID: <' || attachment.content_id || '>', '') || E'\r\n\r\n'
    || case when v_is_message then mark else replace(encode(attachment.content, 'base64'), E'\n', E'\r\n') end;
end
$$;

comment on function parley_mail._p_attachment_part(parley_mail.attachment, integer, text) is
'Gives an attachment as a part with its headers, without a line end behind it. A message has no encoding (RFC 2046
section 5.2.1): a mark stands in its place, because its bytes may be no text of the database.
Arguments: attachment; number, for errors; mark.
Errors: PM010 no content, a malformed type or id, control characters.';

create function parley_mail._p_multipart(subtype text, parts text[]) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  -- 122 random bits, and "=_", which neither base64 nor quoted-printable can hold.
  v_boundary text := '=_' || replace(gen_random_uuid()::text, '-', '');
begin
  return format(E'Content-Type: multipart/%s;\r\n boundary="%s"\r\n\r\n--%s\r\n', subtype, v_boundary, v_boundary)
    || array_to_string(parts, E'\r\n--' || v_boundary || E'\r\n') || E'\r\n--' || v_boundary || E'--\r\n';
end
$$;

comment on function parley_mail._p_multipart(text, text[]) is
'Puts parts together.
Arguments: subtype, such as mixed; parts, each with its headers.';

create function parley_mail._p_rendered_body(
  text text, html text, attachments parley_mail.attachment[], mark text
) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_body text;
  v_shown text[] := array[]::text[];
  v_attached text[] := array[]::text[];
  v_part text;
  v_is_eight_bit boolean := false;
begin
  if html is null then
    v_body := parley_mail._p_text_part('text/plain', coalesce(text, ''));
  elsif text is null then
    v_body := parley_mail._p_text_part('text/html', html);
  else
    v_body := parley_mail._p_multipart(
      'alternative', array[parley_mail._p_text_part('text/plain', text), parley_mail._p_text_part('text/html', html)]
    );
  end if;
  for i in 1..coalesce(cardinality(attachments), 0) loop
    v_part := parley_mail._p_attachment_part(attachments[i], i, mark || i);
    v_is_eight_bit := v_is_eight_bit or v_part ~ E'^[^\r]*\r\nContent-Transfer-Encoding: 8bit\r';
    if attachments[i].content_id is not null and html is not null then
      v_shown := v_shown || v_part;
    else
      v_attached := v_attached || v_part;
    end if;
  end loop;
  if v_shown <> '{}' then
    v_body := parley_mail._p_multipart('related', v_body || v_shown);
    v_body := case when v_is_eight_bit then E'Content-Transfer-Encoding: 8bit\r\n' else '' end || v_body;
  end if;
  if v_attached <> '{}' then
    v_body := parley_mail._p_multipart('mixed', v_body || v_attached);
    v_body := case when v_is_eight_bit then E'Content-Transfer-Encoding: 8bit\r\n' else '' end || v_body;
  end if;
  -- A message of one part gets its line end here; that of several stands behind their last boundary.
  if v_shown = '{}' and v_attached = '{}' and (text is null or html is null) then
    v_body := v_body || E'\r\n';
  end if;
  return v_body;
end
$$;

comment on function parley_mail._p_rendered_body(text, text, parley_mail.attachment[], text) is
'Gives the body of a message, from its MIME headers on.
Arguments: text; html; attachments; mark, which with the number of an attachment stands in the place of a message.
Errors: PM010 a malformed attachment.';

create function parley_mail._p_is_rendered_eight_bit(
  attachments parley_mail.attachment[], raw bytea, rendered bytea
) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if raw is null and attachments is null then
    return false;
  elsif raw is null and not exists (
    select from unnest(attachments) as a where parley_mail._p_is_attached_message(row(a.*)::parley_mail.attachment)
  ) then
    return false;
  end if;
  return parley_mail._p_is_eight_bit(rendered);
end
$$;

comment on function parley_mail._p_is_rendered_eight_bit(parley_mail.attachment[], bytea, bytea) is
'Reports whether a message that is submitted has bytes above 127. All but what comes whole is rendered in ASCII.
Arguments: attachments and raw, as in parley_mail.send; rendered, the message.';

create function parley_mail._p_attached_message(content bytea, number integer) returns bytea
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if position(E'\\x00'::bytea in content) > 0 then
    found := parley_mail._p_raise('attached', number::text, 'It holds a zero byte.');
  elsif position(E'\\x0d'::bytea in content) = 0 then
    content := decode(replace(encode(content, 'escape'), E'\n', E'\r\n'), 'escape');
  elsif replace(encode(content, 'escape'), E'\r\n', '') ~ E'[\r\n]' then
    found := parley_mail._p_raise('attached', number::text, 'Some of its lines end with CR or LF alone.');
  end if;
  if encode(substring(content from 1 for 1000), 'escape') !~ E'^[!-9;-~]+[ ]*:' then
    found := parley_mail._p_raise('attached', number::text, 'It begins with no header line.');
  elsif parley_mail._p_longest_line(content) > 998 then
    found := parley_mail._p_raise('attached', number::text, 'One of its lines has more than 998 bytes.');
  end if;
  return content;
end
$$;

comment on function parley_mail._p_attached_message(bytea, integer) is
'Gives a message that is attached with lines that end with CR LF.
Arguments: content; number of the attachment, for errors.
Errors: PM010 it is no message that can be attached.';

create function parley_mail._p_with_messages(
  rendered bytea, attachments parley_mail.attachment[], mark text
) returns bytea
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_mark bytea;
  v_at integer;
begin
  for i in 1..coalesce(cardinality(attachments), 0) loop
    v_mark := convert_to(mark || i, 'UTF8');
    v_at := position(v_mark in rendered);
    if parley_mail._p_is_attached_message(attachments[i]) and v_at > 0 then
      rendered := substring(rendered from 1 for v_at - 1)
        || parley_mail._p_attached_message(attachments[i].content, i)
        || substring(rendered from v_at + octet_length(v_mark));
    end if;
  end loop;
  return rendered;
end
$$;

comment on function parley_mail._p_with_messages(bytea, parley_mail.attachment[], text) is
'Puts attached messages in the places of their marks.
Arguments: rendered, a message; attachments; mark, as in parley_mail._p_rendered_body.
Errors: PM010 what is attached is no message.';

create function parley_mail._p_joined_addresses(given jsonb) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select nullif(btrim(string_agg(e.value, ', ' order by e.n), ', '), '')
  from jsonb_array_elements_text(
    case jsonb_typeof(given) when 'array' then given else jsonb_build_array(given) end
  ) with ordinality as e (value, n)
$$;

comment on function parley_mail._p_joined_addresses(jsonb) is
'Gives the addresses of a header, one text or a list, as they are written: one text, which means what it means as a
whole. Checking the text checks each of them. Null: there is none.';

create function parley_mail._p_other_headers(headers jsonb) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_header record;
  v_lines text := '';
begin
  for v_header in
    select h.key as name, l.value, h.key ~* '^(from|to|cc|reply-to|sender)$' as has_addresses
    from jsonb_each(headers) as h
    cross join lateral (
      select case jsonb_typeof(h.value) when 'array' then h.value else jsonb_build_array(h.value) end as list
    ) as v
    cross join lateral (
      select e.value
      from jsonb_array_elements_text(v.list) as e (value)
      where h.key !~* '^(from|to|cc|reply-to|sender)$'
      union all
      select parley_mail._p_joined_addresses(v.list)
      where h.key ~* '^(from|to|cc|reply-to|sender)$'
    ) as l
    where l.value is not null
  loop
    if v_header.name !~ '^[A-Za-z0-9][A-Za-z0-9-]{0,75}$' then
      found := parley_mail._p_raise('header', left(v_header.name, 100), 'A name has letters, digits and hyphens.');
    elsif lower(v_header.name collate "C") in (
      'received', 'return-path', 'bcc', 'mime-version', 'content-type', 'content-transfer-encoding', 'dkim-signature',
      'authentication-results', 'delivered-to', 'content-disposition', 'content-id', 'message-id', 'date', 'subject'
    ) or v_header.name ~* '^(resent-|arc-|x-parley-|x-ms-exchange-)' then
      found := parley_mail._p_raise('header', v_header.name, 'Mail transport writes it itself.');
    elsif v_header.has_addresses then
      if strpos(lower(v_lines), lower(v_header.name) || ':') = 1
        or strpos(lower(v_lines), E'\n' || lower(v_header.name) || ':') > 0 then
        found := parley_mail._p_raise('header', v_header.name, 'It is given twice.');
      end if;
      v_lines := v_lines || parley_mail._p_address_header(
        initcap(v_header.name collate "C"), parley_mail._p_listed_addresses(v_header.value)
      );
    else
      v_lines := v_lines || parley_mail._p_header_line(v_header.name, v_header.value);
    end if;
  end loop;
  return v_lines;
end
$$;

comment on function parley_mail._p_other_headers(jsonb) is
'Gives the header lines that a caller asks for. A list makes a line of each value, of addresses one line.
Errors: PM010 a header that mail transport writes itself, a malformed name, address or value.';

create function parley_mail._p_listed_addresses(written text) returns text[]
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if written ~ '[[:cntrl:]]' then
    found := parley_mail._p_raise('control', 'an address');
  end if;
  -- Commas, but those within quotes and comments.
  return array(
    select btrim(m.part[1])
    from regexp_matches(written, E'((?:"(?:[^"\\\\]|\\\\.)*"|[(][^()"]*[)]|[^",])+)', 'g')
      with ordinality as m (part, n)
    where btrim(m.part[1]) <> ''
    order by m.n
  );
end
$$;

comment on function parley_mail._p_listed_addresses(text) is
'Takes a list of addresses with commas between apart.
Errors: PM010 control characters.';

create function parley_mail._p_rendered(
  sender text, recipients text[], subject text, text text, html text, headers jsonb,
  attachments parley_mail.attachment[], header_message_id text, at timestamptz
) returns bytea
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_head text := '';
  v_has_to boolean := false;
  v_has_from boolean := false;
  v_rendered bytea;
  -- 122 random bits: no text holds them.
  v_mark constant text := case when attachments is not null then '=_' || gen_random_uuid() || '_' end;
begin
  if headers is not null then
    if jsonb_typeof(headers) <> 'object' then
      found := parley_mail._p_raise('header', left(headers::text, 50), 'Headers are an object of names and values.');
    end if;
    v_head := parley_mail._p_other_headers(headers);
    v_has_from := v_head ~* E'(^|\n)from:';
    select bool_or(lower(k.name collate "C") in ('to', 'cc')) into v_has_to from jsonb_object_keys(headers) as k (name);
  end if;
  if not v_has_from then
    v_head := v_head || parley_mail._p_address_header('From', array[sender]);
  end if;
  if not coalesce(v_has_to, false) then
    v_head := v_head || parley_mail._p_address_header('To', recipients);
  end if;
  v_rendered := convert_to(
    'Date: ' || to_char(at at time zone 'UTC', 'Dy, DD Mon YYYY HH24:MI:SS') || E' +0000\r\n' || v_head
    || 'Message-ID: ' || header_message_id || E'\r\n'
    || case when subject is null then '' else parley_mail._p_header_line('Subject', subject) end
    || E'MIME-Version: 1.0\r\n' || parley_mail._p_rendered_body(text, html, attachments, v_mark),
    'UTF8'
  );
  if attachments is not null then
    v_rendered := parley_mail._p_with_messages(v_rendered, attachments, v_mark);
  end if;
  return v_rendered;
end
$$;

comment on function parley_mail._p_rendered(
  text, text[], text, text, text, jsonb, parley_mail.attachment[], text, timestamptz
) is
'Renders a message. From is the sender and To the recipients where headers do not say otherwise: recipients that headers
To and Cc do not name get it blind.
Arguments: sender and recipients, as Name <local-part@domain> or bare; subject; text; html; headers; attachments;
header_message_id, with its angle brackets; at, for Date.
Errors: PM010 what cannot stand in a message.';
