-- Mail addresses: what one is, and in which form two are compared (RFC 5321, RFC 6531, spec mail 6.1).
--
-- The directory compares addresses as _p_folded gives them (base/domains.sql), local part too. An envelope keeps the
-- local part as it was written.

create function parley_mail._p_is_domain(domain text) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  -- Labels of letters, digits, underscores and, within them, hyphens.
  return octet_length(domain) between 1 and 255
    and domain ~ (
      E'^[^\x01-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\x7f]+(-+[^\x01-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\x7f]+)*'
      || E'(\\.[^\x01-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\x7f]+(-+[^\x01-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\x7f]+)*)*$'
    )
    and (octet_length(domain) < 64 or octet_length(domain) > length(domain) or domain !~ '[^.]{64}')
    and parley_mail._p_a_labels(domain) is not null;
end
$$;

comment on function parley_mail._p_is_domain(text) is
'Reports whether a text has the form of a domain, in ASCII or in letters that can be written so.';

create function parley_mail._p_is_literal(written text) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if written ~* E'^\\[ipv6:[0-9a-f:.]+\\]$' then
    return family(substr(written, 7, length(written) - 7)::inet) = 6;
  end if;
  return written ~ E'^\\[[0-9]+([.][0-9]+){3}\\]$' and written !~ E'(\\[|[.])0[0-9]'
    and family(substr(written, 2, length(written) - 2)::inet) = 4;
exception
  when invalid_text_representation then
    return false;
end
$$;

comment on function parley_mail._p_is_literal(text) is
'Reports whether a text is an address literal: [192.0.2.1] or [IPv6:2001:db8::1].';

create function parley_mail._p_is_address(address text) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_domain constant text := split_part(address, '@', -1);
begin
  -- Most are so, and one expression is enough for them.
  if octet_length(address) between 3 and 64
    and address ~ '^[A-Za-z0-9_.+=-]+@[A-Za-z0-9_]+(-+[A-Za-z0-9_]+)*([.][A-Za-z0-9_]+(-+[A-Za-z0-9_]+)*)*$' then
    return true;
  end if;
  -- Local part: words with dots, which some providers give out at the ends and in a row too, or a quoted string.
  return octet_length(address) between 3 and 571
    and left(address, -length(v_domain)) ~ (
      E'^([^]["(),:;<>@\\\\\x01-\x20\x7f]+|"([^"\\\\\x01-\x1f\x7f]|\\\\[^\x01-\x1f\x7f])+")@$'
    )
    and octet_length(address) - octet_length(v_domain) <= 316
    and case when left(v_domain, 1) = '[' then parley_mail._p_is_literal(v_domain)
      else parley_mail._p_is_domain(v_domain) end;
end
$$;

comment on function parley_mail._p_is_address(text) is
'Reports whether a text is an address, local-part@domain, within 315 octets before the @, 255 behind it and 571 in
all. The daemon has the same rule for SMTP, for files and for the fields of messages.';

create function parley_mail._p_domain_of(address text) returns text
language sql immutable parallel safe
as $$
  select parley_mail._p_folded(pg_catalog.split_part(address, '@', '-1'::pg_catalog.int4))
$$;

comment on function parley_mail._p_domain_of(text) is
'Gives the domain of an address, in lower case and in ASCII; of the empty address the empty text.';

create function parley_mail._p_requoted(address text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_domain constant text := split_part(address, '@', -1);
  v_local text;
begin
  v_local := substr(address, 2, length(address) - length(v_domain) - 3);
  v_local := regexp_replace(v_local, E'\\\\(.)', E'\\1', 'g');
  if v_local ~ E'[]["(),:;<>@\\\\\x01-\x20\x7f]' then
    v_local := '"' || regexp_replace(v_local, E'(["\\\\])', E'\\\\\\1', 'g') || '"';
  end if;
  return v_local || '@' || v_domain;
end
$$;

comment on function parley_mail._p_requoted(text) is
'Gives an address whose local part is quoted with no more quotes and backslashes than it needs.';

create function parley_mail._p_require_address(address text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if parley_mail._p_is_address(address) is not true then
    found := parley_mail._p_raise(
      'address', coalesce(left(address, 100), 'null'),
      case
        when octet_length(address) > 571 then 'It has more than 571 octets.'
        when address ~ '[[:cntrl:]]' then 'It has control characters.'
        when address !~ '@' then 'There is no @ in it.'
        else 'A part of it is empty, too long, or has characters that need quotes.'
      end
    );
  end if;
  if left(address, 1) = '"' then
    address := parley_mail._p_requoted(address);
  end if;
  return parley_mail._p_with_a_labels(address);
end
$$;

comment on function parley_mail._p_require_address(text) is
'Gives the address back, with its domain in ASCII and without quotes that it does not need, or refuses it.
Errors: PM010.';

create type parley_mail._p_mailbox_of as (display_name text, address text);

comment on type parley_mail._p_mailbox_of is
'The parts of Name <local-part@domain>; display_name is null for a bare address.';

create function parley_mail._p_without_comments(written text, out kept text, out remark text)
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_token text;
  v_depth integer := 0;
  v_is_quoted boolean := false;
  v_comment text;
begin
  kept := '';
  for v_token in
    select t.token[1]
    from regexp_matches(written, E'\\\\.|["()]|[^"()\\\\]+|.', 'g') with ordinality as t (token, n)
    order by t.n
  loop
    if v_depth = 0 and (v_is_quoted or v_token <> '(') then
      v_is_quoted := v_is_quoted <> (v_token = '"');
      kept := kept || v_token;
      continue;
    end if;
    v_depth := v_depth + case v_token when '(' then 1 when ')' then -1 else 0 end;
    if v_depth = 1 and v_token = '(' then
      v_comment := '';
      kept := kept || ' ';
    elsif v_depth > 0 then
      v_comment := v_comment || case when left(v_token, 1) = E'\\' then right(v_token, 1) else v_token end;
    else
      remark := coalesce(nullif(remark, ''), v_comment);
    end if;
  end loop;
  if v_depth > 0 then
    kept := null;
  end if;
end
$$;

comment on function parley_mail._p_without_comments(text) is
'Gives a text with a blank for each of its comments, and the first comment; kept is null where one has no end.
Source: RFC 5322 section 3.2.2.';

create function parley_mail._p_parsed_mailbox(written text) returns parley_mail._p_mailbox_of
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_open integer := 0;
  v_name text;
  v_path text;
  v_kept text;
  v_remark text;
begin
  if written ~ '[[:cntrl:]]' then
    found := parley_mail._p_raise('control', 'an address');
  end if;
  written := btrim(written);
  v_path := written;
  if right(written, 1) = '>' and strpos(written, '<') > 0 then
    v_open := length(written) - strpos(reverse(written), '<') + 1;
    v_name := btrim(left(written, v_open - 1));
    v_path := substr(written, v_open + 1, length(written) - v_open - 1);
    if v_name ~ '^".*"$' then
      v_name := regexp_replace(substr(v_name, 2, length(v_name) - 2), E'\\\\(.)', E'\\1', 'g');
    end if;
  end if;
  if v_path ~ '[ (]' and parley_mail._p_is_address(v_path) is not true then
    select c.kept, c.remark into v_kept, v_remark from parley_mail._p_without_comments(v_path) as c;
    v_kept := btrim(regexp_replace(v_kept, E'("(?:[^"\\\\]|\\\\.)*")| *([.@]) *', E'\\1\\2', 'g'));
    if parley_mail._p_is_address(v_kept) then
      v_path := v_kept;
      v_name := case when v_open > 0 then v_name else v_remark end;
    end if;
  end if;
  return (nullif(v_name, ''), parley_mail._p_require_address(v_path))::parley_mail._p_mailbox_of;
end
$$;

comment on function parley_mail._p_parsed_mailbox(text) is
'Takes Name <local-part@domain>, "Name" <...> or a bare address apart. A name is whatever stands in front of the last <.
Comments and blanks are legal between the parts of an address, and a comment behind a bare address is its name. The
daemon reads the same over HTTP.
Errors: PM010 malformed, or control characters.
Source: RFC 5322 section 3.4.';

create function parley_mail._p_matches_pattern(pattern text, address text) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_domain constant text := split_part(parley_mail._p_folded(address), '@', -1);
  v_of_pattern constant text := split_part(pattern, '@', -1);
  v_local constant text := left(parley_mail._p_folded(address), -length(v_domain) - 1);
  v_local_pattern text := '*';
begin
  if pattern like '%@%' then
    v_local_pattern := left(pattern, -length(v_of_pattern) - 1);
    v_local_pattern := replace(replace(v_local_pattern, E'\\', E'\\\\'), '%', E'\\%');
    v_local_pattern := replace(replace(v_local_pattern, '_', E'\\_'), '*', '%');
  end if;
  return (
      v_of_pattern = '*' or v_of_pattern = v_domain
      or (left(v_of_pattern, 2) = '*.' and right(v_domain, length(v_of_pattern) - 1) = substr(v_of_pattern, 2))
    )
    and (v_local_pattern = '*' or v_local like v_local_pattern);
end
$$;

comment on function parley_mail._p_matches_pattern(text, text) is
'Reports whether an address matches a pattern: local@domain, where * in the local part stands for any characters and
the domain may be *.d for all below d, or a domain alone.
Arguments: pattern, in lower case; address.';
