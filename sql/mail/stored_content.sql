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

create function parley_mail._p_read_stored(content_id bigint, holder bigint, chunks integer default 2147483647)
returns bytea
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce(
    (select o.body from parley_store.open_content(_p_read_stored.content_id, 'mail', holder) as o),
    (
      select string_agg(k.body, '' order by k.number)
      from parley_store.read_chunks(_p_read_stored.content_id, 'mail', holder, 0, chunks - 1) as k
    )
  );
end
$$;

comment on function parley_mail._p_read_stored(bigint, bigint, integer) is
'Gives a body that is content, whole or the first chunks of it. At an old snapshot chunks that were moved since are not
there.
Arguments: content_id; holder, the number under which it is referred to; chunks.
Errors: those of open_content.';
