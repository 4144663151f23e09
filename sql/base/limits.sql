-- What a number of messages and a time to wait may be.

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
