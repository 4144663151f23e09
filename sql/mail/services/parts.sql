-- Parts of messages that services have received, read out of their payload (spec mail 12.2).
--
-- The payload says where a part stands in the raw message and how it is encoded; it is decoded as internal/mail/parts
-- decodes it, which refuses nothing: a base64 letter is a letter, everything else is passed by, and what stands behind
-- the first padding too; a sign that quotes nothing stays, and blanks at line ends go. A test holds the two to one
-- another.

create function parley_mail._p_decoded_base64(encoded text) returns bytea
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_letters text := split_part(encoded, '=', 1) collate "C";
begin
  if v_letters ~ E'[^A-Za-z0-9+/\r\n]' then
    v_letters := regexp_replace(v_letters, E'\\\\(\\\\|[0-7]{3})', '', 'g');
    v_letters := regexp_replace(v_letters, '[^A-Za-z0-9+/]', '', 'g');
  else
    v_letters := translate(v_letters, E'\r\n', '');
  end if;
  return decode(
    case length(v_letters) % 4
      when 0 then v_letters
      when 1 then left(v_letters, -1)
      when 2 then v_letters || '=='
      else v_letters || '='
    end, 'base64'
  );
end
$$;

comment on function parley_mail._p_decoded_base64(text) is
'Decodes base64, whatever stands between its letters.
Arguments: encoded, bytes as encode writes them in the form escape.
Source: RFC 2045 section 6.8.';

create function parley_mail._p_without_last_blanks(line text) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case when length(line) - length(rtrim(line, E' \t')) <= 255 then rtrim(line, E' \t') else line end
$$;

comment on function parley_mail._p_without_last_blanks(text) is
'Gives a text without the blanks at its end, of which a line of mail has at most 255.';

create function parley_mail._p_decoded_part(encoded bytea, encoding text) returns bytea
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return case encoding
    when 'base64' then parley_mail._p_decoded_base64(encode(encoded, 'escape'))
    when 'quoted-printable' then coalesce((
      select string_agg(
        case
          when t.token[1] like E'%\n' and t.token[1] like '=%' then ''::bytea
          when right(t.token[1], 2) = E'\r\n'
            then decode(parley_mail._p_without_last_blanks(left(t.token[1], -2)) || E'\r\n', 'escape')
          when t.token[1] like '=__' then decode(substr(t.token[1], 2), 'hex')
          else decode(t.token[1], 'escape')
        end, '' order by t.n
      )
      from regexp_matches(
        parley_mail._p_without_last_blanks(encode(encoded, 'escape')),
        E'=[ \t]{0,64}\r\n|=[0-9A-Fa-f]{2}|[^=\r]*\r\n|[^=\r]+|[=\r]', 'g'
      ) with ordinality as t (token, n)
    ), '')
    else encoded
  end;
end
$$;

comment on function parley_mail._p_decoded_part(bytea, text) is
'Decodes the body of a part; what is encoded in a way that nobody knows is given as it is.
Arguments: encoded; encoding, such as base64.
Source: RFC 2045 section 6.';

create function parley_mail.read_part(
  payload jsonb, part text, caller parley.caller default parley.current_caller()
) returns bytea
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_part jsonb;
  v_parts text;
  v_offset bigint;
  v_bytes bigint;
  v_piece text;
  v_encoded bytea;
begin
  select (array_agg(d.described) filter (where d.described ->> 'part' = read_part.part))[1],
    string_agg(d.described ->> 'part', ', ')
  into v_part, v_parts
  from (
    select payload #> '{parsed,text}' as described
    union all
    select payload #> '{parsed,html}'
    union all
    select a.described
    from jsonb_array_elements(
      case when jsonb_typeof(payload -> 'attachments') = 'array' then payload -> 'attachments' else '[]' end
    ) as a (described)
  ) as d;
  if v_part is null then
    found := parley_mail._p_raise('part', coalesce(part, 'null'), coalesce(v_parts, 'none'));
  end if;
  v_offset := (v_part ->> 'offset')::bigint;
  v_bytes := (v_part ->> 'bytes')::bigint;
  if payload ->> 'raw' is null then
    v_encoded := parley_mail.read_raw(
      (payload ->> 'raw_reference')::bigint, v_offset, v_bytes::integer, caller => caller
    );
  else
    -- Three bytes are four letters: no more of it is decoded than is asked for.
    v_piece := substr(
      payload ->> 'raw', (v_offset / 3 * 4 + 1)::integer, ((v_offset % 3 + v_bytes + 2) / 3 * 4)::integer
    );
    v_encoded := substr(decode(v_piece, 'base64'), (v_offset % 3 + 1)::integer, v_bytes::integer);
  end if;
  return parley_mail._p_decoded_part(v_encoded, v_part ->> 'encoding');
end
$$;

comment on function parley_mail.read_part(jsonb, text, parley.caller) is
'Gives the bytes of an attachment, or of the text or the HTML, of a message that a service has received, decoded. It
is read out of the payload, or from where raw_reference says (read_raw).
Arguments: payload, what the service has received; part, its number there, such as 2 or 1.2.
Errors: PM004 there is no such part, PM006 the raw message is not there, or the role may not read it.
Source: spec mail 12.2.';
