-- Arrays that are no body, and no list of bodies.
--
-- A parameter without a type is a text to SEND even if the program wrote an array: what is refused here comes from drivers that say the type, and from SQL.

create function parley.send(conversation_handle uuid, message_type text, body anyarray) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley._p_raise(
    8402,
    format('the body of a message is of type %s, an array', pg_typeof(body)),
    format('It was to be sent on conversation "%s" with message type "%s".', conversation_handle, message_type),
    'For a message each call send_batch, with bytes send_batch_binary, with JSON send_batch_json; for all in one body call send_json with to_jsonb.'
  );
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
    found := parley._p_raise(
      8402,
      format('the list of bodies has %s dimensions', array_ndims(bodies)),
      'A driver makes that of arrays in an array; each member of the inner ones would become a message.',
      'Give one array with a body for each message; for JSON arrays call send_batch_json, each of them as one JSON value.'
    );
  end if;
  return true;
end
$$;

comment on function parley._p_require_one_dimension(anyarray) is
'Gives true for an array that is a list: of one dimension, empty or null.
Errors: 8402 of more dimensions.';
