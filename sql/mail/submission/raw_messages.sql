-- Messages that come whole: what is checked and what is added before they are stored (RFC 5322, spec mail 4.1).
--
-- Lines end with CR LF; a message that has LF alone throughout is made so, one that mixes them is refused, because what
-- ends a line decides where headers end. Lines have at most 998 bytes: next hops refuse or cut longer ones.
-- Bcc, internal headers and results under our names go, Message-Id and Date come
-- where they are missing.

create function parley_mail._p_is_eight_bit(content bytea) returns boolean
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
  -- The rest are the bytes above 127, as three octal digits, and line ends and letters, as they are.
  select replace(encode(content, 'escape'), E'\\\\', '') ~ E'\\\\[23]'
$$;

comment on function parley_mail._p_is_eight_bit(bytea) is
'Reports whether a message has bytes above 127: next hops are informed of that (RFC 6152).';

create function parley_mail._p_longest_line(content bytea) returns integer
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
  -- A byte is written as one character or more: most lines are short enough as they are written.
  select coalesce(max(octet_length(decode(l.line, 'escape'))), 0)
  from unnest(string_to_array(encode(content, 'escape'), E'\r\n')) as l (line)
  where length(l.line) > 998
$$;

comment on function parley_mail._p_longest_line(bytea) is
'Gives the bytes of the longest line of a message where it has more than 998 (RFC 5322 section 2.1.1), and otherwise at
most 998.
Arguments: content, lines that end with CR LF.';

create function parley_mail._p_without_own_results(head text) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_names text[] := array(
    select lower(n.name collate "C")
    from (
      select unnest(array[o.settings ->> 'fqdn', o.default_domain]) from parley_mail._p_organization as o
      union
      select c.settings ->> 'fqdn' from parley_mail._p_object as c where c.kind = 'receive connector'
    ) as n (name)
    where n.name is not null
  );
  v_field text;
  v_claimed text;
  v_kept text := '';
begin
  for v_field in
    select f.field
    from regexp_split_to_table(head, E'\r\n(?![ \t])') with ordinality as f (field, n)
    where f.field <> ''
    order by f.n
  loop
    if v_field ~* '^authentication-results[ ]*:' then
      -- A backslash is two here, as encode writes it.
      v_claimed := substr(v_field, strpos(v_field, ':') + 1);
      v_claimed := replace(regexp_replace(v_claimed, E'\\\\\\\\[()]', '', 'g'), E'\\', '');
      -- A comment that is nested deeper stays, begins with a parenthesis, and goes: each level is another pass.
      for n in 1..20 loop
        exit when v_claimed !~ '[(][^()]*[)]';
        v_claimed := regexp_replace(v_claimed, '[(][^()]*[)]', '', 'g');
      end loop;
      v_claimed := (regexp_match(v_claimed, E'^[\x01-\x20\x7f"]*([^;(\x01-\x20\x7f"]*)'))[1];
      continue when v_claimed = '' or lower(v_claimed collate "C") = any (v_names);
    end if;
    v_kept := v_kept || v_field || E'\r\n';
  end loop;
  return v_kept;
end
$$;

comment on function parley_mail._p_without_own_results(text) is
'Takes out of a header what says under one of our names what was verified of the origin of a message.
Arguments: head, lines that end with CR LF, as encode writes them.
Source: RFC 8601 section 5.';

create function parley_mail._p_completed_raw(raw bytea, header_message_id text, at timestamptz) returns bytea
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_text text;
  v_end integer;
  v_head text;
  v_line text;
  v_kept text := '';
  v_is_kept boolean := true;
begin
  -- Bytes as characters: whatever stands in a body is nobody's business here.
  v_text := encode(raw, 'escape');
  if position(E'\\x00'::bytea in raw) > 0 then
    found := parley_mail._p_raise('raw', 'It holds a zero byte.');
  elsif position(E'\\x0d'::bytea in raw) = 0 then
    raw := decode(replace(v_text, E'\n', E'\r\n'), 'escape');
  elsif replace(v_text, E'\r\n', '') ~ E'[\r\n]' then
    found := parley_mail._p_raise('raw', 'Some of its lines end with CR or LF alone.');
  end if;
  if parley_mail._p_longest_line(raw) > 998 then
    found := parley_mail._p_raise('raw', 'One of its lines has more than 998 bytes.');
  end if;
  v_end := position(E'\\x0d0a0d0a'::bytea in raw);
  if v_end = 0 then
    found := parley_mail._p_raise('raw', 'No empty line ends its headers.');
  elsif v_end > 262144 then
    found := parley_mail._p_raise('raw', 'Its headers have more than 256 KB.');
  end if;
  v_head := encode(substring(raw from 1 for v_end + 1), 'escape');
  foreach v_line in array string_to_array(rtrim(v_head, E'\r\n'), E'\r\n') loop
    if v_line !~ E'^[ \t]' then
      if v_line !~ '^[!-9;-~]+[ ]*:' then
        found := parley_mail._p_raise('raw', format('"%s" is no header line.', left(v_line, 60)));
      end if;
      v_is_kept := v_line !~* '^(bcc|return-path|x-parley-[^:]*|x-ms-exchange-(organization|forest)[^:]*)[ ]*:';
    elsif v_kept = '' and v_is_kept then
      found := parley_mail._p_raise('raw', 'Its first line is the continuation of none.');
    end if;
    if v_is_kept then
      v_kept := v_kept || v_line || E'\r\n';
    end if;
  end loop;
  if v_kept ~* E'(^|\n)authentication-results[ ]*:' then
    v_kept := parley_mail._p_without_own_results(v_kept);
  end if;
  if v_kept !~* E'(^|\n)from[ ]*:' then
    found := parley_mail._p_raise('raw', 'It has no header From.');
  end if;
  if v_kept !~* E'(^|\n)message-id[ ]*:' then
    v_kept := v_kept || 'Message-ID: ' || header_message_id || E'\r\n';
  end if;
  if v_kept !~* E'(^|\n)date[ ]*:' then
    v_kept := v_kept || 'Date: ' || to_char(at at time zone 'UTC', 'Dy, DD Mon YYYY HH24:MI:SS') || E' +0000\r\n';
  end if;
  if v_kept !~* E'(^|\n)(to|cc)[ ]*:' then
    v_kept := v_kept || E'To: undisclosed-recipients:;\r\n';
  end if;
  return decode(v_kept, 'escape') || substring(raw from v_end + 2);
end
$$;

comment on function parley_mail._p_completed_raw(bytea, text, timestamptz) is
'Gives a message that came whole in the form in which it is stored.
Arguments: raw; header_message_id, for a message that has none; at, for Date.
Errors: PM010 malformed.';

create function parley_mail._p_header_of(content bytea, name text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_head text;
begin
  v_head := encode(substring(
    content from 1 for greatest(position(E'\\x0d0a0d0a'::bytea in substring(content from 1 for 262144)), 1) + 1
  ), 'escape');
  return btrim(replace(
    (regexp_match(v_head, E'(?:^|\n)' || name || E'[ ]*:[ \t]*((?:[^\r\n]|\r\n[ \t])*)', 'i'))[1], E'\r\n', ''
  ));
end
$$;

comment on function parley_mail._p_header_of(bytea, text) is
'Gives the value of the first header of a name, unfolded and otherwise as it is written; null: there is none.
Arguments: content, a message; name, of letters and hyphens.';
