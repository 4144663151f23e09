-- Parameters of an envelope as they are written in the files of the replay folder (spec mail 4.2): coded, without a
-- space, a = or anything beyond ASCII. The database stores their meaning; internal/mail/message reads them.

create function parley_mail._p_xtext(value text) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select replace(replace(replace(value, '+', '+2B'), '=', '+3D'), ' ', '+20') where value ~ '^[ -~]+$'
$$;

comment on function parley_mail._p_xtext(text) is
'Gives a value as xtext; null where it has anything but printable ASCII.
Source: RFC 3461 section 4.';

create function parley_mail._p_original_parameter(original_recipient text) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select o.kind || ';' || case
    when lower(o.kind collate "C") <> 'utf-8' then parley_mail._p_xtext(o.address)
    else (
      select string_agg(
        case
          when c.c ~ '^[!-~]$' and c.c <> all (array['+', '=', E'\\']) then c.c
          else E'\\x{' || case when ascii(c.c) < 16 then '0' else '' end || upper(to_hex(ascii(c.c)) collate "C") || '}'
        end, '' order by c.n
      )
      from regexp_split_to_table(o.address, '') with ordinality as c (c, n)
    )
  end
  from (
    select split_part(original_recipient, ';', 1) as kind,
      substring(original_recipient from strpos(original_recipient, ';') + 1) as address
  ) as o
  where o.kind ~ '^[0-9A-Za-z-]+$' and o.address <> '' and strpos(original_recipient, ';') > 0
$$;

comment on function parley_mail._p_original_parameter(text) is
'Gives an original recipient as the parameter ORCPT has it: of the type utf-8 as utf-8-addr-xtext, of others as xtext;
null where it cannot be written.
Arguments: original_recipient, with its type, such as rfc822;ann@example.com.
Source: RFC 3461 section 4.2, RFC 6533 section 3.';
