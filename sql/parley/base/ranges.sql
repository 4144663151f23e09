-- Arguments that must lie in a range: numbers in general, how many messages to give, how long to wait.

create function parley._p_require_range(
  name text, value integer, least_value integer, largest_value integer
) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if value is null or value < least_value or value > largest_value then
    found := parley._p_raise(
      8402, 'range', name, coalesce(value::text, 'null'), least_value::text, largest_value::text
    );
  end if;
  return true;
end
$$;

comment on function parley._p_require_range(text, integer, integer, integer) is
'Refuses a number that is out of range, or null.
Errors: 8402.';

create function parley._p_require_interval(
  name text, value interval, least_value interval, largest_value interval
) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if value is null or value < least_value or value > largest_value then
    found := parley._p_raise(
      8402, 'range', name, coalesce(value::text, 'null'), least_value::text, largest_value::text
    );
  end if;
  return true;
end
$$;

comment on function parley._p_require_interval(text, interval, interval, interval) is
'Refuses an interval that is out of range, or null.
Errors: 8402.';

create function parley._p_require_finite(deliver_at timestamptz) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if not isfinite(deliver_at) then
    found := parley._p_raise(8402, 'time of delivery', deliver_at::text);
  end if;
  return true;
end
$$;

comment on function parley._p_require_finite(timestamptz) is
'Gives true when a message can be delivered at a time: one that comes, or null.
Errors: 8402 infinity.';

create function parley._p_require_delay(delay interval) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if delay is not null and not (delay between interval '0' and interval '7 days') then
    found := parley._p_raise(8402, 'range', 'delay', delay::text, '0', '7 days');
  end if;
  return true;
end
$$;

comment on function parley._p_require_delay(interval) is
'Refuses a delay that is negative or longer than 7 days.
Errors: 8402.';

create function parley._p_require_top(top integer) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if top < 0 then
    found := parley._p_raise(127, 'top', top::text);
  end if;
  return true;
end
$$;

comment on function parley._p_require_top(integer) is
'Gives true when a number may be the most to give: from 0 on, or null.
Errors: 127 negative.
Source: TOP of SQL Server.';

create function parley._p_require_timeout(timeout integer) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if timeout < -1 then
    found := parley._p_raise(8402, 'timeout', timeout::text);
  end if;
  return true;
end
$$;

comment on function parley._p_require_timeout(integer) is
'Gives true when a number of milliseconds may be waited: from 0 on, -1 for ever, or null.
Errors: 8402 any other negative number.
Source: spec 4.3, TIMEOUT.';
