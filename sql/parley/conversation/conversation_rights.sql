-- The roles that may work on a conversation, and those that may read about it (spec 7.7).

create function parley._p_require_conversation_owner(caller oid, endpoint parley._p_endpoint, what text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue;
begin
  if pg_has_role(caller, endpoint.owner, 'usage') then
    return true;
  end if;
  -- A role that may receive from the queue does the work of the service; it must be able to finish it.
  select q.* into v_queue
  from parley._p_service as s
  join parley._p_queue as q using (queue_id)
  where s.service_id = endpoint.service_id;
  if parley._p_has_permission(caller, 'RECEIVE', 'queue', v_queue.queue_id, v_queue.owner) is not true then
    found := parley._p_raise(
      229, 'conversation', what, endpoint.owner::regrole::text, pg_get_userbyid(caller), v_queue.lookup_name
    );
  end if;
  return true;
end
$$;

comment on function parley._p_require_conversation_owner(oid, parley._p_endpoint, text) is
'Refuses callers that neither own a conversation nor read its queue (spec 7.7 and docs/reference/differences.md).
Errors: 229.';

create function parley._p_may_see_conversation(caller oid, endpoint parley._p_endpoint) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select pg_has_role(caller, endpoint.owner, 'usage')
    or coalesce((
      select parley._p_has_permission(caller, 'RECEIVE', 'queue', q.queue_id, q.owner)
      from parley._p_service as s
      join parley._p_queue as q using (queue_id)
      where s.service_id = endpoint.service_id
    ), parley._p_is_administrator(caller))
$$;

comment on function parley._p_may_see_conversation(oid, parley._p_endpoint) is
'Reports whether the caller may see a side of a conversation: its owner, whoever may RECEIVE
from its queue, administrators.';
