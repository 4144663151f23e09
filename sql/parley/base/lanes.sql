-- Lanes: a queue, or a destination elsewhere, and a priority in one number, so that one index finds what goes first.
--
-- None of them is called by a view that everybody may use, since PostgreSQL asks the caller's right to each
-- function of a view: views/transmission_queue.sql spells them out. No search_path is pinned: the planner puts them
-- in line, and they cost nothing.

create function parley._p_lane(queue_id integer, priority integer) returns integer
language sql immutable parallel safe
as $$
  select queue_id operator(pg_catalog.*) 16 operator(pg_catalog.+) 11 operator(pg_catalog.-) priority
$$;

comment on function parley._p_lane(integer, integer) is
'Gives the lane of a queue for a priority: lanes of one queue in ascending order are priorities 10 to 1.';

create function parley._p_set_aside_lane(queue_id integer) returns integer
language sql immutable parallel safe
as $$
  select parley._p_lane(queue_id, 0)
$$;

comment on function parley._p_set_aside_lane(integer) is
'Gives the lane of a queue for conversations that are set aside, which readers never scan.';

create function parley._p_waiting_lane(queue_id integer) returns integer
language sql immutable parallel safe
as $$
  select queue_id operator(pg_catalog.*) 16 operator(pg_catalog.+) 12
$$;

comment on function parley._p_waiting_lane(integer) is
'Gives the lane of a simple queue for messages that wait for another attempt: behind all others of the queue.';

create function parley._p_owner_of_lane(lane integer) returns integer
language sql immutable parallel safe
as $$
  select lane operator(pg_catalog./) 16
$$;

comment on function parley._p_owner_of_lane(integer) is 'Gives the queue or the destination that a lane belongs to.';
