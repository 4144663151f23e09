-- How a message is rendered: headers, bodies and attachments become one MIME message (RFC 5322, 2045 to 2047, 2231).
--
-- It is rendered once, at submission, so that a retry can never send other bytes. The texts of a caller go into headers
-- only after they were checked for control characters: so no caller can begin a line of a header. Texts of ASCII with
-- lines of at most 998 go out as they are, others in base64: each transport takes both.
-- Cost: ASCII takes one pass over each text and no statement but that on the lengths of lines.

create type parley_mail.attachment as (
  filename text, content_type text, content bytea, content_id text, sha256 bytea
);

comment on type parley_mail.attachment is
'A file that goes with a message: its name, its type (null: application/octet-stream), its bytes, and the id by which
HTML names it as cid:... (null: it is not shown within the text); or sha256 of stored bytes instead of these. Make one
with parley_mail.attachment(...) or parley_mail.stored_attachment(...).';

create function parley_mail.attachment(
  filename text, content bytea, content_type text default null, content_id text default null
) returns parley_mail.attachment
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select (
    filename,
    coalesce(content_type, (
      select t.type
      from (
        values ('pdf', 'application/pdf'), ('png', 'image/png'), ('jpg', 'image/jpeg'), ('jpeg', 'image/jpeg'),
          ('gif', 'image/gif'), ('txt', 'text/plain; charset=utf-8'), ('csv', 'text/csv; charset=utf-8'),
          ('html', 'text/html; charset=utf-8'), ('ics', 'text/calendar; charset=utf-8'), ('json', 'application/json'),
          ('xml', 'application/xml'), ('zip', 'application/zip'), ('svg', 'image/svg+xml')
      ) as t (ending, type)
      where t.ending = lower(substring(filename from E'\\.([^.]*)$') collate "C")
    )),
    content, content_id, null
  )::parley_mail.attachment
$$;

comment on function parley_mail.attachment(text, bytea, text, text) is
'Makes an attachment for parley_mail.send.
Arguments: filename; content; content_type (null: by the ending of the name); content_id, under which HTML shows it as
cid:...';

create function parley_mail._p_is_ascii(text text) returns boolean
language sql immutable parallel safe
as $$
  select pg_catalog.octet_length(text) operator(pg_catalog.=) pg_catalog.length(text)
$$;

comment on function parley_mail._p_is_ascii(text) is
'Reports whether a text is ASCII, in a database whose encoding has more than one byte for everything else.';

create function parley_mail._p_encoded_words(written text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_words text := '';
  v_rest text := written;
  v_part text;
begin
  -- An encoded word has at most 75 characters, and each stands for whole characters: 33 bytes, whose base64 is
  -- 44, so that the name of a header fits in front.
  while v_rest <> '' loop
    v_part := left(v_rest, 33);
    while octet_length(convert_to(v_part, 'UTF8')) > 33 loop
      v_part := left(v_part, -greatest((octet_length(convert_to(v_part, 'UTF8')) - 33) / 4, 1));
    end loop;
    v_words := v_words || case when v_words = '' then '' else E'\r\n ' end
      || '=?UTF-8?B?' || encode(convert_to(v_part, 'UTF8'), 'base64') || '?=';
    v_rest := substr(v_rest, length(v_part) + 1);
  end loop;
  return v_words;
end
$$;

comment on function parley_mail._p_encoded_words(text) is
'Gives a text as encoded words of RFC 2047, one a line.';

create function parley_mail._p_folded(header text, written text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_line text := header;
  v_lines text := '';
  v_word text;
begin
  if length(written) + length(header) < 76 then
    return header || ' ' || written || E'\r\n';
  end if;
  -- At blanks alone; what has none is too long by right, up to 998.
  foreach v_word in array string_to_array(written, ' ') loop
    if length(v_line) + length(v_word) >= 77 and v_line <> header and btrim(v_line) <> '' and v_word <> '' then
      v_lines := v_lines || v_line || E'\r\n';
      v_line := '';
    end if;
    v_line := v_line || ' ' || v_word;
  end loop;
  return v_lines || v_line || E'\r\n';
end
$$;

comment on function parley_mail._p_folded(text, text) is
'Gives a header line, folded at blanks so that lines have at most 78 characters where that is possible.
Arguments: header, its name with the colon; written, its value, of ASCII and without line breaks.';

create function parley_mail._p_header_line(header text, written text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if written ~ '[[:cntrl:]]' then
    found := parley_mail._p_raise('control', format('header "%s"', header));
  end if;
  if parley_mail._p_is_ascii(written) and (length(written) < 900 or written !~ '[^ ]{250}') then
    return parley_mail._p_folded(header || ':', written);
  end if;
  return header || case when length(header) <= 18 then ': ' else E':\r\n ' end
    || parley_mail._p_encoded_words(written) || E'\r\n';
end
$$;

comment on function parley_mail._p_header_line(text, text) is
'Gives a header line of any text: folded, and as encoded words where it is not ASCII.
Arguments: header, its name; written, its value.
Errors: PM010 a control character in it.';

create function parley_mail._p_written_mailbox(mailbox parley_mail._p_mailbox_of) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return case
    when mailbox.display_name is null then mailbox.address
    when not parley_mail._p_is_ascii(mailbox.display_name) or length(mailbox.display_name) > 250
      then parley_mail._p_encoded_words(mailbox.display_name) || ' <' || mailbox.address || '>'
    when mailbox.display_name ~ E'^[A-Za-z0-9!#$%&\'*+/=?^_`{|}~ -]+$'
      then mailbox.display_name || ' <' || mailbox.address || '>'
    else '"' || regexp_replace(mailbox.display_name, E'(["\\\\])', E'\\\\\\1', 'g') || '" <' || mailbox.address || '>'
  end;
end
$$;

comment on function parley_mail._p_written_mailbox(parley_mail._p_mailbox_of) is
'Gives a name and an address as a header has them.';

create function parley_mail._p_address_header(header text, addresses text[]) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_line text := header || ':';
  v_lines text := '';
  v_written text;
begin
  for i in 1..cardinality(addresses) loop
    v_written := parley_mail._p_written_mailbox(parley_mail._p_parsed_mailbox(addresses[i]))
      || case when i < cardinality(addresses) then ',' else '' end;
    if i > 1 and length(v_line) + length(v_written) > 76 then
      v_lines := v_lines || v_line || E'\r\n';
      v_line := '';
    end if;
    v_line := v_line || ' ' || v_written;
  end loop;
  return v_lines || v_line || E'\r\n';
end
$$;

comment on function parley_mail._p_address_header(text, text[]) is
'Gives a header line of addresses, each written as Name <local-part@domain> or bare.
Arguments: header, its name; addresses, one or more.
Errors: PM010 malformed, control characters.';

create function parley_mail._p_percent_encoded(sign text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if sign ~ '^[A-Za-z0-9._-]$' and parley_mail._p_is_ascii(sign) then
    return sign;
  end if;
  return regexp_replace(upper(encode(convert_to(sign, 'UTF8'), 'hex') collate "C"), '(..)', E'%\\1', 'g');
end
$$;

comment on function parley_mail._p_percent_encoded(text) is
'Gives a character as parameters of RFC 2231 have it: itself, or the bytes of its UTF-8 in hexadecimal.';

create function parley_mail._p_parameter(name text, value text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_sections text[] := array[''];
  v_last integer := 1;
  v_encoded text;
begin
  if value is null then
    return null;
  elsif parley_mail._p_is_ascii(value) and length(value) <= 60 then
    return format(E';\r\n %s="%s"', name, regexp_replace(value, E'(["\\\\])', E'\\\\\\1', 'g'));
  end if;
  -- A character is never cut: readers decode section by section.
  for i in 1..length(value) loop
    v_encoded := parley_mail._p_percent_encoded(substr(value, i, 1));
    if length(v_sections[v_last]) + length(v_encoded) > 50 then
      v_last := v_last + 1;
      v_sections[v_last] := '';
    end if;
    v_sections[v_last] := v_sections[v_last] || v_encoded;
  end loop;
  if v_last = 1 then
    return format(E';\r\n %s*=UTF-8''''%s', name, v_sections[1]);
  end if;
  return (
    select string_agg(
      format(E';\r\n %s*%s*=%s%s', name, s.n - 1, case when s.n = 1 then 'UTF-8''''' else '' end, s.part), ''
      order by s.n
    )
    from unnest(v_sections) with ordinality as s (part, n)
  );
end
$$;

comment on function parley_mail._p_parameter(text, text) is
'Gives a parameter of a MIME header on lines of its own: quoted, or encoded and continued as RFC 2231 has it; null
without a value.
Arguments: name; value, without control characters.';
