-- How bytes and words of a message are coded in text (RFC 2045, 2047), and decoded here. None refuses anything:
-- internal/mail/parts decodes in the same way.

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
