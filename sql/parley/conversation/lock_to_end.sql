-- The locks of END, for each statement that ends a side of a conversation.
--
-- Locks: the group of this side, then both endpoint rows in the order of their ids; this side's FOR UPDATE, so that no
-- send on it is under way, the far side's FOR NO KEY UPDATE, so that its senders are not held up.

create function parley._p_lock_group_of(endpoint_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_group_id bigint;
begin
  loop
    select e.group_id into v_group_id from parley._p_endpoint as e where e.endpoint_id = _p_lock_group_of.endpoint_id;
    exit when not found;
    perform from parley._p_conversation_group as g where g.group_id = v_group_id for update;
    -- MOVE may have changed the group while we waited. Now it cannot any more (keeps S9).
    exit when exists (
      select from parley._p_endpoint as e where e.endpoint_id = _p_lock_group_of.endpoint_id and e.group_id = v_group_id
    );
  end loop;
end
$$;

comment on function parley._p_lock_group_of(bigint) is
'Locks the group that an endpoint is in, waiting for its holder; does nothing when the endpoint is gone.';

create function parley._p_lock_both_to_end(
  handle uuid, out endpoint parley._p_endpoint, out far parley._p_endpoint
)
language plpgsql
as $$
declare
  v_found record;
  v_locked record;
begin
  loop
    select e.endpoint_id, e.group_id, e.far_endpoint_id into v_found
    from parley._p_endpoint as e
    join parley._p_conversation_group as g on g.group_id operator(pg_catalog.=) e.group_id
    where e.conversation_handle operator(pg_catalog.=) handle
    for update of g;
    if not found then
      endpoint := parley._p_find_endpoint(handle, 'END');
      -- MOVE has left the group empty while we waited for it.
      continue when exists (
        select from parley._p_conversation_group as g
        where g.group_id operator(pg_catalog.=) (endpoint).group_id
      );
      perform from parley._p_endpoint as e where e.endpoint_id operator(pg_catalog.=) (endpoint).endpoint_id for update;
      return;
    end if;
    if v_found.far_endpoint_id operator(pg_catalog.>) v_found.endpoint_id then
      select e as endpoint, f as far into v_locked
      from parley._p_endpoint as e
      join parley._p_endpoint as f on f.endpoint_id operator(pg_catalog.=) e.far_endpoint_id
      where e.endpoint_id operator(pg_catalog.=) v_found.endpoint_id
        and e.group_id operator(pg_catalog.=) v_found.group_id
      for update of e for no key update of f;
    elsif v_found.far_endpoint_id operator(pg_catalog.>) 0::pg_catalog.int8 then
      select e as endpoint, f as far into v_locked
      from parley._p_endpoint as e
      join parley._p_endpoint as f on f.endpoint_id operator(pg_catalog.=) e.far_endpoint_id
      where e.endpoint_id operator(pg_catalog.=) v_found.endpoint_id
        and e.group_id operator(pg_catalog.=) v_found.group_id
      for no key update of f for update of e;
    end if;
    if v_found.far_endpoint_id operator(pg_catalog.>) 0::pg_catalog.int8 and found then
      endpoint := v_locked.endpoint;
      far := v_locked.far;
      return;
    end if;
    -- The far side is in another database, gone, or not made yet.
    select e.* into endpoint
    from parley._p_endpoint as e
    where e.endpoint_id operator(pg_catalog.=) v_found.endpoint_id
      and e.group_id operator(pg_catalog.=) v_found.group_id
      and coalesce(e.far_endpoint_id, 0) operator(pg_catalog.=) coalesce(v_found.far_endpoint_id, 0)
      and not exists (
        select from parley._p_endpoint as f
        where f.endpoint_id operator(pg_catalog.=) v_found.far_endpoint_id
      )
    for update;
    -- While we waited, MOVE may have changed the group, the first send may have made the far side, and that may have
    -- gone. With the locks neither can (keeps S9).
    exit when found;
  end loop;
end
$$;

comment on function parley._p_lock_both_to_end(uuid) is
'Locks a side of a conversation, its group and its far side, in the order that all follow, and gives both sides; far is
null where it is not in this database.
Errors: 8418, 8426, 8427.';

create function parley._p_lock_to_end(handle uuid) returns parley._p_endpoint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return (parley._p_lock_both_to_end(handle)).endpoint;
end
$$;

comment on function parley._p_lock_to_end(uuid) is
'Locks as _p_lock_both_to_end, and gives the side alone.
Errors: 8418, 8426, 8427.';
