-- Poison: messages that the categorizer cannot work on, and those that are held for an operator.
--
-- They wait in the lane POISON/-/-, which is suspended: nobody claims from it, and nothing in it expires. An operator
-- resumes them, which has them categorized again, or removes them. The item's subject is the message, its data the
-- reason.

create function parley_mail._p_set_aside(message_ids bigint[], reason text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_count constant integer := cardinality(message_ids);
begin
  perform parley_store.put_work(
    'mail', array_fill('POISON/-/-'::text, array[v_count]), message_ids,
    array_fill(convert_to(left(reason, 500), 'UTF8'), array[v_count])
  );
  perform parley_mail._p_track(
    array_fill('POISONMESSAGE'::text, array[v_count]), message_ids, null, null, array_fill(reason, array[v_count]),
    null, array_fill('POISONMESSAGE'::text, array[v_count])
  );
end
$$;

comment on function parley_mail._p_set_aside(bigint[], text) is
'Sets messages aside that are not categorized, for an operator.
Arguments: message_ids; reason, for the operator.
Source: spec mail 5.';

create function parley_mail._p_crashed(message_id bigint, reason text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_crashes integer;
  v_priority smallint;
  v_event text;
begin
  update parley_mail._p_message as m
  set crash_count = m.crash_count + 1
  where m.message_id = _p_crashed.message_id
  returning m.crash_count, m.priority, case when m.resubmissions > 0 then 'RESUBMIT' else 'SUBMIT' end
  into v_crashes, v_priority, v_event;
  if v_crashes is not null then
    perform parley_mail._p_track(
      array[v_event || case when v_crashes >= 2 then 'FAIL' else 'DEFER' end], array[message_id], null, null,
      array[reason], null, array['ROUTING']
    );
  end if;
  if v_crashes >= 2 then
    perform parley_mail._p_set_aside(array[message_id], reason);
    return true;
  end if;
  if v_crashes is not null then
    perform parley_mail._p_submit(array[message_id], v_priority, clock_timestamp() + interval '10 seconds');
  end if;
  return false;
end
$$;

comment on function parley_mail._p_crashed(bigint, text) is
'Counts that a message could not be categorized, or that the queue has set it aside after two rollbacks: it is tried
once more after ten seconds, and then set aside. Gives whether it was.
Source: spec mail 5.';
