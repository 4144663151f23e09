-- Domains in one form, in which they are kept and compared: ASCII, in lower case, other letters as A-labels (RFC 5890).
--
-- The daemon has the same rule (internal/mail/message), and both are tested with one table. It depends on no locale of
-- the database: letters are made lower case by a table of our own, behind NFKC, as UTS 46 does it. Characters that it
-- treats in another way (ignored ones, those that become two letters) are in no domain here: two that seem alike must
-- not be one domain here and two there.
-- Cost: text that is ASCII is folded in line. Other text takes about a millisecond.

create function parley_mail._p_lower_letters(word text) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select string_agg(chr(w.code + coalesce(r.delta, 0)), '' order by w.n)
  from (
    select ascii(c.letter) as code, c.n from regexp_split_to_table(word, '') with ordinality as c (letter, n)
  ) as w
  left join (
    values
      (65, 90, 1, 32),
      (192, 214, 1, 32), (216, 222, 1, 32), (256, 302, 2, 1), (308, 310, 2, 1), (313, 317, 2, 1), (321, 327, 2, 1),
      (330, 374, 2, 1), (376, 376, 1, -121), (377, 381, 2, 1), (385, 385, 1, 210), (386, 388, 2, 1),
      (390, 390, 1, 206), (391, 391, 1, 1), (393, 394, 1, 205), (395, 395, 1, 1), (398, 398, 1, 79),
      (399, 399, 1, 202), (400, 400, 1, 203), (401, 401, 1, 1), (403, 403, 1, 205), (404, 404, 1, 207),
      (406, 406, 1, 211), (407, 407, 1, 209), (408, 408, 1, 1), (412, 412, 1, 211), (413, 413, 1, 213),
      (415, 415, 1, 214), (416, 420, 2, 1), (422, 422, 1, 218), (423, 423, 1, 1), (425, 425, 1, 218),
      (428, 428, 1, 1), (430, 430, 1, 218), (431, 431, 1, 1), (433, 434, 1, 217), (435, 437, 2, 1),
      (439, 439, 1, 219), (440, 440, 1, 1), (444, 444, 1, 1), (461, 475, 2, 1), (478, 494, 2, 1), (500, 500, 1, 1),
      (502, 502, 1, -97), (503, 503, 1, -56), (504, 542, 2, 1), (544, 544, 1, -130), (546, 562, 2, 1),
      (570, 570, 1, 10795), (571, 571, 1, 1), (573, 573, 1, -163), (574, 574, 1, 10792), (577, 577, 1, 1),
      (579, 579, 1, -195), (580, 580, 1, 69), (581, 581, 1, 71), (582, 590, 2, 1), (880, 882, 2, 1),
      (886, 886, 1, 1), (895, 895, 1, 116), (902, 902, 1, 38), (904, 906, 1, 37), (908, 908, 1, 64),
      (910, 911, 1, 63), (913, 929, 1, 32), (931, 939, 1, 32), (975, 975, 1, 8), (984, 1006, 2, 1),
      (1015, 1015, 1, 1), (1018, 1018, 1, 1), (1021, 1023, 1, -130), (1024, 1039, 1, 80), (1040, 1071, 1, 32),
      (1120, 1152, 2, 1), (1162, 1214, 2, 1), (1217, 1229, 2, 1), (1232, 1326, 2, 1), (1329, 1366, 1, 48),
      (4295, 4295, 1, 7264), (4301, 4301, 1, 7264), (7312, 7354, 1, -3008), (7357, 7359, 1, -3008),
      (7680, 7828, 2, 1), (7840, 7934, 2, 1), (7944, 7951, 1, -8), (7960, 7965, 1, -8), (7976, 7983, 1, -8),
      (7992, 7999, 1, -8), (8008, 8013, 1, -8), (8025, 8031, 2, -8), (8040, 8047, 1, -8), (8120, 8121, 1, -8),
      (8122, 8122, 1, -74), (8136, 8138, 2, -86), (8152, 8153, 1, -8), (8154, 8154, 1, -100), (8168, 8169, 1, -8),
      (8170, 8170, 1, -112), (8172, 8172, 1, -7), (8184, 8184, 1, -128), (8186, 8186, 1, -126),
      (11264, 11311, 1, 48), (11360, 11360, 1, 1), (11362, 11362, 1, -10743), (11363, 11363, 1, -3814),
      (11364, 11364, 1, -10727), (11367, 11371, 2, 1), (11373, 11373, 1, -10780), (11374, 11374, 1, -10749),
      (11375, 11375, 1, -10783), (11376, 11376, 1, -10782), (11378, 11378, 1, 1), (11381, 11381, 1, 1),
      (11390, 11391, 1, -10815), (11392, 11490, 2, 1), (11499, 11501, 2, 1), (11506, 11506, 1, 1),
      (42560, 42604, 2, 1), (42624, 42650, 2, 1), (42786, 42798, 2, 1), (42802, 42862, 2, 1), (42873, 42875, 2, 1),
      (42877, 42877, 1, -35332), (42878, 42886, 2, 1), (42891, 42891, 1, 1), (42893, 42893, 1, -42280),
      (42896, 42898, 2, 1), (42902, 42920, 2, 1), (42922, 42922, 1, -42308), (42923, 42923, 1, -42319),
      (42924, 42924, 1, -42315), (42925, 42925, 1, -42305), (42926, 42926, 1, -42308), (42928, 42928, 1, -42258),
      (42929, 42929, 1, -42282), (42930, 42930, 1, -42261), (42931, 42931, 1, 928), (42932, 42946, 2, 1),
      (42948, 42948, 1, -48), (42949, 42949, 1, -42307), (42950, 42950, 1, -35384), (42951, 42953, 2, 1),
      (42960, 42960, 1, 1), (42966, 42968, 2, 1), (42997, 42997, 1, 1), (66560, 66599, 1, 40), (66736, 66771, 1, 40),
      (66928, 66938, 1, 39), (66940, 66954, 1, 39), (66956, 66962, 1, 39), (66964, 66965, 1, 39),
      (68736, 68786, 1, 64), (71840, 71871, 1, 32), (93760, 93791, 1, 32), (125184, 125217, 1, 34)
  ) as r (first, last, step, delta) on w.code between r.first and r.last and (w.code - r.first) % r.step = 0
$$;

comment on function parley_mail._p_lower_letters(text) is
'Makes each letter a small one, by the simple mapping of Unicode 15. The table has what NFKC leaves: first, last, step,
what is added.';

create function parley_mail._p_is_in_domains(word text) returns boolean
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select not exists (
    select
    from regexp_split_to_table(word, '') as c (letter)
    join (
      values
        (173, 173), (304, 304), (837, 837), (847, 847), (890, 890), (1010, 1010), (5112, 5117), (6155, 6157),
        (6159, 6159), (7296, 7304), (7838, 7838), (8064, 8111), (8114, 8116), (8119, 8119), (8124, 8124), (8130, 8132),
        (8135, 8135), (8140, 8140), (8178, 8180), (8183, 8183), (8188, 8188), (8203, 8205), (8288, 8288), (8292, 8292),
        (42994, 42996), (43888, 43967), (65024, 65039), (65279, 65279), (67456, 67514), (113824, 113827),
        (120531, 120531), (120589, 120589), (120647, 120647), (120705, 120705), (120763, 120763), (122928, 122989),
        (917760, 917999)
    ) as r (first, last) on ascii(c.letter) between r.first and r.last
  )
$$;

comment on function parley_mail._p_is_in_domains(text) is
'Reports whether a text has none of the characters that UTS 46 ignores or maps otherwise than by NFKC and lower case,
nor of those whose NFKC is newer than Unicode 13.';

create function parley_mail._p_punycode(label text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_digits constant text := 'abcdefghijklmnopqrstuvwxyz0123456789';
  v_codes integer[] := array(
    select ascii(c.l) from regexp_split_to_table(label, '') with ordinality as c (l, n) order by c.n
  );
  v_written text := regexp_replace(label, E'[^\\x01-\\x7f]', '', 'g');
  v_basic integer := length(v_written);
  v_done integer := length(v_written);
  v_at integer := 128;
  v_next integer;
  v_delta integer := 0;
  v_bias integer := 72;
  v_code integer;
  v_rest integer;
  v_threshold integer;
  v_position integer;
begin
  if v_basic > 0 then
    v_written := v_written || '-';
  end if;
  while v_done < cardinality(v_codes) loop
    select min(c.code) into v_next from unnest(v_codes) as c (code) where c.code >= v_at;
    v_delta := v_delta + (v_next - v_at) * (v_done + 1);
    v_at := v_next;
    foreach v_code in array v_codes loop
      if v_code < v_at then
        v_delta := v_delta + 1;
      elsif v_code = v_at then
        v_rest := v_delta;
        v_position := 36;
        loop
          v_threshold := least(greatest(v_position - v_bias, 1), 26);
          exit when v_rest < v_threshold;
          v_written := v_written
            || substr(v_digits, v_threshold + (v_rest - v_threshold) % (36 - v_threshold) + 1, 1);
          v_rest := (v_rest - v_threshold) / (36 - v_threshold);
          v_position := v_position + 36;
        end loop;
        v_written := v_written || substr(v_digits, v_rest + 1, 1);
        -- The bias for the next one.
        v_delta := case v_done when v_basic then v_delta / 700 else v_delta / 2 end;
        v_done := v_done + 1;
        v_delta := v_delta + v_delta / v_done;
        v_bias := 0;
        while v_delta > 455 loop
          v_delta := v_delta / 35;
          v_bias := v_bias + 36;
        end loop;
        v_bias := v_bias + 36 * v_delta / (v_delta + 38);
        v_delta := 0;
      end if;
    end loop;
    v_delta := v_delta + 1;
    v_at := v_at + 1;
  end loop;
  return v_written;
end
$$;

comment on function parley_mail._p_punycode(text) is
'Writes a label of a domain in letters, digits and hyphens.
Source: RFC 3492.';

create function parley_mail._p_a_labels(domain text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_domain text;
begin
  if octet_length(domain) = length(domain) then
    return lower(domain collate "C");
  elsif getdatabaseencoding() <> 'UTF8' or parley_mail._p_is_in_domains(domain) is not true then
    return null;
  end if;
  -- The full stop of other scripts ends a label too.
  v_domain := replace(normalize(domain, nfkc), chr(12290), '.');
  v_domain := normalize(parley_mail._p_lower_letters(v_domain), nfkc);
  select string_agg(
    case when octet_length(l.label) = length(l.label) then l.label else 'xn--' || parley_mail._p_punycode(l.label) end,
    '.' order by l.n
  ) into v_domain
  from regexp_split_to_table(v_domain, '[.]') with ordinality as l (label, n);
  return case
    when v_domain !~ '[^a-z0-9._-]' and v_domain !~ '(^|[.])([.]|$)' and length(v_domain) <= 255 then v_domain
  end;
end
$$;

comment on function parley_mail._p_a_labels(text) is
'Gives a domain in the form in which domains are compared: ASCII, in lower case; null where it is none.
Source: RFC 5891, UTS 46.';

create function parley_mail._p_folded_idna(written text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_domain constant text := split_part(written, '@', -1);
  v_prefix text := left(written, -length(v_domain));
  v_star constant text := case when v_domain like '*.%' then '*.' else '' end;
begin
  return lower(v_prefix collate "C") || v_star || coalesce(
    parley_mail._p_a_labels(substr(v_domain, length(v_star) + 1)),
    lower(substr(v_domain, length(v_star) + 1) collate "C")
  );
end
$$;

comment on function parley_mail._p_folded_idna(text) is 'Gives what _p_folded gives, for text that is not ASCII.';

create function parley_mail._p_folded(written text) returns text
language sql immutable parallel safe
as $$
  select case
    -- Null takes the short way: the long one walks through the tables of Unicode for it.
    when pg_catalog.octet_length(written) operator(pg_catalog.<>) pg_catalog.length(written)
      then parley_mail._p_folded_idna(written)
    else pg_catalog.lower(written collate pg_catalog."C") collate pg_catalog."default"
  end
$$;

comment on function parley_mail._p_folded(text) is
'Gives an address, a domain or a pattern of either in the form in which it is compared: ASCII letters in lower case, the
domain as A-labels. Other letters of a local part stay as they are: only its host knows whether they are the same.';

create function parley_mail._p_with_a_labels(address text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_domain constant text := split_part(address, '@', -1);
begin
  if octet_length(v_domain) = length(v_domain) then
    return address;
  end if;
  return left(address, -length(v_domain)) || parley_mail._p_a_labels(v_domain);
end
$$;

comment on function parley_mail._p_with_a_labels(text) is
'Gives an address as it was written, with its domain in ASCII; null where that cannot be.';

create function parley_mail._p_domain_patterns(domain text) returns text[]
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_patterns text[] := array[domain];
  v_rest text := domain;
begin
  while strpos(v_rest, '.') > 0 and left(v_rest, 1) <> '[' loop
    v_rest := substr(v_rest, strpos(v_rest, '.') + 1);
    v_patterns := v_patterns || ('*.' || v_rest);
  end loop;
  return v_patterns || '*'::text;
end
$$;

comment on function parley_mail._p_domain_patterns(text) is
'Gives the patterns that fit a domain, the most specific first: a.b.c, *.b.c, *.c, *.';
