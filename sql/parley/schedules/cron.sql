-- Cron expressions: what the daemon cannot read is refused when the schedule is made, and not found in fault later.
--
-- The grammar is that of internal/cron, and so is what is never due, such as the 31st of February. A test holds the two
-- together. When an expression is due next the daemon alone finds out.
-- No locks. Cost: a millisecond a call; 30 for an expression that is never due.

create function parley._p_is_cron_field(field text, place integer) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_least integer := (array[0, 0, 0, 1, 1, 0, 0])[place];
  v_largest integer := (array[59, 59, 23, 31, 12, 7, 9999])[place];
  v_item text;
  v_parts text[];
begin
  foreach v_item in array string_to_array(field, ',') loop
    continue when v_item in ('*', '?')
      or v_item ~ '^[*0]/0*[1-9][0-9]{0,8}$'
      or (place = 4 and v_item ~ '^(L|[0-9]{1,2}W)$')
      or (place = 6 and v_item ~ '^[0-7](L|#[1-5])$');
    v_parts := regexp_match(v_item, '^([0-9]{1,4})(?:-([0-9]{1,4}))?(?:/(0*[1-9][0-9]{0,8}))?$');
    if v_parts is null
      or v_parts[1]::integer not between v_least and v_largest
      or coalesce(v_parts[2], v_parts[1])::integer not between v_least and v_largest
      or (v_parts[2]::integer < v_parts[1]::integer and not (place = 6 and v_parts[1]::integer = 7)) then
      return false;
    end if;
  end loop;
  return field <> '';
end
$$;

comment on function parley._p_is_cron_field(text, integer) is
'Reports whether a field of a cron expression can be read.
Arguments: field, with numbers in place of names; place, 1 for seconds to 7 for years.';

create function parley._p_cron_fields(expression text) returns text[]
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_text text := upper(btrim(expression, E' \t') collate "C");
  v_names text[] := array['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];
  v_months text[] := array['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];
  v_fields text[];
begin
  if v_text ~ '^@(YEARLY|ANNUALLY|MONTHLY|WEEKLY|DAILY|HOURLY|ALWAYS|EVERYSECOND|(5|10|15|30)MINUTES)$' then
    return array['*', '*', '*', '*', '*', '*', '*'];
  end if;
  for i in 1..7 loop
    v_text := replace(v_text, v_names[i], (i - 1)::text);
  end loop;
  for i in 1..12 loop
    v_text := replace(v_text, v_months[i], i::text);
  end loop;
  v_fields := regexp_split_to_array(v_text, E'\\s+');
  return case
    when cardinality(v_fields) = 5 then array['0'] || v_fields || array['*']
    -- Of six fields the first is of seconds, unless the last is of years.
    when cardinality(v_fields) = 6 and v_fields[6] ~ '[0-9]{4}' then array['0'] || v_fields
    when cardinality(v_fields) = 6 then v_fields || array['*']
  end;
end
$$;

comment on function parley._p_cron_fields(text) is
'Gives the seven fields of a cron expression, seconds to years, with numbers in place of names; for a word such as
@daily those that are always due, null when there are too few or too many.';

create function parley._p_is_cron(expression text) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fields text[] := parley._p_cron_fields(expression);
begin
  for i in 1..coalesce(cardinality(v_fields), 0) loop
    if not parley._p_is_cron_field(v_fields[i], i) then
      return false;
    end if;
  end loop;
  return v_fields is not null;
end
$$;

comment on function parley._p_is_cron(text) is
'Reports whether the daemon can read a cron expression: five fields, six with seconds in front, or a word such as
@daily.';

create function parley._p_cron_numbers(field text, place integer, first_number integer, last_number integer)
returns integer[]
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_numbers integer[] := array[]::integer[];
  v_item text;
  v_parts text[];
  v_begin integer;
  v_end integer;
begin
  foreach v_item in array string_to_array(field, ',') loop
    -- Of an open range with steps Sunday is the first day, and not the last.
    v_parts := regexp_match(v_item, '^([0-9*?]+)(?:-([0-9]+))?(?:/([0-9]+))?$');
    continue when v_parts is null;
    v_begin := case
      when v_parts[1] in ('*', '?') then (array[0, 0, 0, 1, 1, 0, 0])[place]
      when place = 6 and v_parts[1] ~ '^0*7$' and coalesce(v_parts[2], '7') <> '7' then 0
      when place = 6 and v_parts[1] ~ '^0*7$' and v_parts[2] is null and v_parts[3] is not null then 0
      else v_parts[1]::integer
    end;
    v_end := case
      when v_parts[2] is not null then v_parts[2]::integer
      when v_parts[1] not in ('*', '?') and v_parts[3] is null then v_begin
      when place = 6 then 6
      else last_number
    end;
    v_numbers := v_numbers || array(
      select case when place = 6 then n.number % 7 else n.number end
      from generate_series(greatest(v_begin, first_number), least(v_end, last_number)) as n (number)
      where (n.number - v_begin) % coalesce(v_parts[3]::integer, 1) = 0
    );
  end loop;
  return v_numbers;
end
$$;

comment on function parley._p_cron_numbers(text, integer, integer, integer) is
'Gives the numbers at which a field of a cron expression is due; what counts from the end of the month or from weekdays
(L, W, #) is left out.
Arguments: field, one that _p_is_cron_field has read; place; first_number and last_number, among
which numbers.';

create function parley._p_is_cron_day(fields text[], weekdays integer[], days integer[], day date) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_day constant integer := extract(day from day);
  v_weekday constant integer := extract(dow from day);
  v_first constant date := date_trunc('month', day);
  v_last constant integer := extract(day from v_first + interval '1 month' - interval '1 day');
  v_is_day boolean := v_day = any (days);
  v_is_weekday boolean := v_weekday = any (weekdays);
  v_item text;
  v_nearest integer;
begin
  foreach v_item in array string_to_array(fields[4], ',') loop
    if v_item = 'L' then
      v_is_day := v_is_day or v_day = v_last;
    elsif v_item ~ 'W$' and rtrim(v_item, 'W')::integer <= v_last then
      select n.away + rtrim(v_item, 'W')::integer into v_nearest
      from unnest(array[0, -1, 1, -2, 2]) with ordinality as n (away, turn)
      where n.away + rtrim(v_item, 'W')::integer between 1 and v_last
        and extract(isodow from v_first + n.away + rtrim(v_item, 'W')::integer - 1) < 6
      order by n.turn
      limit 1;
      v_is_day := v_is_day or v_day = v_nearest;
    end if;
  end loop;
  foreach v_item in array string_to_array(fields[6], ',') loop
    if v_item ~ 'L$' then
      v_is_weekday := v_is_weekday or v_weekday = rtrim(v_item, 'L')::integer % 7 and v_day > v_last - 7;
    elsif v_item ~ '#' then
      v_is_weekday := v_is_weekday
        or v_weekday = split_part(v_item, '#', 1)::integer % 7
        and (v_day - 1) / 7 + 1 = split_part(v_item, '#', 2)::integer;
    end if;
  end loop;
  return case
    when fields[6] in ('*', '?') then v_is_day
    when fields[6] like '*/%' or fields[4] like '*%' or fields[4] = '?' then v_is_day and v_is_weekday
    else v_is_day or v_is_weekday
  end;
end
$$;

comment on function parley._p_is_cron_day(text[], integer[], integer[], date) is
'Reports whether a cron expression is due on a day of one of its months. Day of the month or day of the week is enough
where both are given, but not beside a step of all.
Arguments: fields of the expression; weekdays and days, the numbers of these fields; day.';

create function parley._p_is_cron_ever_due(expression text, since date) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fields constant text[] := parley._p_cron_fields(expression);
  v_months constant integer[] := parley._p_cron_numbers(v_fields[5], 5, 1, 12);
  v_days constant integer[] := parley._p_cron_numbers(v_fields[4], 4, 1, 31);
  v_weekdays constant integer[] := parley._p_cron_numbers(v_fields[6], 6, 0, 7);
  v_first constant integer := extract(year from since);
  v_year integer;
begin
  -- The calendar comes again after 28 years, once in a century after 40.
  foreach v_year in array parley._p_cron_numbers(v_fields[7], 7, v_first, v_first + 99) loop
    if exists (
      select
      from generate_series(
        greatest(make_date(v_year, 1, 1), since)::timestamp, make_date(v_year, 12, 31)::timestamp, interval '1 day'
      ) as d (day)
      where extract(month from d.day)::integer = any (v_months)
        and parley._p_is_cron_day(v_fields, v_weekdays, v_days, d.day::date)
    ) then
      return true;
    end if;
  end loop;
  return false;
end
$$;

comment on function parley._p_is_cron_ever_due(text, date) is
'Reports whether a cron expression, which the daemon can read, is due on any day within a hundred years.
Arguments: expression; since, the first day.';
