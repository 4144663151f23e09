-- In which order lists of messages and queues come (spec mail 17): by one of the columns by which a filter chooses.
--
-- As with conditions, nothing of what was given becomes part of a statement: a row is read as JSON, by the type that
-- the column has.

create type parley_mail._p_sort as (
  property text,
  type jsonb,
  is_descending boolean
);

comment on type parley_mail._p_sort is 'A column to sort by, with its type as _p_parsed_conditions has it.';

create function parley_mail._p_parsed_sort(sort text, after text, properties jsonb) returns parley_mail._p_sort
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_parts constant text[] := regexp_match(sort, '^ *([a-z_]+) *(?:: *(asc|desc) *)?$', 'i');
  v_sort parley_mail._p_sort;
begin
  if sort is null then
    return null;
  elsif after is not null then
    found := parley_mail._p_raise('sorted page', after);
  end if;
  v_sort.property := lower(v_parts[1] collate "C");
  v_sort.type := properties -> v_sort.property;
  v_sort.is_descending := coalesce(lower(v_parts[2] collate "C") = 'desc', false);
  if v_sort.type is null then
    found := parley_mail._p_raise('sort', sort, (
      select string_agg(p.name, ', ' order by p.name) from jsonb_object_keys(properties) as p (name)
    ));
  end if;
  return v_sort;
end
$$;

comment on function parley_mail._p_parsed_sort(text, text, jsonb) is
'Reads by what to sort; null where nothing is given.
Arguments: sort, a column, and :asc or :desc; after, a bookmark, which a sorted list cannot begin behind; properties,
the columns with their types.
Errors: PM010 no such column, a bookmark.';

create function parley_mail._p_sort_number(shown jsonb, sort parley_mail._p_sort) returns numeric
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case when sort.is_descending then -1 else 1 end * case
    when jsonb_typeof(sort.type) = 'array' then (
      select k.n
      from jsonb_array_elements_text(sort.type) with ordinality as k (name, n)
      where k.name = shown ->> sort.property
    )
    when sort.type = '"time"' then extract(epoch from (shown ->> sort.property)::timestamptz)
    when sort.type <> '"text"' then (shown ->> sort.property)::numeric
  end
$$;

comment on function parley_mail._p_sort_number(jsonb, parley_mail._p_sort) is
'Gives the place of a row among others by a number, a time or a name of a closed set, the first of which is the least;
null where it is a text or missing.
Arguments: shown, the properties of the row; sort.';

create function parley_mail._p_sort_text(shown jsonb, sort parley_mail._p_sort, is_descending boolean) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select lower(shown ->> sort.property)
  where sort.type = '"text"' and sort.is_descending = _p_sort_text.is_descending
$$;

comment on function parley_mail._p_sort_text(jsonb, parley_mail._p_sort, boolean) is
'Gives the text by which a row is sorted, in lower case; null where it is no text, or sorted in the other direction.
Arguments: shown, the properties of the row; sort; is_descending, the direction.';
