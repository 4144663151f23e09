-- The answers of the far side to runs that this side has sent.
--
-- An acknowledgement is cumulative: everything numbered below next_sequence is with the far side, durably. It is
-- deleted here, and never before (keeps T2). Answers may come late, twice, or in another order than the questions. Each
-- of them confirms at most as much as is true.
-- Lost history shows when one side has, or expects, a number that the other never gave or has forgotten already. A
-- number that seems forgotten may come from an old answer. So it counts only for a run that was sent while no other run
-- of its conversation was under way (is_alone).
-- Locks: the leader's row FOR SHARE; rows of _p_transit; endpoints FOR UPDATE SKIP LOCKED when their state changes.
-- An endpoint that another session has locked is left for later: the conversation is parked for some seconds, or an
-- alarm removes it.

create function parley._p_acknowledge(
  term bigint, endpoint_ids bigint[], first_sequences bigint[], are_alone boolean[], are_probes boolean[],
  outcomes text[], next_sequences bigint[], error_numbers integer[], descriptions text[], brokers uuid[],
  epochs bigint[]
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
  v_impossible bigint[];
  v_unbound bigint[];
begin
  if not parley._p_holds_term(term) then
    return false;
  end if;
  -- The far side cannot have numbers that this side never gave. So this database has gone back to an earlier state
  -- without noticing, and its new messages count as duplicates there; or the answer is a lie.
  v_impossible := array(
    select e.endpoint_id
    from unnest(endpoint_ids, first_sequences, outcomes, next_sequences, brokers, epochs)
      as a (endpoint_id, first_sequence, outcome, next_sequence, broker, epoch)
    join parley._p_endpoint as e on e.endpoint_id = a.endpoint_id
    where a.outcome = 'accepted' and a.first_sequence < 9223372036854775807 and e.far_endpoint_id < 0
      and a.next_sequence > coalesce(
        (
          select p.sequence
          from parley._p_send_progress as p
          where p.endpoint_id = a.endpoint_id
          order by p.sequence desc
          limit 1
        ), 0
      )
      and not exists (select from parley._p_known_broker as k where k.broker_instance = a.broker and k.epoch > a.epoch)
    group by e.endpoint_id
    order by e.endpoint_id
  );
  delete from parley._p_unresumed as u
  using unnest(endpoint_ids, are_probes, outcomes) as a (endpoint_id, is_probe, outcome)
  where u.endpoint_id = a.endpoint_id and a.is_probe and a.outcome in ('accepted', 'refused', 'gone');
  delete from parley._p_transit as t
  using (
    select a.endpoint_id, min(a.first_sequence) as first_sequence, max(a.next_sequence) as next_sequence
    from unnest(endpoint_ids, first_sequences, outcomes, next_sequences, brokers, epochs)
      as a (endpoint_id, first_sequence, outcome, next_sequence, broker, epoch)
    where a.outcome = 'accepted' and a.endpoint_id <> all (v_impossible)
      and not exists (select from parley._p_known_broker as k where k.broker_instance = a.broker and k.epoch > a.epoch)
    group by a.endpoint_id
  ) as o
  where t.endpoint_id = o.endpoint_id and t.first_sequence >= o.first_sequence and t.next_sequence <= o.next_sequence;
  -- A conversation with a due time stays parked: after the accepted run was sent it was parked, or got another address.
  delete from parley._p_parked as p
  using unnest(endpoint_ids, outcomes) as a (endpoint_id, outcome)
  where p.endpoint_id = a.endpoint_id and a.outcome = 'accepted' and p.due_at = 'infinity';
  if cardinality(v_impossible) > 0 then
    perform parley._p_disbelieve(v_impossible);
  end if;
  -- The first answer shows which instance has the conversation; it stays with that one (spec 6.5).
  v_unbound := array(
    select e.endpoint_id
    from parley._p_endpoint as e
    where e.endpoint_id = any (endpoint_ids) and e.far_broker_instance is null and e.far_endpoint_id < 0
    for no key update skip locked
  );
  if cardinality(v_unbound) > 0 then
    update parley._p_endpoint as e
    set far_broker_instance = a.broker::text
    from unnest(endpoint_ids, outcomes, brokers) as a (endpoint_id, outcome, broker)
    where e.endpoint_id = any (v_unbound) and a.endpoint_id = e.endpoint_id
      and a.outcome = 'accepted' and a.broker is not null;
  end if;
  -- The end of a conversation has arrived.
  perform parley._p_close_when_acknowledged(o.endpoint_id)
  from (
    select e.endpoint_id
    from parley._p_endpoint as e
    where e.endpoint_id = any (endpoint_ids) and e.state = 'DO' and e.far_endpoint_id < 0
    order by e.endpoint_id
  ) as o;
  perform parley._p_answer(
    a.endpoint_id, a.first_sequence, a.is_alone, a.outcome, a.next_sequence, a.error_number, a.description
  )
  from unnest(endpoint_ids, first_sequences, are_alone, outcomes, next_sequences, error_numbers, descriptions)
    as a (endpoint_id, first_sequence, is_alone, outcome, next_sequence, error_number, description)
  where a.outcome in ('expected', 'held', 'refused', 'gone', 'unroutable');
  return true;
end
$$;

comment on function parley._p_acknowledge(
  bigint, bigint[], bigint[], boolean[], boolean[], text[], bigint[], integer[], text[], uuid[], bigint[]
) is
'Takes in the answers of the far side to runs: deletes acknowledged messages, binds conversations to the instance that
has answered, ends those whose end has arrived, breaks those that were refused, parks those that cannot be taken now.
False when the term is over.
Arguments: term; for each run its endpoint_id, first_sequence, whether nothing else of its conversation was under way,
whether it was a probe, and the fields of its Result.';

create function parley._p_disbelieve(endpoint_ids bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_locked bigint[];
begin
  v_locked := array(
    select e.endpoint_id
    from parley._p_endpoint as e
    where e.endpoint_id = any (endpoint_ids)
    order by e.endpoint_id
    for update skip locked
  );
  perform parley._p_break_lost(l.endpoint_id, 'this side') from unnest(v_locked) as l (endpoint_id);
  -- Nothing is removed of endpoints that other sessions hold. The next answer says the same.
  perform parley._p_park(e.endpoint_id, e.destination_id, parley._p_status(9736, 'not sent'))
  from parley._p_endpoint as e
  where e.endpoint_id = any (endpoint_ids) and e.endpoint_id <> all (v_locked) and e.destination_id is not null;
end
$$;

comment on function parley._p_disbelieve(bigint[]) is
'Ends conversations whose far side has acknowledged numbers that were never given, with an Error on both sides.
Arguments: endpoint_ids.
Source: reliability T2, F2.';

create function parley._p_close_when_acknowledged(endpoint_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = _p_close_when_acknowledged.endpoint_id;
  if v_endpoint.state = 'DO'
    and not exists (select from parley._p_transit as t where t.endpoint_id = v_endpoint.endpoint_id)
    and not exists (select from parley._p_message as m where m.endpoint_id = -v_endpoint.endpoint_id)
    and not exists (select from parley._p_transmission as t where t.endpoint_id = v_endpoint.endpoint_id)
    and not exists (select from parley._p_delayed_send as d where d.endpoint_id = v_endpoint.endpoint_id) then
    perform from parley._p_endpoint as e where e.endpoint_id = v_endpoint.endpoint_id for update skip locked;
    if found then
      perform parley._p_remove_endpoint(v_endpoint);
      perform parley._p_trace_dialog(v_endpoint, 10);
    else
      -- No side is informed any more, so nothing else would come back to it.
      perform parley._p_set_alarm(v_endpoint.endpoint_id, 'abandoned', clock_timestamp());
    end if;
  end if;
end
$$;

comment on function parley._p_close_when_acknowledged(bigint) is
'Removes a side that has ended when the far side in another database has taken all that it had to say; a little later
when somebody holds it.';

create function parley._p_answer(
  endpoint_id bigint, first_sequence bigint, is_alone boolean, outcome text, next_sequence bigint, error_number integer,
  description text
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
  v_given bigint;
  v_kept bigint;
  v_error parley._p_error;
begin
  select * into v_endpoint
  from parley._p_endpoint as e
  where e.endpoint_id = _p_answer.endpoint_id
  for update skip locked;
  if not found then
    if exists (select from parley._p_endpoint as e where e.endpoint_id = _p_answer.endpoint_id) then
      -- A sender or an END is under way. The next answer says the same.
      if outcome <> 'expected' and not (outcome = 'held' and error_number = 0) then
        perform parley._p_park(e.endpoint_id, e.destination_id, description)
        from parley._p_endpoint as e
        where e.endpoint_id = _p_answer.endpoint_id and e.destination_id is not null;
      end if;
    else
      perform parley._p_forget_far_side(endpoint_id);
    end if;
    return;
  end if;
  if v_endpoint.far_endpoint_id is null or v_endpoint.far_endpoint_id > 0 then
    -- The far side is in this database again, so an answer from elsewhere no longer counts.
    return;
  end if;
  -- A far side that answered before the Error came still expects the messages that END WITH ERROR has dropped.
  select p.kept, p.given into v_kept, v_given from parley._p_positions(v_endpoint.endpoint_id) as p;
  case
    when outcome = 'expected' and v_endpoint.state in ('DI', 'ER') then
      -- The far side has ended or failed, so the messages under way are forgotten already.
      null;
    when outcome = 'expected' and next_sequence > v_given then
      perform parley._p_break_lost(v_endpoint.endpoint_id, 'this side');
    when outcome = 'expected' and is_alone and next_sequence < least(v_kept, first_sequence) then
      if next_sequence = 0 then
        perform parley._p_end_refused(v_endpoint, parley._p_error_of(8462, 'gone'));
      else
        perform parley._p_break_lost(v_endpoint.endpoint_id, 'the other side');
      end if;
    when outcome in ('held', 'unroutable')
      and error_number is distinct from 0
      and v_endpoint.destination_id is not null then
      perform parley._p_park(v_endpoint.endpoint_id, v_endpoint.destination_id, description);
    when outcome in ('held', 'unroutable') and error_number is distinct from 0 and parley._p_is_at_home(v_endpoint) then
      -- The run was sent once more before a route was found, and that route leads into this database now.
      perform parley._p_park(v_endpoint.endpoint_id, p.destination_id, description)
      from parley._p_parked as p where p.endpoint_id = v_endpoint.endpoint_id;
      perform parley._p_deliver_delayed_of(v_endpoint.endpoint_id);
    when outcome = 'refused' then
      perform parley._p_end_refused(v_endpoint, (error_number, description)::parley._p_error);
    when outcome = 'gone' then
      v_error := parley._p_error_of(8462, 'gone');
      v_error.description := coalesce(description, v_error.description);
      perform parley._p_end_refused(v_endpoint, v_error);
    else
      null;
  end case;
end
$$;

comment on function parley._p_answer(bigint, bigint, boolean, text, bigint, integer, text) is
'Takes in one answer other than that a run was accepted. Held with error number 0 means busy: the daemon just tries
again.
Source: spec 6.10; reliability F2.';

create function parley._p_end_refused(endpoint parley._p_endpoint, error parley._p_error) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  case
    when endpoint.state = 'DO' then
      perform parley._p_remove_endpoint(endpoint);
    when endpoint.state in ('DI', 'ER') then
      perform parley._p_hold_outgoing(endpoint, parley._p_status(9779, 'over'));
      -- There is no side to inform of an error any more.
      delete from parley._p_transmission as t where t.endpoint_id = endpoint.endpoint_id and t.message_type_id = -1;
    else
      perform parley._p_break_conversations(array[endpoint.endpoint_id], error);
  end case;
end
$$;

comment on function parley._p_end_refused(parley._p_endpoint, parley._p_error) is
'Ends a conversation whose far side in another database does not take part in it, with an Error message; one that has
ended anyway just goes.
The caller holds the row FOR UPDATE.';

create function parley._p_break_lost(endpoint_id bigint, whose text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_of_this_side parley._p_error := parley._p_error_of(9719, 'lost');
  v_of_that_side parley._p_error := parley._p_error_of(9720, 'lost');
  v_endpoint parley._p_endpoint;
begin
  if whose <> 'this side' then
    v_of_this_side := parley._p_error_of(9720, 'lost');
    v_of_that_side := parley._p_error_of(9719, 'lost');
  end if;
  select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = _p_break_lost.endpoint_id;
  if v_endpoint.state = 'DO' then
    -- This side has ended and wants no Error; the other side gets one.
    perform parley._p_drop_outgoing(v_endpoint);
    perform parley._p_send_end_far(v_endpoint.endpoint_id, -1, parley._p_broker_error_body(v_of_that_side));
  else
    perform parley._p_break_conversations(array[endpoint_id], v_of_this_side, v_of_that_side);
  end if;
end
$$;

comment on function parley._p_break_lost(bigint, text) is
'Ends a conversation of which one side has lost messages, with an Error on both sides: nothing is skipped or repeated in
silence.
Arguments: endpoint_id, whose row the caller holds; whose, "this side" or "the other side".
Source: reliability F2; spec 9.1 for the codes.';
