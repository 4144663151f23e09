-- Messages that come from other databases.
--
-- One transaction for a batch; the answer leaves after its commit. The rows of the database decide, never the
-- connection. A run is taken when it begins at the number that its endpoint expects, whatever came before it over
-- whichever link, and is answered with the next number otherwise. So a run may come any number of times, in any order,
-- from two daemons at once, and has the effect of one (keeps S3, S4, T4, T5).
-- The batch waits for no other session: an endpoint that another holds (another link delivers, END is under way) is
-- answered "held", and the others go on.
-- Locks: the row of the speaking broker FOR SHARE; endpoints FOR NO KEY UPDATE SKIP LOCKED by endpoint_id, so a local
-- sender and a reader are not disturbed; FOR UPDATE SKIP LOCKED when the state changes, because what this side has not
-- sent yet is held then.
-- Cost of a run to an open conversation: one endpoint locked, one row inserted, one row of progress inserted and one
-- deleted, in one statement for all.
-- Unusual runs go through transport/accept_run.sql, one by one.

create function parley._p_refuse_batch(
  broker_instance uuid, epoch bigint, term bigint, token uuid, identities text[]
) returns parley._p_verdict
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  -- First: a refused speaker must not shut out the true one.
  v_error parley._p_error := parley._p_refusal_of_speaker(identities, broker_instance, epoch);
begin
  if v_error is not null then
    return parley._p_verdict_of('held', 0, v_error);
  end if;
  v_error := parley._p_admit_speaker(broker_instance, epoch, term, token, array_to_string(identities, ' ') !~ 'peer:');
  if v_error is not null then
    return parley._p_verdict_of('superseded', 0, v_error);
  elsif pg_sequence_last_value('parley._p_broker_switch') is not null then
    return parley._p_verdict_of('held', 0, parley._p_error_of(28012, 'target disabled'));
  end if;
  return null;
end
$$;

comment on function parley._p_refuse_batch(uuid, bigint, bigint, uuid, text[]) is
'Says why no run of a batch is taken now; null when each is judged by itself.
Arguments: as those of _p_accept_runs.';

create function parley._p_lock_addressed(conversation_ids uuid[], from_initiators boolean[]) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select e.endpoint_id
    from parley._p_endpoint as e
    where (e.conversation_id, e.is_initiator) in (
        select r.conversation_id, not r.from_initiator
        from unnest(conversation_ids, from_initiators) as r (conversation_id, from_initiator)
      )
    order by e.endpoint_id
    for no key update skip locked
  );
end
$$;

comment on function parley._p_lock_addressed(uuid[], boolean[]) is
'Locks the endpoints here to which runs are addressed, but those that somebody else holds, and gives them.
Arguments: of each run its conversation, and whether it comes from the initiator.';

create function parley._p_starts(body_counts integer[]) returns integer[]
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select (sum(c.count) over (order by c.number) - c.count)::integer + 1
    from unnest(body_counts) with ordinality as c (count, number)
    order by c.number
  );
end
$$;

comment on function parley._p_starts(integer[]) is
'Gives where the bodies of each run begin in the bodies of all.';

create function parley._p_accept_one_by_one(
  broker_instance uuid, epoch bigint, taken integer[], starts integer[],
  conversation_ids uuid[], from_initiators boolean[], first_sequences bigint[], message_types text[],
  body_counts integer[], body_sizes bigint[], bodies bytea[], from_services text[], to_services text[],
  contracts text[], to_brokers uuid[], ends_at timestamptz[], trace_contexts text[], identities text[],
  are_encrypted boolean[], probes_given bigint[], probes_expected bigint[], sealed_at timestamptz[]
) returns table (ordinal integer, outcome text, next_sequence bigint, error_number integer, description text)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_run record;
  v_verdict parley._p_verdict;
begin
  for v_run in
    select r.ordinal, (
        r.conversation_id, r.from_initiator, r.first_sequence, r.message_type,
        bodies[r.start : r.start + r.body_count - 1], r.body_size, r.from_service, r.to_service, r.contract,
        r.to_broker, r.ends_at, r.trace_context, r.identity, r.is_encrypted, r.probe_given, r.probe_expected,
        r.sealed_at
      )::parley._p_arriving_run as run
    from unnest(
      conversation_ids, from_initiators, first_sequences, message_types, starts, body_counts, body_sizes,
      from_services, to_services, contracts, to_brokers, ends_at, trace_contexts, identities, are_encrypted,
      probes_given, probes_expected, sealed_at
    ) with ordinality as r (
      conversation_id, from_initiator, first_sequence, message_type, start, body_count, body_size, from_service,
      to_service, contract, to_broker, ends_at, trace_context, identity, is_encrypted, probe_given, probe_expected,
      sealed_at, ordinal
    )
    where r.ordinal <> all (coalesce(taken, '{}'))
    order by r.ordinal
  loop
    v_verdict := case
      when (v_run.run).probe_given is null then parley._p_accept_run(broker_instance, v_run.run)
      else parley._p_compare(broker_instance, epoch, v_run.run)
    end;
    return query
    select v_run.ordinal::integer, v_verdict.outcome, v_verdict.next_sequence, v_verdict.error_number,
      v_verdict.description;
  end loop;
end
$$;

comment on function parley._p_accept_one_by_one(
  uuid, bigint, integer[], integer[], uuid[], boolean[], bigint[], text[], integer[], bigint[], bytea[], text[], text[],
  text[], uuid[], timestamptz[], text[],
  text[], boolean[], bigint[], bigint[], timestamptz[]
) is
'Takes in the runs of a batch that are not usual, the long way, and gives an answer for each.
Arguments: as those of _p_accept_runs; taken, which runs have been taken in already; starts, where the bodies of each
begin.';

create function parley._p_accept_runs(
  broker_instance uuid, epoch bigint, term bigint, token uuid,
  conversation_ids uuid[], from_initiators boolean[], first_sequences bigint[], message_types text[],
  body_counts integer[], body_sizes bigint[], bodies bytea[], from_services text[], to_services text[],
  contracts text[], to_brokers uuid[], ends_at timestamptz[], trace_contexts text[], identities text[],
  are_encrypted boolean[], probes_given bigint[], probes_expected bigint[], sealed_at timestamptz[]
) returns table (ordinal integer, outcome text, next_sequence bigint, error_number integer, description text)
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
  v_locked bigint[];
  v_taken integer[];
  v_next bigint[];
  v_starts integer[];
  v_framed bigint;
  v_verdict parley._p_verdict := parley._p_refuse_batch(broker_instance, epoch, term, token, identities);
begin
  if array_position(bodies, '') is not null then
    bodies := array_replace(bodies, '', null);
  end if;
  if v_verdict.outcome is not null then
    return query
    select r.ordinal, v_verdict.outcome, v_verdict.next_sequence, v_verdict.error_number, v_verdict.description
    from generate_subscripts(conversation_ids, 1) as r (ordinal);
    return;
  end if;
  v_locked := parley._p_lock_addressed(conversation_ids, from_initiators);
  v_starts := parley._p_starts(body_counts);
  -- A new statement, so that it sees what the earlier holders of the endpoints have done.
  with run as (
    select r.*
    from unnest(
      conversation_ids, from_initiators, first_sequences, message_types, body_counts, body_sizes, trace_contexts,
      v_starts
    ) with ordinality as r (
      conversation_id, from_initiator, first_sequence, message_type, count, size, trace_context, start, ordinal
    )
    where r.size = 0 and r.count > 0 and r.first_sequence < 9223372036854775807 -- what stands outside the order
  ), place as (
    select r.ordinal, r.first_sequence, r.count, r.trace_context, r.start, e.endpoint_id, e.priority, q.queue_id,
      q.position_sequence, q.wakeup_sequence, t.message_type_id, coalesce(p.sequence, 0) as expected,
      r.first_sequence + r.count as after
    from run as r
    join parley._p_endpoint as e
      on e.conversation_id = r.conversation_id
      and e.is_initiator = not r.from_initiator
      and e.endpoint_id = any (v_locked)
      and e.state = 'CO'
      and e.far_endpoint_id < 0
      and e.far_broker_instance = _p_accept_runs.broker_instance::text
      and not exists (select from parley._p_unresumed as w where w.endpoint_id = e.endpoint_id)
    join parley._p_service as s on s.service_id = e.service_id
    join parley._p_queue as q on q.queue_id = s.queue_id and q.is_enqueue_enabled and q.quota_sequence is null
    join parley._p_sendable_type as t
      on t.service_contract_id = e.service_contract_id
      and t.is_from_initiator = r.from_initiator
      and t.name = r.message_type
      and not t.is_validated
    left join lateral (
      select o.sequence
      from parley._p_accept_progress as o
      where o.endpoint_id = e.endpoint_id
      order by o.sequence desc
      limit 1
    ) as p on true
  ), chained as (
    -- A run is taken when it, and all of its conversation before it in this batch, follows without a hole.
    select c.*,
      bool_and(c.first_sequence <= c.next) over (
        partition by c.endpoint_id order by c.ordinal rows unbounded preceding
      ) as is_taken
    from (
      select p.*,
        greatest(p.expected, max(p.after) over (
          partition by p.endpoint_id order by p.ordinal rows between unbounded preceding and 1 preceding
        )) as next
      from place as p
    ) as c
  ), taken as (
    select c.*, greatest(c.next - c.first_sequence, 0)::integer as skipped from chained as c where c.is_taken
  ), inserted as (
    insert into parley._p_message (
      position, endpoint_id, enqueued_at, lane, message_type_id, body, frame, trace_context
    )
    select nextval(o.position_sequence) * 1024, o.endpoint_id, clock_timestamp(),
      parley._p_lane(o.queue_id, o.priority), o.message_type_id,
      case when o.count - o.skipped = 1 then bodies[o.start + o.skipped] end,
      -- Slicing walks the array from its start; a daemon sends some thousand bodies at once at most.
      case when o.count - o.skipped > 1 then bodies[o.start + o.skipped : o.start + o.count - 1] end,
      -- Daemons send an empty text for nothing.
      nullif(o.trace_context, '')
    from (select k.* from taken as k where k.skipped < k.count order by k.ordinal) as o
  ), moved as (
    select k.endpoint_id, k.expected, max(k.after) as after
    from taken as k
    group by k.endpoint_id, k.expected
    having max(k.after) > k.expected
  ), gone_on as (
    insert into parley._p_accept_progress (endpoint_id, sequence) select m.endpoint_id, m.after from moved as m
  ), forgotten as (
    delete from parley._p_accept_progress as p
    using moved as m
    where p.endpoint_id = m.endpoint_id and p.sequence = m.expected
  ), rung as (
    select parley._p_wake_readers(d.queue_id, d.wakeup_sequence)
    from (select distinct k.queue_id, k.wakeup_sequence from taken as k) as d
  )
  select array_agg(k.ordinal::integer order by k.ordinal), array_agg(greatest(k.next, k.after) order by k.ordinal),
    sum(greatest(k.count - k.skipped - 1, 0))
  into v_taken, v_next, v_framed
  from taken as k
  -- An outer join would be left out by the planner, and nobody be woken.
  cross join (select count(*) from rung) as r;
  if v_framed > 0 then
    perform parley._p_count_framed(v_framed);
  end if;
  return query
  select k.ordinal, 'accepted'::text, k.next, null::integer, null::text
  from unnest(v_taken, v_next) as k (ordinal, next);
  if cardinality(v_taken) is distinct from cardinality(conversation_ids) then
    return query
    select o.*
    from parley._p_accept_one_by_one(
      broker_instance, epoch, v_taken, v_starts, conversation_ids, from_initiators, first_sequences, message_types,
      body_counts, body_sizes, bodies, from_services, to_services, contracts, to_brokers, ends_at, trace_contexts,
      identities, are_encrypted, probes_given, probes_expected, sealed_at
    ) as o;
  end if;
end
$$;

comment on function parley._p_accept_runs(
  uuid, bigint, bigint, uuid, uuid[], boolean[], bigint[], text[], integer[], bigint[], bytea[], text[], text[], text[],
  uuid[], timestamptz[], text[],
  text[], boolean[], bigint[], bigint[], timestamptz[]
) is
'Takes in what another broker has sent, and gives an answer for each run: accepted, expected, held (error number 0:
busy), refused, gone, unroutable or superseded, with the number that is expected next.
Arguments: broker_instance, epoch, term and token of the speaker; then for each run its fields (Run in Go), where
body_counts says how many of bodies belong to it and body_sizes is above 0 for a body that came in fragments;
identities, as whom the sender was recognised; probes_given and probes_expected for a run that compares instead of
carrying messages (transport/resume.sql), null otherwise; sealed_at, when it was sealed, as its seal proves, null for
one in clear.
Source: spec 6.9, 6.10.';
