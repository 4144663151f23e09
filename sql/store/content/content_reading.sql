-- How content is read: by who refers to it.
--
-- No more rows are not the end of a body. A reader knows from open_content how many bytes and chunks it has, and fails
-- where it gets others. read_chunks and read_bytes hold that for their callers; a caller that fetches the rows of
-- read_content one by one counts them itself.
--
-- A generation is truncated when nobody has it locked. read_content plans over all of them, and so locks all to the end
-- of its transaction: for transactions that end soon, as those of a daemon. read_chunks locks the one in which the body
-- stands, for readers that may stay in their transaction for hours.

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
it. The caller compares their number and bytes with those of open_content.
Arguments: content_id; system and holder, who refers to it; from_number and to_number, the first and the last chunk.';

create function parley_store.read_chunks(
  content_id bigint, system text, holder bigint, from_number integer default 0, to_number integer default 2147483647
) returns table (number integer, body bytea)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_content record;
  v_wanted bigint;
  v_given bigint;
begin
  select c.slot, c.chunks into v_content
  from parley_store._p_content_reference as r
  join parley_store._p_content as c on c.content_id = r.content_id
  where r.content_id = read_chunks.content_id and r.system = read_chunks.system and r.holder = read_chunks.holder
    and c.begun_until is null;
  if not found then
    found := parley_store._p_raise(
      'content', coalesce(content_id::text, 'null'), coalesce(system, 'null'), coalesce(holder::text, 'null')
    );
  end if;
  v_wanted := least(to_number::bigint, v_content.chunks - 1) - greatest(from_number, 0) + 1;
  if v_wanted <= 0 then
    return;
  end if;
  -- By the name of its table: the planner would lock all partitions.
  return query execute format(
    'select k.number, k.body from parley_store._p_content_chunk_%s as k '
      'where k.content_id = $1 and k.number between $2 and $3 order by k.number', v_content.slot
  ) using content_id, from_number, to_number;
  get diagnostics v_given = row_count;
  if v_given <> v_wanted then
    found := parley_store._p_raise('incomplete', content_id::text, v_given::text, v_wanted::text, 'chunks');
  end if;
end
$$;

comment on function parley_store.read_chunks(bigint, text, bigint, integer, integer) is
'Gives chunks of a body in their order, all of those that are asked for and that the body has, and locks no other
generation than that of the body: for transactions that may stay open.
Arguments: those of read_content.
Errors: PS003 the holder does not refer to it, PS010 chunks are missing.';

create function parley_store.read_bytes(
  content_id bigint, system text, holder bigint, from_byte bigint default 0, bytes bigint default null
) returns bytea
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_content record;
  v_from constant bigint := greatest(coalesce(from_byte, 0), 0);
  v_wanted bigint;
  v_first bigint;
  v_piece bytea;
begin
  select * into v_content from parley_store.open_content(content_id, system, holder) as o;
  v_wanted := greatest(least(coalesce(bytes, v_content.bytes), v_content.bytes - v_from), 0);
  if v_wanted = 0 then
    return ''::bytea;
  elsif v_content.chunks = 0 then
    v_piece := substring(v_content.body from v_from::integer + 1 for v_wanted::integer);
  else
    v_first := v_from / v_content.chunk_bytes;
    select string_agg(k.body, ''::bytea order by k.number) into v_piece
    from parley_store.read_chunks(
      content_id, system, holder, v_first::integer, ((v_from + v_wanted - 1) / v_content.chunk_bytes)::integer
    ) as k;
    if octet_length(v_piece) <> v_wanted then
      v_piece := substring(
        v_piece from (v_from - v_first * v_content.chunk_bytes)::integer + 1 for v_wanted::integer
      );
    end if;
  end if;
  if octet_length(v_piece) is distinct from v_wanted then
    found := parley_store._p_raise(
      'incomplete', content_id::text, coalesce(octet_length(v_piece), 0)::text, v_wanted::text, 'bytes'
    );
  end if;
  return v_piece;
end
$$;

comment on function parley_store.read_bytes(bigint, text, bigint, bigint, bigint) is
'Gives a body, or a piece of it, in one value: never less than the body has.
Arguments: content_id; system and holder, who refers to it; from_byte, where to begin; bytes, how many at most (null:
all to the end).
Errors: PS003 the holder does not refer to it, PS010 bytes are missing.';

create view parley_store.contents as
select
  c.content_id, c.bytes, c.chunks, c.sha256, c.created_at, c.begun_until is null as is_finished,
  c.slot as generation
from parley_store._p_content as c;

comment on view parley_store.contents is 'The bodies that are stored, without what is in them.';
