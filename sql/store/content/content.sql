-- Content: immutable bodies, in chunks, stored once however many refer to them.
--
-- A body of up to 8,000 bytes stands in its row of _p_content. A larger one stands in chunks, rows of
-- _p_content_chunk, each of chunk_bytes but the last, numbered from 0; they are stored outside of the row and not
-- compressed, because what arrives is encoded already and a part of it is read without the rest.
--
-- Invariants, and what keeps each:
--   a body is read by who refers to it   each reading function joins the reference; null refers to nothing
--   a body that is referred to stays   share_content locks its row for key share, whoever removes it for update, and
--     reads the references in a statement after that
--   a body that nobody refers to goes   release_content removes it unless another transaction has it in its hands;
--     collect_content walks over the rest
--   a body that was begun and not finished goes   its time, begun_until
--   writers do not wait for each other   each inserts rows of its own, references are rows too
-- Chunks stand in generations (content_generations.sql), and are not deleted one by one.
-- Locks: rows of _p_content, in the order of content_id; for update always skip locked.
-- Cost: two rows for a small body, one more for each chunk.

create sequence parley_store._p_content_id cache 16;

create table parley_store._p_content (
  content_id bigint primary key default nextval('parley_store._p_content_id'),
  slot smallint,
  bytes bigint,
  chunks integer not null default 0,
  chunk_bytes integer,
  sha256 bytea,
  created_at timestamptz not null default clock_timestamp(),
  begun_until timestamptz,
  body bytea
) with (toast_tuple_target = 8160);

comment on table parley_store._p_content is
'Bodies. Small ones stand here, of others the size, the hash and where the chunks are.';
comment on column parley_store._p_content.slot is 'The generation that has the chunks; null when there are none.';
comment on column parley_store._p_content.begun_until is 'Until when it may be finished; null when it is.';

alter table parley_store._p_content alter column body set storage external;

create index on parley_store._p_content (slot) where slot is not null;
create index on parley_store._p_content (begun_until) where begun_until is not null;

create table parley_store._p_content_reference (
  content_id bigint not null,
  system text not null,
  holder bigint not null,
  primary key (system, holder, content_id)
);

comment on table parley_store._p_content_reference is
'A reference to a body: a system, and a number of its own.';

create index on parley_store._p_content_reference (content_id);

create table parley_store._p_content_chunk (
  content_id bigint not null,
  number integer not null,
  slot smallint not null,
  body bytea not null,
  primary key (content_id, number, slot)
) partition by list (slot);

comment on table parley_store._p_content_chunk is 'The chunks of bodies, by generation.';

alter table parley_store._p_content_chunk alter column body set storage external;

create function parley_store._p_require_holder(system text, holder bigint) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if holder is null then
    found := parley_store._p_raise('missing', 'holder');
  end if;
  found := parley_store._p_queue_of(system) is not null;
  return true;
end
$$;

comment on function parley_store._p_require_holder(text, bigint) is
'Refuses who cannot refer to a body.
Errors: PS001, PS002.';

create function parley_store.begin_content(
  system text, holder bigint, chunk_bytes integer default 524288, term interval default '1 hour'
) returns table (content_id bigint, slot smallint)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_slot smallint := parley_store._p_current_slot();
  v_id bigint;
begin
  found := parley_store._p_require_holder(system, holder);
  found := parley_store._p_require_range('chunk_bytes', chunk_bytes, 1024, 16777216);
  found := parley_store._p_require_range('term', term, '1 second', '7 days');
  insert into parley_store._p_content as c (slot, chunk_bytes, begun_until)
  values (v_slot, begin_content.chunk_bytes, clock_timestamp() + term)
  returning c.content_id into v_id;
  insert into parley_store._p_content_reference (content_id, system, holder)
  values (v_id, begin_content.system, begin_content.holder);
  return query select v_id, v_slot;
end
$$;

comment on function parley_store.begin_content(text, bigint, integer, interval) is
'Begins a body of several chunks, to which a holder refers from then on. Its chunks follow by append_content, in
this transaction or in others, and finish_content ends it.
A body that is not finished within the term is removed.
Arguments: system; holder, a number of the system''s own; chunk_bytes, 1 KB to 16 MB; term, 1 second to 7 days.
Errors: PS001, PS002.
Source: spec hub-transport 13.';

create function parley_store.append_content(content_id bigint, number integer, body bytea) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_content parley_store._p_content;
begin
  select * into v_content
  from parley_store._p_content as c
  where c.content_id = append_content.content_id and c.begun_until is not null
  for key share;
  if not found then
    found := parley_store._p_raise('begun', coalesce(content_id::text, 'null'));
  end if;
  found := parley_store._p_require_range('bytes', octet_length(body), 1, v_content.chunk_bytes);
  insert into parley_store._p_content_chunk (content_id, number, slot, body)
  values (v_content.content_id, append_content.number, v_content.slot, append_content.body);
end
$$;

comment on function parley_store.append_content(bigint, integer, bytea) is
'Adds a chunk to a body that was begun. A chunk of the same number twice is a unique violation.
Arguments: content_id; number, from 0 on; body, of chunk_bytes, the last may be shorter.
Errors: PS002, PS003 it is not being written.';

create function parley_store.finish_content(content_id bigint, bytes bigint, sha256 bytea) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_content parley_store._p_content;
  v_there record;
begin
  select * into v_content
  from parley_store._p_content as c
  where c.content_id = finish_content.content_id and c.begun_until is not null
  for update;
  if not found then
    found := parley_store._p_raise('begun', coalesce(content_id::text, 'null'));
  end if;
  found := parley_store._p_require_range('bytes of sha256', octet_length(sha256), 32, 32);
  -- The length of what is stored outside of the row is known without reading it.
  select
    count(*)::integer as chunks, coalesce(sum(octet_length(k.body)), 0) as bytes, coalesce(max(k.number), -1) as last,
    bool_and(
      octet_length(k.body) = v_content.chunk_bytes
      or (k.number + 1)::bigint * v_content.chunk_bytes >= finish_content.bytes
    ) as are_whole
  into v_there
  from parley_store._p_content_chunk as k
  where k.content_id = v_content.content_id;
  if v_there.bytes is distinct from bytes or v_there.last <> v_there.chunks - 1 or v_there.are_whole is false then
    found := parley_store._p_raise(
      'size', content_id::text, v_there.bytes::text, v_there.chunks::text, coalesce(bytes::text, 'null')
    );
  end if;
  update parley_store._p_content as c
  set bytes = v_there.bytes, chunks = v_there.chunks, sha256 = finish_content.sha256, begun_until = null,
    created_at = clock_timestamp()
  where c.content_id = v_content.content_id;
end
$$;

comment on function parley_store.finish_content(bigint, bigint, bytea) is
'Ends a body that was begun: from now on it can be read, and does not change.
Arguments: content_id; bytes, how many there are; sha256, their hash, as whoever wrote them has computed it.
Errors: PS002, PS003 it is not being written, PS004 other bytes or chunks are there.';

create function parley_store.put_content(system text, holders bigint[], bodies bytea[]) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids bigint[];
  v_slot smallint;
begin
  found := parley_store._p_require_holder(system, case when array_position(holders, null) is null then 0 end);
  if cardinality(holders) is distinct from cardinality(bodies) or cardinality(bodies) is null then
    found := parley_store._p_raise(
      'lengths', 'holders', coalesce(cardinality(holders)::text, 'null'), 'bodies',
      coalesce(cardinality(bodies)::text, 'null')
    );
  end if;
  select array_agg(nextval('parley_store._p_content_id') order by g.n) into v_ids
  from generate_series(1, cardinality(bodies)) as g (n);
  if array_position(bodies, null) is not null then
    found := parley_store._p_raise('missing', 'body');
  end if;
  if exists (select from unnest(bodies) as b (body) where octet_length(b.body) > 8000) then
    v_slot := parley_store._p_current_slot();
  end if;
  insert into parley_store._p_content (content_id, slot, bytes, chunks, chunk_bytes, sha256, body)
  select
    v_ids[b.n], case when l.is_large then v_slot end, octet_length(b.body),
    case when l.is_large then (octet_length(b.body) + 524287) / 524288 else 0 end, case when l.is_large then 524288 end,
    sha256(b.body), case when not l.is_large then b.body end
  from unnest(bodies) with ordinality as b (body, n)
  cross join lateral (select octet_length(b.body) > 8000 as is_large) as l;
  if v_slot is not null then
    insert into parley_store._p_content_chunk (content_id, number, slot, body)
    select
      v_ids[b.n], k.n, v_slot,
      case when octet_length(b.body) <= 524288 then b.body else substr(b.body, k.n * 524288 + 1, 524288) end
    from unnest(bodies) with ordinality as b (body, n)
    cross join generate_series(0, (octet_length(b.body) - 1) / 524288) as k (n)
    where octet_length(b.body) > 8000;
  end if;
  insert into parley_store._p_content_reference (content_id, system, holder)
  select i.content_id, put_content.system, i.holder
  from unnest(v_ids, holders) as i (content_id, holder);
  return coalesce(v_ids, '{}');
end
$$;

comment on function parley_store.put_content(text, bigint[], bytea[]) is
'Stores whole bodies, each with one that refers to it, and gives their numbers in the order of the arrays. For bodies
that are in memory anyway; others are streamed: begin_content.
Arguments: system; holders, one for each body; bodies, of any size.
Errors: PS001, PS002.
Source: spec hub-transport 13.';

create function parley_store.put_body(system text, holder bigint, body bytea) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_chunk_bytes constant integer := 524288;
  v_bytes constant integer := octet_length(body);
  v_chunks constant integer := case when v_bytes > 8000 then (v_bytes + v_chunk_bytes - 1) / v_chunk_bytes else 0 end;
  v_slot smallint;
  v_id bigint;
begin
  found := parley_store._p_require_holder(system, holder);
  if body is null then
    found := parley_store._p_raise('missing', 'body');
  end if;
  if v_chunks > 0 then
    v_slot := parley_store._p_current_slot();
  end if;
  insert into parley_store._p_content as c (slot, bytes, chunks, chunk_bytes, sha256, body)
  values (
    v_slot, v_bytes, v_chunks, case when v_chunks > 0 then v_chunk_bytes end, sha256(put_body.body),
    case when v_chunks = 0 then put_body.body end
  )
  returning c.content_id into v_id;
  for n in 0..v_chunks - 1 loop
    insert into parley_store._p_content_chunk (content_id, number, slot, body)
    values (v_id, n, v_slot, substr(put_body.body, n * v_chunk_bytes + 1, v_chunk_bytes));
  end loop;
  insert into parley_store._p_content_reference (content_id, system, holder)
  values (v_id, put_body.system, put_body.holder);
  return v_id;
end
$$;

comment on function parley_store.put_body(text, bigint, bytea) is
'Stores one whole body, to which a holder refers, and gives its number. Of a large one it makes fewer copies than
put_content.
Arguments: system; holder; body, of any size.
Errors: PS001, PS002.
Source: spec hub-transport 13.';

create function parley_store.share_content(content_id bigint, system text, holder bigint, new_holder bigint)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_store._p_require_holder(system, new_holder);
  perform
  from parley_store._p_content as c
  join parley_store._p_content_reference as r on r.content_id = c.content_id
  where c.content_id = share_content.content_id and r.system = share_content.system and r.holder = share_content.holder
  for key share of c;
  if not found then
    found := parley_store._p_raise(
      'content', coalesce(content_id::text, 'null'), coalesce(system, 'null'), coalesce(holder::text, 'null')
    );
  end if;
  insert into parley_store._p_content_reference (content_id, system, holder)
  values (share_content.content_id, share_content.system, share_content.new_holder)
  on conflict do nothing;
end
$$;

comment on function parley_store.share_content(bigint, text, bigint, bigint) is
'Lets a further holder of the same system refer to a body. It waits for nobody who writes or shares.
Arguments: content_id; system; holder, who refers to it already; new_holder.
Errors: PS001, PS002, PS003 the holder does not refer to it.';

create function parley_store.release_content(system text, holders bigint[]) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_released bigint[];
  v_locked bigint[];
  v_removed integer;
begin
  found := parley_store._p_queue_of(system) is not null;
  with released as (
    delete from parley_store._p_content_reference as r
    where r.system = release_content.system and r.holder = any (release_content.holders)
    returning r.content_id
  )
  select array_agg(distinct r.content_id) into v_released from released as r;
  -- An old snapshot does not see who refers to it since.
  if not parley_store._p_sees_all() then
    return 0;
  end if;
  select array_agg(c.content_id) into v_locked
  from (
    select o.content_id
    from parley_store._p_content as o
    where o.content_id = any (v_released)
    order by o.content_id
    for update skip locked
  ) as c;
  v_removed := parley_store._p_remove_unreferenced(v_locked);
  return v_removed;
end
$$;

comment on function parley_store.release_content(text, bigint[]) is
'Ends all references of some holders, and removes the bodies to which nobody refers any more; gives how many. One that
another transaction has in its hands is removed by collect_content.
Arguments: system; holders.
Errors: PS001.';

create function parley_store._p_remove_unreferenced(locked bigint[]) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_removed integer;
begin
  with removed as (
    delete from parley_store._p_content as c
    where c.content_id = any (locked)
      and not exists (select from parley_store._p_content_reference as r where r.content_id = c.content_id)
    returning c.content_id, c.slot
  ),

  -- Those of a generation go with it; the long-lived ones are nobody's business but ours.
  chunks as (
    delete from parley_store._p_content_chunk as k
    using removed as r
    where k.slot = 0 and r.slot = 0 and k.content_id = r.content_id
  )

  select count(*)::integer into v_removed from removed as r;
  return v_removed;
end
$$;

comment on function parley_store._p_remove_unreferenced(bigint[]) is
'Removes those of some bodies, whose rows the caller has locked in a statement before, to which nobody refers.';
