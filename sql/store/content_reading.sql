-- How content is read: by who refers to it.
--
-- A generation is truncated when nobody has it locked. read_content plans over all of them, and so locks all to the end
-- of its transaction: for transactions that end soon, as those of a daemon. read_chunks locks the one in which the body
-- stands, for who may stay in his transaction for hours.

create function parley_store.open_content(content_id bigint, system text, holder bigint)
returns table (bytes bigint, chunks integer, chunk_bytes integer, sha256 bytea, body bytea)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select c.bytes, c.chunks, c.chunk_bytes, c.sha256, c.body
  from parley_store._p_content_reference as r
  join parley_store._p_content as c on c.content_id = r.content_id
  where r.content_id = open_content.content_id
    and r.system = open_content.system
    and r.holder = open_content.holder
    and c.begun_until is null;
  if not found then
    found := parley_store._p_raise(
      'content', coalesce(content_id::text, 'null'), coalesce(system, 'null'), coalesce(holder::text, 'null')
    );
  end if;
end
$$;

comment on function parley_store.open_content(bigint, text, bigint) is
'Gives the size and the hash of a body, and the body itself when it is a small one, without chunks.
Arguments: content_id; system and holder, who refers to it.
Errors: PS003 it does not refer to it.';

create function parley_store.read_content(
  content_id bigint, system text, holder bigint, from_number integer default 0, to_number integer default 2147483647
) returns table (number integer, body bytea)
language sql stable
as $$
  select k.number, k.body
  from parley_store._p_content_chunk as k
  where k.content_id operator(pg_catalog.=) $1
    and k.number operator(pg_catalog.>=) $4
    and k.number operator(pg_catalog.<=) $5
    and exists (
      select
      from parley_store._p_content_reference as r
      join parley_store._p_content as c on c.content_id operator(pg_catalog.=) r.content_id
      where r.content_id operator(pg_catalog.=) $1
        and r.system operator(pg_catalog.=) $2
        and r.holder operator(pg_catalog.=) $3
        and c.begun_until is null
    )
  order by k.number
$$;

comment on function parley_store.read_content(bigint, text, bigint, integer, integer) is
'Gives the chunks of a body in their order, one after the other while they are fetched; none to who does not refer to
it.
Arguments: content_id; system and holder, who refers to it; from_number and to_number, the first and the last chunk.';

create function parley_store.read_chunks(
  content_id bigint, system text, holder bigint, from_number integer default 0, to_number integer default 2147483647
) returns table (number integer, body bytea)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_slot smallint;
begin
  select c.slot into v_slot
  from parley_store._p_content_reference as r
  join parley_store._p_content as c on c.content_id = r.content_id
  where r.content_id = read_chunks.content_id and r.system = read_chunks.system and r.holder = read_chunks.holder
    and c.begun_until is null;
  if v_slot is null then
    return;
  end if;
  -- By the name of its table: the planner would lock all partitions.
  return query execute format(
    'select k.number, k.body from parley_store._p_content_chunk_%s as k '
      'where k.content_id = $1 and k.number between $2 and $3 order by k.number', v_slot
  ) using content_id, from_number, to_number;
end
$$;

comment on function parley_store.read_chunks(bigint, text, bigint, integer, integer) is
'Gives what read_content gives, all at once, and locks no other generation than that of the body: for transactions that
may stay open. At an old snapshot chunks that were moved since are not there.
Arguments: those of read_content.';

create view parley_store.contents as
select
  c.content_id, c.bytes, c.chunks, c.sha256, c.created_at, c.begun_until is null as is_finished,
  c.slot as generation
from parley_store._p_content as c;

comment on view parley_store.contents is 'The bodies that are stored, without what is in them.';
