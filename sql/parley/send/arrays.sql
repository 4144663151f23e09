-- Arrays that are no body, and no list of bodies.
--
-- A parameter without a type is a text to SEND even if the program wrote an array: what is refused here comes from
-- drivers that state the type, and from SQL.

create function parley.send(conversation_handle uuid, message_type text, body anyarray) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley._p_raise(8402, 'array as body', pg_typeof(body)::text, conversation_handle::text, message_type);
end
$$;

comment on function parley.send(uuid, text, anyarray) is
'Refuses an array, which is no body, and says which call takes one.
Errors: 8402, always.';

create function parley._p_require_one_dimension(bodies anyarray) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if array_ndims(bodies) > 1 then
    found := parley._p_raise(8402, 'dimensions', array_ndims(bodies)::text);
  end if;
  return true;
end
$$;

comment on function parley._p_require_one_dimension(anyarray) is
'Gives true for an array that is a list: of one dimension, empty or null.
Errors: 8402 of more dimensions.';

create function parley._p_utf8_bodies(bodies text[]) returns bytea[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley._p_require_one_dimension(bodies);
  return array(
    select convert_to(b.body, 'UTF8') from unnest(bodies) with ordinality as b (body, number) order by b.number
  );
end
$$;

comment on function parley._p_utf8_bodies(text[]) is
'Gives a list of texts as they travel: as UTF-8, in their order; of null an empty list.
Errors: 8402 an array of several dimensions.';
