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

create function parley_mail._p_read_stored(content_id bigint, holder bigint, bytes bigint default null) returns bytea
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return parley_store.read_bytes(content_id, 'mail', holder, 0, bytes);
end
$$;

comment on function parley_mail._p_read_stored(bigint, bigint, bigint) is
'Gives a body that is content, whole or the first bytes of it.
Arguments: content_id; holder, the number under which it is referred to; bytes, how many at most: null, all.
Errors: PS003, PS010 bytes of it are missing.';
