-- Conditions on any property that operators see (spec mail 17): equals, not, contains, greater, less.
--
-- A filter has, by the name of a column, a value, or an object of comparisons, such as {"size": {"greater": "100 kB",
-- "less": 1000000}, "reason": {"contains": "hold"}}. Nothing of a filter becomes part of a statement: a row is compared
-- as JSON, by the type that the column has. A value that no name of a closed set could equal is refused: it would
-- choose nothing, as if there were nothing.

create type parley_mail._p_condition as (
  property text,
  comparison text,
  pattern text,
  number numeric,
  moment timestamptz,
  patterns text[]
);

comment on type parley_mail._p_condition is
'A comparison with a property: of texts by pattern, in lower case, which is one of LIKE unless it is greater or less; of
numbers; or of times. patterns: it is like one of them.';

create function parley_mail._p_bytes(written text) returns bigint
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  -- PostgreSQL 14 and 15 do not know B.
  select pg_size_bytes(regexp_replace(written, '^([-+.0-9e ]*)b *$', E'\\1', 'i'))
$$;

comment on function parley_mail._p_bytes(text) is
'Gives how many bytes a size is that is written as PostgreSQL does (10 kB) or as Exchange (10KB, 512B); a number is
bytes.';

create function parley_mail._p_require_known(property text, value text, pattern text, known jsonb) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if not exists (
    select from jsonb_array_elements_text(known) as k (name) where lower(k.name) like pattern escape '!'
  ) then
    found := parley_mail._p_raise('choice', property, value, (
      select string_agg(k.name, ', ' order by k.n) from jsonb_array_elements_text(known) with ordinality as k (name, n)
    ));
  end if;
  return true;
end
$$;

comment on function parley_mail._p_require_known(text, text, text, jsonb) is
'Refuses a text that none of the names of a closed set is like, and lists them.
Arguments: property; value, as it was given; pattern of it, as _p_like makes it; known, the names.
Errors: PM010.';

create function parley_mail._p_parsed_conditions(filter jsonb, properties jsonb) returns parley_mail._p_condition[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_known constant text[] := array['equals', 'not', 'contains', 'greater', 'less'];
  v_condition parley_mail._p_condition;
  v_conditions parley_mail._p_condition[];
  v_given record;
  v_text text;
  v_one text;
begin
  for v_given in
    select f.key as property, c.key as comparison, c.value, properties ->> f.key as type
    from jsonb_each(filter) as f
    cross join lateral jsonb_each(
      case jsonb_typeof(f.value) when 'object' then f.value else jsonb_build_object('equals', f.value) end
    ) as c
    where properties ? f.key
    order by f.key, c.key
  loop
    v_text := v_given.value #>> '{}';
    if v_given.comparison <> all (v_known)
      or v_given.comparison = 'contains' and v_given.type in ('number', 'size', 'time') then
      found := parley_mail._p_raise(
        'choice', v_given.property, v_given.comparison, 'equals, not, greater, less, and of texts contains'
      );
    elsif jsonb_typeof(v_given.value) = 'array' and v_given.value <> '[]' and v_given.comparison in ('equals', 'not')
      and v_given.type not in ('number', 'size', 'time') then
      v_condition := (v_given.property, v_given.comparison, null, null, null, '{}')::parley_mail._p_condition;
      foreach v_one in array parley_mail._p_listed(v_given.value) loop
        v_condition.patterns := v_condition.patterns || coalesce(parley_mail._p_like(v_one), '');
        if v_given.type like '[%' then
          found := parley_mail._p_require_known(
            v_given.property, coalesce(v_one, 'null'), parley_mail._p_like(coalesce(v_one, '')), v_given.type::jsonb
          );
        end if;
      end loop;
      v_conditions := v_conditions || v_condition;
      continue;
    elsif jsonb_typeof(v_given.value) not in ('string', 'number', 'boolean') then
      found := parley_mail._p_raise(
        'filter value', format(
          '%s is compared with %s; a list is for texts that it may equal.', v_given.property,
          jsonb_typeof(v_given.value)
        )
      );
    end if;
    v_condition := (v_given.property, v_given.comparison, null, null, null, null)::parley_mail._p_condition;
    begin
      case v_given.type
        when 'number' then
          v_condition.number := v_text::numeric;
        when 'size' then
          v_condition.number := parley_mail._p_bytes(v_text);
        when 'time' then
          v_condition.moment := v_text::timestamptz;
        else
          v_condition.pattern := case
            when v_given.comparison in ('greater', 'less') then lower(v_text)
            when v_given.comparison = 'contains' then '%' || parley_mail._p_like(v_text) || '%'
            else parley_mail._p_like(v_text)
          end;
      end case;
    exception
      when data_exception then
        found := parley_mail._p_raise('filter value', sqlerrm);
    end;
    if v_given.type like '[%' and v_given.comparison not in ('greater', 'less') then
      found := parley_mail._p_require_known(v_given.property, v_text, v_condition.pattern, v_given.type::jsonb);
    end if;
    v_conditions := v_conditions || v_condition;
  end loop;
  return v_conditions;
end
$$;

comment on function parley_mail._p_parsed_conditions(jsonb, jsonb) is
'Reads the conditions of a filter on properties; null: there is none.
Arguments: filter; properties, the type of each: text, number, size (a number that may have a unit), time, or a list of
the only texts that there are. A name that is no property is passed over.
Errors: PM010 no such comparison, a value that is not of the type.';

create function parley_mail._p_fulfilled(shown jsonb, conditions parley_mail._p_condition[]) returns integer
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select count(*)::integer
  from unnest(conditions) as c
  cross join lateral (select shown ->> c.property as text) as v
  where case
    when c.patterns is not null then (c.comparison = 'not') <> exists (
      select from unnest(c.patterns) as p (pattern) where lower(coalesce(v.text, '')) like p.pattern escape '!'
    )
    when c.pattern is not null then case c.comparison
      when 'not' then lower(coalesce(v.text, '')) not like c.pattern escape '!'
      when 'greater' then lower(v.text) collate "C" > c.pattern collate "C"
      when 'less' then lower(v.text) collate "C" < c.pattern collate "C"
      else lower(coalesce(v.text, '')) like c.pattern escape '!'
    end
    when c.number is not null then case c.comparison
      when 'not' then v.text::numeric is distinct from c.number
      when 'greater' then v.text::numeric > c.number
      when 'less' then v.text::numeric < c.number
      else v.text::numeric = c.number
    end
    else case c.comparison
      when 'not' then v.text::timestamptz is distinct from c.moment
      when 'greater' then v.text::timestamptz > c.moment
      when 'less' then v.text::timestamptz < c.moment
      else v.text::timestamptz = c.moment
    end
  end
$$;

comment on function parley_mail._p_fulfilled(jsonb, parley_mail._p_condition[]) is
'Gives how many of the conditions a row fulfils. A missing value equals no number and no time, and as a text is empty.
Arguments: shown, the properties of the row; conditions.';

create function parley_mail._p_is_chosen(
  shown jsonb, wanted parley_mail._p_condition[], unwanted parley_mail._p_condition[]
) returns boolean
language plpgsql stable cost 10000
set search_path = pg_catalog, pg_temp
as $$
begin
  return (wanted is null or parley_mail._p_fulfilled(shown, wanted) = cardinality(wanted))
    and (unwanted is null or parley_mail._p_fulfilled(shown, unwanted) = 0);
end
$$;

comment on function parley_mail._p_is_chosen(jsonb, parley_mail._p_condition[], parley_mail._p_condition[]) is
'Gives whether a row fulfils all conditions that are wanted and none that is unwanted.
Arguments: shown, the properties of the row; wanted and unwanted (null: there is none).';
