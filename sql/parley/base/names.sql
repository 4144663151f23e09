-- The rules for the name of a new object, and how names are written into commands.

create function parley._p_name(kind text, name text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if name is null or name = '' or length(name) > 128 then
    found := parley._p_raise(9609, 'length', kind, coalesce(length(name), 0)::text);
  end if;
  return name;
end
$$;

comment on function parley._p_name(text, text) is
'Checks the length of a new name (spec 2.0).
Errors: 9609.';

create function parley._p_shell_word(word text) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case when word ~ '^[[:alnum:]_./:@%+=,-]+$' then word else '''' || replace(word, '''', E'''\\''''') || '''' end
$$;

comment on function parley._p_shell_word(text) is
'Writes a text as one word of a shell, in quotes where it needs them.';
