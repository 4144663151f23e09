-- Cron expressions: what the daemon cannot read is refused when the schedule is made, and not found in fault later.
--
-- The grammar is that of internal/cron. A test holds the two together.
-- Whether an expression is ever due (the 31st of February) the daemon finds out. No locks. Cost: microseconds a call.

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

create function parley._p_is_cron(expression text) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_text text := upper(btrim(expression, E' \t') collate "C");
  v_names text[] := array['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];
  v_months text[] := array['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];
  v_fields text[];
  v_shift integer := 0;
begin
  if v_text ~ '^@(YEARLY|ANNUALLY|MONTHLY|WEEKLY|DAILY|HOURLY|ALWAYS|EVERYSECOND|(5|10|15|30)MINUTES)$' then
    return true;
  end if;
  for i in 1..7 loop
    v_text := replace(v_text, v_names[i], (i - 1)::text);
  end loop;
  for i in 1..12 loop
    v_text := replace(v_text, v_months[i], i::text);
  end loop;
  v_fields := regexp_split_to_array(v_text, E'\\s+');
  if cardinality(v_fields) not between 5 and 6 then
    return false;
  end if;
  -- Of six fields the first is of seconds, unless the last is of years.
  if cardinality(v_fields) = 5 or v_fields[6] ~ '[0-9]{4}' then
    v_shift := 1;
  end if;
  for i in 1..cardinality(v_fields) loop
    if not parley._p_is_cron_field(v_fields[i], i + v_shift) then
      return false;
    end if;
  end loop;
  return true;
end
$$;

comment on function parley._p_is_cron(text) is
'Reports whether the daemon can read a cron expression: five fields, six with seconds in front, or a word such as
@daily.';
