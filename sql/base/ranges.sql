-- Arguments that must lie in a range.

create function parley._p_require_range(name text, value integer, least_value integer, largest_value integer) returns boolean
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
