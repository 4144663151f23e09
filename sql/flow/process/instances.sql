-- Rows that belong to instances besides their waits: events that they have not taken, timers, activities, messages that
-- they hold; and how an instance is woken, and ends.
--
-- A message that an instance cannot take yet is an event of it: it is in no lane, and holds up nothing. Its delivery is
-- open until the instance has taken it, or is over.
--
-- Invariants, and what keeps each:
--   what an instance has not read has a fate   the transaction that ends the instance, under the lock of its row,
--     decides about its events; a delivery that comes later finds no instance, and is decided about when it is claimed
--   an instance is woken for what is new   whoever makes an event or lets a timer fire puts an item, in one transaction
-- Locks: rows of _p_instance, by number, before leases and lanes of the store.

create table parley_flow._p_instance_event (
  event_id bigint generated always as identity primary key,
  instance_id bigint not null,
  kind text not null check (kind in ('ACTIVATED', 'STARTED', 'RECEIVED', 'RESUMED')),
  message_id bigint,
  receive text,
  data text,
  came_by text,
  at timestamptz not null default clock_timestamp()
);

comment on table parley_flow._p_instance_event is
'Events that instances have not taken: messages in their order, starts, and operators who resume. receive: of ACTIVATED;
data: parameters of STARTED; came_by: the key of the lane in which the message came, whose first letter says whether it
was decided about by an instance (i), a convoy (k) or neither (null).';

create index _p_instance_event_instance on parley_flow._p_instance_event (instance_id, event_id);
create index _p_instance_event_message on parley_flow._p_instance_event (message_id) where message_id is not null;

create table parley_flow._p_instance_timer (
  instance_id bigint not null,
  timer text not null,
  host_id integer not null,
  at timestamptz not null,
  is_woken boolean not null default false,
  primary key (instance_id, timer)
);

comment on table parley_flow._p_instance_timer is
'Times at which instances go on. timer: its name within the instance, '''' for the next attempt of a step that failed;
is_woken: its time has come and the instance is woken.';

create index _p_instance_timer_due on parley_flow._p_instance_timer (host_id, at) where not is_woken;

create table parley_flow._p_instance_activity (
  activity text primary key,
  instance_id bigint not null,
  host_id integer not null,
  name text not null,
  queue text not null,
  input text,
  time_out interval,
  attempt integer not null default 1,
  attempts integer not null default 1,
  asked_at timestamptz not null default clock_timestamp(),
  due_at timestamptz,
  done_at timestamptz,
  result text,
  error text
);

comment on table parley_flow._p_instance_activity is
'Work of which workers have not told the outcome, or whose outcome the instance has not taken. activity: a name that
nobody can guess, which the worker gets with the message; due_at: until when it has to be done or renewed, null: for
ever; error: of the last attempt that failed.';

create index _p_instance_activity_instance on parley_flow._p_instance_activity (instance_id);
create index _p_instance_activity_due on parley_flow._p_instance_activity (host_id, due_at)
  where due_at is not null and done_at is null;

create table parley_flow._p_instance_hold (
  instance_id bigint not null,
  message_id bigint not null,
  primary key (instance_id, message_id)
);

comment on table parley_flow._p_instance_hold is
'Messages that instances have taken and whose bodies they still need: their deliveries are open as long.';

create index _p_instance_hold_message on parley_flow._p_instance_hold (message_id);

create function parley_flow._p_wake_instances(instances bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_target record;
begin
  for v_target in
    select h.system, s.item_priority,
      array_agg(parley_flow._p_lane_of_instance(s.name, k.key) order by i.instance_id) as lanes,
      array_agg(-i.instance_id order by i.instance_id) as subjects,
      array_agg(convert_to(k.key, 'UTF8') order by i.instance_id) as data
    from parley_flow._p_instance as i
    join parley_flow._p_send_port as s on s.send_port_id = i.send_port_id
    join parley_flow._p_host as h on h.host_id = s.host_id
    cross join lateral (select format('i%s', i.instance_id) as key) as k
    where i.instance_id = any (instances)
    group by h.system, s.item_priority
    order by h.system, s.item_priority
  loop
    perform parley_store.put_work(
      v_target.system, v_target.lanes, v_target.subjects, data => v_target.data, priority => v_target.item_priority
    );
  end loop;
end
$$;

comment on function parley_flow._p_wake_instances(bigint[]) is
'Has hosts go on with instances: an item for each, whose subject is the number of the instance, negative.';

create function parley_flow._p_give_unread(
  port parley_flow._p_send_port, message_id bigint, came_by text, instance_id bigint
) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_policy constant text := parley_flow._p_setting('orchestration', port.name, 'unread') #>> '{}';
  v_message parley_flow._p_message;
  v_instances bigint[];
  v_ports integer[];
  v_outcome text := 'SUSPENDED';
begin
  select * into v_message from parley_flow._p_message as m where m.message_id = $2;
  if not found then
    return null;
  end if;
  if v_policy <> 'dead_letter' and starts_with(came_by, 'k') and port.convoy is not null then
    -- It is decided about as if nobody had: the instance that is over has no claim on its key any more.
    perform parley_flow._p_deliver(array[$2], array[v_message.promoted], array[1], array[port.send_port_id]);
    v_outcome := 'REPUBLISHED';
  elsif v_policy = 'republish' then
    -- All others had their chance when it was published: but for those that began to wait after that.
    select coalesce(array_agg(w.instance_id order by w.instance_id), '{}'),
      array_agg(i.send_port_id order by w.instance_id)
    into v_instances, v_ports
    from (
      select m.instance_id from parley_flow._p_match_waits(array[v_message.promoted]) as m
      union
      select f.instance_id from parley_flow._p_match_failed_waits(v_message.promoted, v_message.written) as f
    ) as w
    join parley_flow._p_instance as i on i.instance_id = w.instance_id
    where i.began_at > v_message.received_at and w.instance_id <> $4;
    if v_instances <> '{}' then
      perform parley_flow._p_add_deliveries($2, cardinality(v_instances) - 1);
      perform parley_flow._p_deliver_to_instances(
        array[$2], array_fill(1, array[cardinality(v_instances)]), v_instances, v_ports
      );
      v_outcome := 'REPUBLISHED';
    end if;
  elsif v_policy = 'hand_over' and exists (
    select from parley_flow._p_match(array[v_message.promoted]) as m where m.send_port_id = port.send_port_id
  ) then
    perform parley_flow._p_deliver(array[$2], array[v_message.promoted], array[1], array[port.send_port_id]);
    v_outcome := 'HANDED_OVER';
  end if;
  if v_outcome = 'SUSPENDED' then
    perform parley_flow._p_suspend_message(
      $2, 'PROCESS', null, port.name, 'process.unread',
      format('instance %s, to which it came, has ended or passed the receive for it', $4), true, 0
    );
    perform parley_flow._p_count('', array['documents_suspended'], array[1]);
  end if;
  perform parley_flow._p_track_one('UNREAD', '', port.name, $2, jsonb_build_object(
    'instance', $4, 'outcome', v_outcome
  ));
  return v_outcome;
end
$$;

comment on function parley_flow._p_give_unread(parley_flow._p_send_port, bigint, text, bigint) is
'Decides about a message that an instance has not read, as its orchestration says, and gives what became of it:
REPUBLISHED, to instances that began to wait after it was published, or to its convoy; HANDED_OVER, to a new instance;
SUSPENDED, also where nobody else asks for it; null when it is gone. Its delivery stays open.
Arguments: port; message_id; came_by, the key of the lane in which it came; instance_id.';

create function parley_flow._p_release_holds(port text, instances bigint[], kept bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_released bigint[];
begin
  with gone as (
    delete from parley_flow._p_instance_hold as h
    where h.instance_id = any (instances) and (kept is null or h.message_id <> all (kept))
    returning h.message_id
  )
  select array_agg(g.message_id) into v_released from gone as g;
  if v_released is not null then
    perform parley_flow._p_end_deliveries(v_released, port);
  end if;
end
$$;

comment on function parley_flow._p_release_holds(text, bigint[], bigint[]) is
'Ends the deliveries of messages that instances held.
Arguments: port; instances; kept, messages that they hold on, null: none.';

create function parley_flow._p_end_instances(port parley_flow._p_send_port, instances bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_event record;
begin
  delete from parley_flow._p_instance_wait as w where w.instance_id = any (instances);
  delete from parley_flow._p_instance_timer as t where t.instance_id = any (instances);
  delete from parley_flow._p_instance_activity as a where a.instance_id = any (instances);
  perform parley_flow._p_release_holds(port.name, instances, null);
  delete from parley_flow._p_instance as i where i.instance_id = any (instances);
  for v_event in
    with gone as (
      delete from parley_flow._p_instance_event as e
      where e.instance_id = any (instances)
      returning e.event_id, e.instance_id, e.message_id, e.came_by
    )
    select g.instance_id, g.message_id, g.came_by
    from gone as g
    where g.message_id is not null
    order by g.event_id
  loop
    perform parley_flow._p_give_unread(port, v_event.message_id, v_event.came_by, v_event.instance_id);
  end loop;
end
$$;

comment on function parley_flow._p_end_instances(parley_flow._p_send_port, bigint[]) is
'Ends instances of an orchestration, whose rows the caller has locked: they wait for nothing any more, and what they
have not read is decided about.';

create function parley_flow._p_track_instances(
  event text, host text, port text, instances bigint[], fields jsonb[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley_store.track(
    'flow', array_fill(event, array[cardinality(instances)]),
    array(select format('i%s', u.id) from unnest(instances) with ordinality as u (id, n) order by u.n),
    fields => (
      select jsonb_agg(jsonb_build_object('send_port', port) || coalesce(u.fields, '{}') order by u.n)
      from unnest(fields) with ordinality as u (fields, n)
    ),
    sources => array_fill(host, array[cardinality(instances)])
  );
end
$$;

comment on function parley_flow._p_track_instances(text, text, text, bigint[], jsonb[]) is
'Tracks what happened to instances, under i and the number of each.
Arguments: event, of all; host, '''' for none; port; instances and fields, an element for each.';
