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

create function parley._p_lock_to_end(handle uuid) returns parley._p_endpoint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_found record;
  v_endpoint parley._p_endpoint;
begin
  loop
    select e.endpoint_id, e.group_id, e.far_endpoint_id into v_found
    from parley._p_endpoint as e
    join parley._p_conversation_group as g on g.group_id = e.group_id
    where e.conversation_handle = handle
    for update of g;
    if not found then
      v_endpoint := parley._p_find_endpoint(handle, 'END');
      -- MOVE has left the group empty while we waited for it.
      continue when exists (
        select from parley._p_conversation_group as g where g.group_id = v_endpoint.group_id
      );
      perform from parley._p_endpoint as e where e.endpoint_id = v_endpoint.endpoint_id for update;
      return v_endpoint;
    end if;
    if v_found.far_endpoint_id > v_found.endpoint_id then
      select e.* into v_endpoint
      from parley._p_endpoint as e
      join parley._p_endpoint as f on f.endpoint_id = e.far_endpoint_id
      where e.endpoint_id = v_found.endpoint_id and e.group_id = v_found.group_id
      for update of e for no key update of f;
    elsif v_found.far_endpoint_id > 0 then
      select e.* into v_endpoint
      from parley._p_endpoint as e
      join parley._p_endpoint as f on f.endpoint_id = e.far_endpoint_id
      where e.endpoint_id = v_found.endpoint_id and e.group_id = v_found.group_id
      for no key update of f for update of e;
    end if;
    exit when v_found.far_endpoint_id > 0 and found;
    -- The far side is in another database, gone, or not made yet.
    select e.* into v_endpoint
    from parley._p_endpoint as e
    where e.endpoint_id = v_found.endpoint_id
      and e.group_id = v_found.group_id
      and coalesce(e.far_endpoint_id, 0) = coalesce(v_found.far_endpoint_id, 0)
      and not exists (select from parley._p_endpoint as f where f.endpoint_id = v_found.far_endpoint_id)
    for update;
    -- While we waited, MOVE may have changed the group, the first send may have made the far side, and that may have
    -- gone. With the locks neither can (keeps S9).
    exit when found;
  end loop;
  return v_endpoint;
end
$$;

comment on function parley._p_lock_to_end(uuid) is
'Locks a side of a conversation, its group and its far side, in the order that all follow, and gives the side.
Errors: 8418, 8426, 8427.';
