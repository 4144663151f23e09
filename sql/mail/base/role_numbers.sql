-- Roles by number in mail. Rows of mail name a role by its number (parley/base/role_numbers.sql), which outlasts a dump
-- and a renaming.

create function parley_mail._p_numbers_named(name text) returns integer[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_numbers integer[];
begin
  if lower(name collate "C") = 'public' then
    return array[0];
  end if;
  v_numbers := array(
    select k.number
    from parley._p_named_role as k
    where k.name = _p_numbers_named.name and k.role is null and k.number <> 0
  );
  if v_numbers = '{}' then
    v_numbers := parley._p_numbers_of(parley_mail._p_role(name));
  end if;
  return v_numbers;
end
$$;

comment on function parley_mail._p_numbers_named(text) is
'Gives the numbers of the role of a name; PUBLIC gives 0. A restored database may have rows of a role that this server
lacks. Its numbers are given too, so that an administrator can take its rights away.
Errors: PM002 no such role.';
