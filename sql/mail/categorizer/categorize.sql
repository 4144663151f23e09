-- The categorizer: from the submission queue into lanes (spec mail 5, 6).
--
-- One transaction writes all that follows from some messages: recipients, forks, work items, failures, events. A daemon
-- that dies in the middle leaves them as they were, and a row of work_marks.sql. A message that cannot be categorized
-- is tried alone, so that it costs the others no more than a repetition. It is set aside after two failures, or after
-- two deaths.
-- Locks: that row. Cost: about a dozen statements for a batch, however many messages it has,
-- and one for each distinct next hop.

create function parley_mail._p_placed(message_ids bigint[], part_size integer) returns setof parley_mail._p_resolved
language plpgsql
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  with reached as materialized (
    select r.message_id, r.submitted_ordinal, r.address, r.original_recipient, r.notify, r.envelope_sender, r.store,
      r.status, r.reason, r.event
    from parley_mail._p_resolve(message_ids) as r
  ),

  routed as (
    select h.message_id, h.address, h.store, w.lane, w.status, w.reason
    from (
      select distinct r.message_id, r.address, r.store from reached as r where r.status is null
    ) as h
    join parley_mail._p_message as m on m.message_id = h.message_id
    cross join lateral parley_mail._p_route_of(
      h.address, h.store, case when m.source = 'DSN' then 0 else m.size end
    ) as w
  ),

  judged as (
    select r.message_id, r.submitted_ordinal, r.address, r.original_recipient, r.notify, r.envelope_sender, r.store,
      coalesce(r.status, w.status) as status, coalesce(r.reason, w.reason) as reason, r.event, w.lane
    from reached as r
    left join routed as w on w.message_id = r.message_id and w.address = r.address
      and w.store is not distinct from r.store
  ),

  numbered as (
    select j.message_id, j.submitted_ordinal, j.address, j.original_recipient, j.notify, j.envelope_sender, j.store,
      j.status, j.reason, j.event, j.lane,
      case when coalesce(j.event, '') not like 'DUPLICATE%' then
        row_number() over (
          partition by j.message_id, j.envelope_sender, coalesce(j.event, '') like 'DUPLICATE%'
          order by j.submitted_ordinal, j.address
        )
      end as n
    from judged as j
  )

  select
    n.message_id, n.submitted_ordinal, n.address, n.original_recipient, n.notify, n.envelope_sender, n.store, n.status,
    n.reason, n.event, ((n.n - 1) / part_size)::integer,
    ((n.n - 1) % part_size + 1 + coalesce(o.ordinal, 0))::integer, null::bigint, n.lane
  from numbered as n
  -- Of a message that is categorized again others may still be waiting.
  left join (
    select p.message_id, max(p.ordinal) as ordinal
    from parley_mail._p_recipient as p
    where p.message_id = any (message_ids)
    group by p.message_id
  ) as o on o.message_id = n.message_id;
end
$$;

comment on function parley_mail._p_placed(bigint[], integer) is
'Gives who gets some messages, by which way, and at which place: parts of at most so many recipients.
Arguments: message_ids; part_size.';

create function parley_mail._p_insert_forks(ids bigint[], parents bigint[], senders text[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fork record;
  v_parent parley_mail._p_message;
  v_messages parley_mail._p_message[];
begin
  for v_fork in
    select f.id, f.parent, f.sender from unnest(ids, parents, senders) as f (id, parent, sender) order by f.parent, f.id
  loop
    if v_parent.message_id is distinct from v_fork.parent then
      select m.* into v_parent from parley_mail._p_message as m where m.message_id = v_fork.parent;
      -- These may be large, and a fork has none of them.
      v_parent.recipients := '{}';
      v_parent.notify := null;
      v_parent.original_recipients := null;
      v_parent.body := null;
    end if;
    v_messages := v_messages || jsonb_populate_record(v_parent, parley_mail._p_initial_state() || jsonb_build_object(
      'message_id', v_fork.id, 'parent_message_id', v_parent.message_id,
      'body_message_id', coalesce(v_parent.body_message_id, v_parent.message_id),
      'sender', coalesce(v_fork.sender, v_parent.sender), 'has_verp', v_parent.has_verp and v_fork.sender is null
    ));
  end loop;
  insert into parley_mail._p_message select m.* from unnest(v_messages) as m;
end
$$;

comment on function parley_mail._p_insert_forks(bigint[], bigint[], text[]) is
'Stores forks: the envelopes of their parents, without recipients and with the bodies of their parents.
Arguments: ids, of the forks; parents; senders, null for that of the parent.';

create function parley_mail._p_fork(rows parley_mail._p_resolved[]) returns parley_mail._p_resolved[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_forks record;
begin
  select
    array_agg(f.message_id) as parents, array_agg(f.envelope_sender) as senders, array_agg(f.part) as parts,
    array_agg(nextval('parley_mail._p_message_id')) as ids
  into v_forks
  from (
    select distinct r.message_id, r.envelope_sender, r.part
    from unnest(rows) as r
    where r.part > 0 or (r.envelope_sender is not null and r.part is not null)
  ) as f;
  if v_forks.ids is not null then
    perform parley_mail._p_insert_forks(v_forks.ids, v_forks.parents, v_forks.senders);
    perform parley_mail._p_track(
      array_fill('TRANSFER'::text, array[cardinality(v_forks.ids)]), v_forks.ids, null, null,
      null, null, array_fill('ROUTING'::text, array[cardinality(v_forks.ids)])
    );
  end if;
  return array(
    select (
      r.message_id, r.submitted_ordinal, r.address, r.original_recipient, r.notify, r.envelope_sender, r.store,
      r.status, r.reason, r.event, r.part, r.ordinal, coalesce(f.id, r.message_id), r.lane
    )::parley_mail._p_resolved
    from unnest(rows) as r
    left join unnest(v_forks.ids, v_forks.parents, v_forks.senders, v_forks.parts) as f (id, parent, sender, part)
      on f.parent = r.message_id and f.sender is not distinct from r.envelope_sender and f.part = r.part
  );
end
$$;

comment on function parley_mail._p_fork(parley_mail._p_resolved[]) is
'Makes the forks that some recipients need: for another envelope sender, or beyond the size of a message. They share the
body of their parent. Gives the rows with the numbers of their messages.
Source: spec mail 6.4.';

create function parley_mail._p_make_lanes(rows parley_mail._p_resolved[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_missing constant text[] := array(
    select distinct r.lane
    from unnest(rows) as r
    where r.status is null
      and not exists (select from parley_store.lanes as l where l.system = 'mail' and l.lane = r.lane)
  );
begin
  if v_missing <> '{}' then
    perform parley_mail._p_set_hops(v_missing);
  end if;
  if exists (
    select
    from parley_mail._p_held_domain as h
    cross join unnest(rows) as r
    cross join parley_mail._p_parts_of_lane(r.lane) as p
    where p.next_hop = h.domain
  ) then
    perform parley_mail._p_suspend_held();
  end if;
end
$$;

comment on function parley_mail._p_make_lanes(parley_mail._p_resolved[]) is
'Makes lanes of next hops that there are not yet, with the limits and the retry policy of their connector or store.';

create function parley_mail._p_queue_up(rows parley_mail._p_resolved[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_work record;
  v_failed record;
begin
  insert into parley_mail._p_recipient (message_id, ordinal, address, original_recipient, notify, lane)
  select r.target_id, r.ordinal, r.address, r.original_recipient, r.notify, case when r.status is null then r.lane end
  from unnest(rows) as r
  where r.part is not null;
  perform parley_mail._p_make_lanes(rows);
  for v_work in
    select w.system, w.priority, array_agg(w.lane order by w.n) as lanes, array_agg(w.target_id order by w.n) as ids,
      array_agg(w.size order by w.n) as sizes, w.expires_at
    from (
      select
        k.system, m.priority, r.lane, r.target_id, min(r.target_id) as n, m.size,
        date_trunc('second', m.expires_at) as expires_at
      from unnest(rows) as r
      cross join parley_mail._p_parts_of_lane(r.lane) as p
      join parley_mail._p_delivery_kind as k on k.kind = p.kind
      join parley_mail._p_message as m on m.message_id = r.target_id
      where r.part is not null and r.status is null
      group by k.system, r.lane, r.target_id, m.priority, m.size, m.expires_at
    ) as w
    group by w.system, w.priority, w.expires_at
  loop
    perform parley_store.put_work(
      v_work.system, v_work.lanes, v_work.ids, priority => parley_mail._p_priority_of_item(v_work.priority),
      expires_at => v_work.expires_at, weights => v_work.sizes
    );
  end loop;
  select array_agg(r.target_id) as ids, array_agg(r.ordinal) as ordinals, array_agg(r.status) as statuses,
    array_agg(r.reason) as reasons
  into v_failed
  from unnest(rows) as r
  where r.part is not null and r.status is not null;
  if v_failed.ids is not null then
    perform parley_mail._p_fail_recipients(
      v_failed.ids, v_failed.ordinals, v_failed.statuses, v_failed.reasons, 'RESOLVER'
    );
  end if;
end
$$;

comment on function parley_mail._p_queue_up(parley_mail._p_resolved[]) is
'Writes recipients, puts their messages into the lanes of their next hops, and gives those up that are refused.';

create function parley_mail._p_categorize_batch(message_ids bigint[]) returns parley_mail._p_categorizer_counts
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_rows parley_mail._p_resolved[];
  v_counts parley_mail._p_categorizer_counts;
  v_events record;
  v_part_size integer;
begin
  select coalesce((o.settings ->> 'expansion_size_limit')::integer, 1000) into v_part_size
  from parley_mail._p_organization as o;
  -- From here on the recipients of these messages are not added to.
  update parley_mail._p_message as m
  set is_resubmitted = false
  where m.message_id = any (message_ids) and m.is_resubmitted;
  v_rows := parley_mail._p_fork(array(select r from parley_mail._p_placed(message_ids, v_part_size) as r));
  select array_agg(e.event) as events, array_agg(e.message_id) as ids, array_agg(e.address) as addresses,
    array_agg(e.source) as sources, array_agg(e.reason) as reasons
  into v_events
  from (
    select case m.source when 'SMTP' then 'RECEIVE' when 'DSN' then 'DSN' else 'SUBMIT' end as event, m.message_id,
      r.address, m.source, null as reason
    from parley_mail._p_message as m
    cross join unnest(m.recipients) as r (address)
    where m.message_id = any (message_ids) and m.resubmissions = 0
    union all
    select 'AGENTINFO', m.message_id, null, 'AGENT', null
    from parley_mail._p_message as m
    where m.message_id = any (message_ids) and m.resubmissions = 0 and m.verdicts ? 'filters'
    union all
    select r.event, r.target_id, r.address, 'ROUTING', r.original_recipient
    from unnest(v_rows) as r
    where r.event is not null
  ) as e;
  perform parley_mail._p_track(
    v_events.events, v_events.ids, v_events.addresses, null, v_events.reasons, null, v_events.sources
  );
  v_counts := parley_mail._p_count_resolved(message_ids, v_rows);
  perform parley_mail._p_queue_up(v_rows);
  insert into parley_mail._p_report (message_id, ordinal, action, address, original_recipient, status, attempted_at)
  select m.message_id, r.ordinal, 'EXPANDED', r.address, r.original, '2.0.0', clock_timestamp()
  from parley_mail._p_message as m
  cross join unnest(m.recipients, m.notify, m.original_recipients) with ordinality
    as r (address, notify, original, ordinal)
  join parley_mail._p_directory_entry as d
    on d.address = parley_mail._p_folded(r.address) and d.kind = 'distribution group'
  where m.message_id = any (message_ids) and parley_mail._p_wants_report(m.sender, r.notify, 'EXPANDED')
    -- One that refuses the message is not expanded.
    and not exists (
      select
      from unnest(v_rows) as f
      where f.message_id = m.message_id and f.submitted_ordinal = r.ordinal and f.address = r.address
        and f.status is not null
    )
  on conflict do nothing;
  -- A message without a recipient, such as mail to an empty group, is finished.
  perform parley_mail._p_remove_finished(array(
    select i.id
    from unnest(message_ids) as i (id)
    where not exists (select from parley_mail._p_recipient as r where r.message_id = i.id)
  ));
  return v_counts;
end
$$;

comment on function parley_mail._p_categorize_batch(bigint[]) is
'Categorizes some messages; gives what it came upon.
Source: spec mail 6.';

create function parley_mail._p_categorize_each(message_ids bigint[]) returns parley_mail._p_categorizer_counts
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_id bigint;
  v_reason text;
  v_counts parley_mail._p_categorizer_counts := (0, 0, 0, 0, 0, 0, 0, 0, 0);
begin
  begin
    return parley_mail._p_categorize_batch(message_ids);
  exception
    when transaction_rollback or insufficient_resources or operator_intervention or system_error then
      raise;
    when others then
      foreach v_id in array message_ids loop
        begin
          v_counts := parley_mail._p_sum(v_counts, parley_mail._p_categorize_batch(array[v_id]));
        exception
          when transaction_rollback or insufficient_resources or operator_intervention or system_error then
            raise;
          when others then
            v_reason := format('%s (%s)', sqlerrm, sqlstate);
            v_counts.failed := v_counts.failed + 1;
            v_counts.set_aside := v_counts.set_aside + parley_mail._p_crashed(v_id, v_reason)::integer;
        end;
      end loop;
  end;
  return v_counts;
end
$$;

comment on function parley_mail._p_categorize_each(bigint[]) is
'Categorizes messages, together or, where that fails, each by itself; gives how many were, how many failed and how many
of these were set aside, and what it came upon.';

create function parley_mail._p_categorize(
  messages integer default 100, timeout integer default 0, caller parley.caller default parley.current_caller()
) returns table (categorized integer, failed integer, set_aside integer)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_run_id bigint;
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  v_run_id := parley_mail._p_begin_categorizing(messages, timeout);
  return query
  select d.categorized, d.failed, d.set_aside from parley_mail._p_categorize_begun(v_run_id) as d;
end
$$;

comment on function parley_mail._p_categorize(integer, integer, parley.caller) is
'Categorizes messages that were submitted, in one transaction: for those who do not die. A daemon calls
_p_begin_categorizing and _p_categorize_begun, in one transaction each.
Arguments: as _p_begin_categorizing.
Errors: PM001 the role does not hold SERVE, 9617 the queue is disabled.
Source: spec mail 5, 6.';
