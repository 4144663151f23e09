-- Bodies that a host streams into the box, before their message is published.

create table parley_flow._p_begun_body (
  content_id bigint primary key,
  message_id bigint not null,
  host_id integer not null,
  begun_at timestamptz not null default clock_timestamp()
);

comment on table parley_flow._p_begun_body is
'Bodies that hosts have begun and no message has yet. message_id: the holder, and the number of the message that gets
it.';

create index _p_begun_body_at on parley_flow._p_begun_body (begun_at);

create function parley_flow._p_begin_body(
  host text, caller parley.caller default parley.current_caller(), out content_id bigint, out chunk_bytes integer
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_host constant parley_flow._p_host := parley_flow._p_require_host(parley.caller_role(caller), host);
  v_message_id constant bigint := nextval('parley_flow._p_message_id');
begin
  chunk_bytes := 524288;
  content_id := (select b.content_id from parley_store.begin_content('flow', v_message_id, chunk_bytes) as b);
  insert into parley_flow._p_begun_body (content_id, message_id, host_id)
  values (_p_begin_body.content_id, v_message_id, v_host.host_id);
end
$$;

comment on function parley_flow._p_begin_body(text, parley.caller) is
'Begins a body of several chunks, for a message that _p_receive publishes within an hour. A body that no message gets is
removed.
Arguments: host; chunk_bytes, how many bytes each chunk has but the last.
Errors: PF001.';

create function parley_flow._p_require_begun(host_id integer, content_id bigint) returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_message_id bigint;
begin
  select b.message_id into v_message_id
  from parley_flow._p_begun_body as b
  where b.content_id = _p_require_begun.content_id and b.host_id = _p_require_begun.host_id;
  if not found then
    found := parley_flow._p_raise('content', coalesce(content_id::text, 'null'));
  end if;
  return v_message_id;
end
$$;

comment on function parley_flow._p_require_begun(integer, bigint) is
'Gives the holder of a body that a host has begun.
Errors: PF006.';

create function parley_flow._p_append_body(
  host text, content_id bigint, number integer, chunk bytea, caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley_flow._p_require_begun(
    (parley_flow._p_require_host(parley.caller_role(caller), host)).host_id, content_id
  );
  perform parley_store.append_content(content_id, number, chunk);
end
$$;

comment on function parley_flow._p_append_body(text, bigint, integer, bytea, parley.caller) is
'Adds a chunk to a body that this host has begun.
Arguments: host; content_id; number, from 0 on; chunk.
Errors: PF001, PF006, PS002, PS003 it is finished.';

create function parley_flow._p_finish_body(
  host text, content_id bigint, bytes bigint, sha256 bytea, caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley_flow._p_require_begun(
    (parley_flow._p_require_host(parley.caller_role(caller), host)).host_id, content_id
  );
  perform parley_store.finish_content(content_id, bytes, sha256);
end
$$;

comment on function parley_flow._p_finish_body(text, bigint, bigint, bytea, parley.caller) is
'Ends a body: its message may be published.
Arguments: host; content_id; bytes and sha256, of the whole body.
Errors: PF001, PF006, PS002, PS003 it is finished, PS004 other bytes are there.';

create function parley_flow._p_drop_begun_bodies() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_holders bigint[];
begin
  with gone as (
    delete from parley_flow._p_begun_body as b
    where b.content_id = any (array(
      select o.content_id
      from parley_flow._p_begun_body as o
      where o.begun_at < clock_timestamp() - interval '2 hours'
      order by o.begun_at
      limit 1000
      for update skip locked
    ))
    returning b.message_id
  )
  select array_agg(g.message_id) into v_holders from gone as g;
  if v_holders is null then
    return 0;
  end if;
  perform parley_store.release_content('flow', v_holders);
  return cardinality(v_holders);
end
$$;

comment on function parley_flow._p_drop_begun_bodies() is
'Removes bodies that no message has got in time; gives how many.';
