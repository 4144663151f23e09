-- Bodies that are too large for the row of their message: content of parley_store, of the system mail, whose holder is
-- the number of the message.

create function parley_mail._p_stored_content(message_id bigint, body bytea) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return parley_store.put_body('mail', message_id, body);
end
$$;

comment on function parley_mail._p_stored_content(bigint, bytea) is
'Stores a body of a message, and gives the number of the content.';
