-- Messages that fail before anybody gets them: suspended, or routed as failed messages.
--
-- A failed message that is routed has the body of the one that failed, all its properties written, and ErrorReport
-- properties promoted. Ports get it, and instances whose receive asks for an ErrorReport property, also the one that
-- has sent what failed. Where no subscriber asks for it the one that failed is suspended after all.

create function parley_flow._p_error_report(
  draft parley_flow._p_draft, receive_port text, location text, address text, adapter text, send_port text, code text,
  error text, cause_id bigint
) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_strip_nulls(jsonb_build_object(
    'ErrorReport.ErrorType', 'FailedMessage',
    'ErrorReport.FailureCode', parley_flow._p_reported_code(code),
    'ErrorReport.FailureCategory', (select c.category from parley_flow.failure_codes as c where c.code = $7),
    'ErrorReport.MessageType', draft.message_type,
    'ErrorReport.ReceivePortName', receive_port,
    'ErrorReport.InboundTransportLocation', case when send_port is null then address end,
    'ErrorReport.SendPortName', send_port,
    'ErrorReport.OutboundTransportLocation', case when send_port is not null then address end,
    'ErrorReport.RoutingFailureReportID', cause_id,
    'ErrorReport.FailureAdapter', adapter
  ))
$$;

comment on function parley_flow._p_error_report(
  parley_flow._p_draft, text, text, text, text, text, text, text, bigint
) is 'Gives the promoted properties of a failed message that is routed.';

create function parley_flow._p_failed_draft(
  draft parley_flow._p_draft, report jsonb, error text, of_message bigint
) returns parley_flow._p_draft
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_failed parley_flow._p_draft := draft;
begin
  v_failed.promoted := report;
  v_failed.written := coalesce(draft.written, '{}') || draft.promoted || jsonb_build_object(
    'ErrorReport.Description', left(error, 10000), 'ErrorReport.FailureMessageID', of_message,
    'ErrorReport.FailureTime', to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
  );
  v_failed.message_type := null;
  v_failed.code := null;
  v_failed.error := null;
  return v_failed;
end
$$;

comment on function parley_flow._p_failed_draft(parley_flow._p_draft, jsonb, text, bigint) is
'Makes the draft of a failed message: all promotions are removed, and the report is promoted.
Arguments: draft, of the message that failed; report; error; of_message, its number.';

create function parley_flow._p_route_failed(draft parley_flow._p_draft, origin parley_flow._p_origin) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ports integer[] := array(select m.send_port_id from parley_flow._p_match(array[draft.promoted]) as m);
  v_instances bigint[];
  v_waiting_ports integer[];
begin
  select coalesce(array_agg(w.instance_id order by w.instance_id), '{}'),
    array_agg(w.send_port_id order by w.instance_id)
  into v_instances, v_waiting_ports
  from parley_flow._p_match_failed_waits(draft.promoted, draft.written) as w
  -- A message of a convoy is decided about in its lane.
  where not exists (
    select
    from parley_flow._p_send_port as s
    where s.send_port_id = w.send_port_id and s.send_port_id = any (v_ports) and s.convoy is not null
  );
  if v_ports = '{}' and v_instances = '{}' then
    return false;
  end if;
  perform parley_flow._p_store_drafts(
    array[draft], origin, array[cardinality(v_ports) + cardinality(v_instances)]
  );
  if v_ports <> '{}' then
    perform parley_flow._p_deliver(
      array[draft.message_id], array[draft.promoted], array_fill(1, array[cardinality(v_ports)]), v_ports
    );
  end if;
  if v_instances <> '{}' then
    perform parley_flow._p_deliver_to_instances(
      array[draft.message_id], array_fill(1, array[cardinality(v_instances)]), v_instances, v_waiting_ports
    );
  end if;
  return true;
end
$$;

comment on function parley_flow._p_route_failed(parley_flow._p_draft, parley_flow._p_origin) is
'Publishes a failed message, and reports whether anybody gets it: otherwise nothing is done.';

create function parley_flow._p_fail_draft(
  draft parley_flow._p_draft, origin parley_flow._p_origin, cause_id bigint
) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_code constant text := coalesce(draft.code, 'routing.no-subscription');
  v_error constant text := coalesce(draft.error, 'no send port that is enlisted asks for the message');
  v_stage constant text := case
    when coalesce(draft.code, 'routing.late-answer') = 'routing.late-answer' then 'ROUTE' else 'RECEIVE'
  end;
  -- An answer of a destination went through no location that could take it again.
  v_is_resumable constant boolean := draft.code is null or origin.location_id is not null;
  v_report jsonb;
begin
  if origin.routes_failed then
    select parley_flow._p_error_report(
      draft, draft.promoted ->> 'ReceivePortName', draft.promoted ->> 'ReceiveLocationName',
      draft.promoted ->> 'InboundTransportLocation', draft.promoted ->> 'InboundTransportType', null, v_code, v_error,
      cause_id
    ) into v_report;
    if parley_flow._p_route_failed(
      parley_flow._p_failed_draft(draft, v_report, v_error, draft.message_id), origin
    ) then
      return 'FAILED_ROUTED';
    end if;
  end if;
  perform parley_flow._p_store_drafts(array[draft], origin, array[1]);
  perform parley_flow._p_suspend_message(
    draft.message_id, v_stage, null, null, v_code, v_error, v_is_resumable, 0, cause_id => _p_fail_draft.cause_id
  );
  return 'SUSPENDED';
end
$$;

comment on function parley_flow._p_fail_draft(parley_flow._p_draft, parley_flow._p_origin, bigint) is
'Suspends a message that failed before anybody got it, or routes it as a failed one; gives which: SUSPENDED or
FAILED_ROUTED.
Arguments: draft; origin; cause_id, of a failure of routing, otherwise null.';

create function parley_flow._p_fail_drafts(
  drafts parley_flow._p_draft[], origin parley_flow._p_origin, ns integer[]
) returns table (n integer, message_id bigint, outcome text)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_group record;
  v_cause bigint;
  v_suspended integer := 0;
begin
  -- Those that do not differ in what filters name have one cause.
  for v_group in
    select array_agg(u.n order by u.n) as ns, drafts[u.n].code is null as is_unrouted
    from unnest(ns) as u (n)
    group by drafts[u.n].code is null,
      case when drafts[u.n].code is null then parley_flow._p_routing_key(drafts[u.n].promoted) end,
      case when drafts[u.n].code is null then drafts[u.n].message_type end
  loop
    v_cause := null;
    if v_group.is_unrouted then
      v_cause := parley_flow._p_record_routing_failure(
        drafts[v_group.ns[1]], origin, cardinality(v_group.ns)
      );
    end if;
    foreach n in array v_group.ns loop
      message_id := drafts[n].message_id;
      outcome := parley_flow._p_fail_draft(drafts[n], origin, v_cause);
      v_suspended := v_suspended + (outcome = 'SUSPENDED')::integer;
      return next;
    end loop;
  end loop;
  perform parley_flow._p_count('', array['documents_suspended'], array[v_suspended]);
end
$$;

comment on function parley_flow._p_fail_drafts(parley_flow._p_draft[], parley_flow._p_origin, integer[]) is
'Suspends or routes those of some messages that failed, or that matched nothing; gives what became of each.
Arguments: drafts; origin; ns, which of them, from 1 on.';
