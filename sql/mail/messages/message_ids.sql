-- Message-IDs in the fields In-Reply-To and References, for the keys of conversations (spec mail 12.2).
--
-- The daemon reads them (internal/mail/parts), and what it has read counts. No daemon has read a message that is
-- delivered from SQL: then the field is read here, in the same way. An id in a comment or in a quoted string is none
-- (RFC 5322 section 3.2): "your message of today (was: <1@example.org>)" names no other. Where comments and quoted
-- strings have no end the field has none, and an id is whatever stands in angle brackets. Python writes ids of 78
-- characters and more as encoded words, so the field is decoded first.
-- Cost: a step for each special character of a field, of which 16 KB are read.

create function parley_mail._p_decoded_field(field text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  -- =?charset*language?encoding?text?=. The charsets of ids have ASCII in them.
  v_word constant text := E'=\\?[^?=[:space:]]+\\?[bq]\\?(?:[^?]|\\?(?!=))*\\?=';
begin
  field := left(field, 16384);
  if strpos(field, '=?') > 0 then
    -- Blanks between two encoded words belong to neither.
    field := regexp_replace(field, E'(' || v_word || E')[ \t]+(?=' || v_word || ')', E'\\1', 'gi');
    select string_agg(
      case
        when t.token[1] !~* ('^' || v_word || '$') then t.token[1]
        when split_part(t.token[1], '?', 3) in ('B', 'b')
          then encode(parley_mail._p_decoded_base64(split_part(t.token[1], '?', 4)), 'escape')
        else encode(parley_mail._p_decoded_part(decode(
          replace((regexp_match(t.token[1], E'^=\\?[^?]*\\?.\\?(.*)\\?=$'))[1], '_', ' '), 'escape'
        ), 'quoted-printable'), 'escape')
      end, '' order by t.n
    ) into field
    from regexp_matches(field, '(' || v_word || '|[^=]+|=)', 'gi') with ordinality as t (token, n);
  end if;
  return btrim(regexp_replace(translate(field, E'\t', ' '), E'[\x01-\x1f\x7f]', '', 'g'));
end
$$;

comment on function parley_mail._p_decoded_field(text) is
'Gives a header field with its encoded words decoded and without control characters, as far as Message-IDs need it.
Arguments: field, unfolded, as encode writes it.
Source: RFC 2047.';

create function parley_mail._p_id_in(field text, has_comments boolean default true) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_token text;
  v_depth integer := 0;
  v_is_quoted boolean := false;
  v_id text;
  v_first text;
begin
  for v_token in
    select t.token[1]
    -- The patterns: a character behind a backslash, where the pattern doubles the backslash; a special character; the
    -- text between.
    from regexp_matches(
      left(field, 16384), E'\\\\\\\\(?:\\\\\\\\|\\\\[0-7]{3}|.)|["()<>]|[^"()<>\\\\]+|.', 'g'
    ) with ordinality as t (token, n)
    order by t.n
  loop
    if length(v_token) > 2 and left(v_token, 1) = E'\\' then
      v_id := case when v_depth = 0 then v_id || v_token end;
    elsif v_depth > 0 then
      v_depth := v_depth + case v_token when '(' then 1 when ')' then -1 else 0 end;
    elsif v_is_quoted then
      v_is_quoted := v_token <> '"';
      v_id := v_id || v_token;
    elsif v_token = '(' and v_id is null and has_comments then
      v_depth := 1;
    elsif v_token = '<' then
      v_id := v_token;
    elsif v_token = '>' then
      v_first := coalesce(v_first, case when length(v_id) > 1 then v_id || v_token end);
      v_id := null;
    elsif v_token ~ E'\\s' then
      v_id := null;
    else
      v_is_quoted := v_token = '"' and has_comments;
      v_id := v_id || v_token;
    end if;
  end loop;
  if v_depth > 0 or v_is_quoted then
    return parley_mail._p_id_in(field, false);
  end if;
  return v_first;
end
$$;

comment on function parley_mail._p_id_in(text, boolean) is
'Gives the first Message-ID of a header field, with its brackets; null: there is none.
Arguments: field, unfolded, as encode writes it; has_comments, whether it is read with comments and quoted strings.
Source: RFC 5322 sections 3.2 and 3.6.4.';

create function parley_mail._p_first_id(payload jsonb, name text) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    case
      when payload #>> '{parsed,state}' <> 'NONE' then payload -> _p_first_id.name ->> 0
      else parley_mail._p_id_in(f.field)
    end,
    -- Some programs write it without brackets.
    case when f.field ~ E'^[^[:space:]<>()"]+$' then f.field end
  )
  from (
    select (
      select parley_mail._p_decoded_field(h.v ->> 1)
      from jsonb_array_elements(payload -> 'headers') with ordinality as h (v, n)
      where lower((h.v ->> 0) collate "C") = replace(_p_first_id.name, '_', '-')
      order by h.n
      limit 1
    ) as field
  ) as f
$$;

comment on function parley_mail._p_first_id(jsonb, text) is
'Gives the first Message-ID of a header field of a message; null: there is none.
Arguments: payload; name, in_reply_to or references.';

create function parley_mail._p_named_id(field text) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(parley_mail._p_id_in(parley_mail._p_decoded_field(field)), field)
$$;

comment on function parley_mail._p_named_id(text) is
'Gives the Message-ID of a message as others name it in their References: without comments, decoded. A field that
has no id is given as it is written.
Arguments: field, the value of Message-ID, unfolded, as encode writes it.';
