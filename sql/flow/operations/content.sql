-- Bodies and properties of messages, for who may read them; and messages that are edited and resubmitted.

create function parley_flow._p_application_of(message_id bigint) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(p.application, (
    select u.application from parley_flow._p_suspended as u where u.message_id = $1 order by u.suspension_id limit 1
  ))
  from parley_flow._p_message as m
  left join parley_flow._p_receive_port as p on p.receive_port_id = m.receive_port_id
  where m.message_id = $1
$$;

comment on function parley_flow._p_application_of(bigint) is
'Gives the application of a message: that of the port by which it came, or else where it is suspended; null for none.';

create function parley_flow._p_require_content(caller oid, message_id bigint) returns parley_flow._p_message
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_message parley_flow._p_message;
begin
  found := parley_flow._p_require(caller, 'READ_CONTENT', parley_flow._p_application_of(message_id));
  select * into v_message from parley_flow._p_message as m where m.message_id = $2;
  if not found then
    found := parley_flow._p_raise('message', coalesce(message_id::text, 'null'));
  end if;
  return v_message;
end
$$;

comment on function parley_flow._p_require_content(oid, bigint) is
'Gives a message whose content a role may read.
Errors: PF001, PF006.';

create function parley_flow._p_part_of(message parley_flow._p_message, part integer) returns bytea
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_part constant jsonb := message.parts -> (part - 1);
begin
  if part <> 1 and v_part is null or part is null then
    found := parley_flow._p_raise('part', message.message_id::text, coalesce(part::text, 'null'));
  end if;
  if v_part ->> 'content_id' is not null then
    return parley_store.read_bytes((v_part ->> 'content_id')::bigint, 'flow', message.message_id);
  elsif message.content_id is not null then
    return parley_store.read_bytes(message.content_id, 'flow', message.message_id);
  end if;
  return message.body;
end
$$;

comment on function parley_flow._p_part_of(parley_flow._p_message, integer) is
'Gives the bytes of a part of a message, from 1 on; 1 of a message of one part is its body.
Errors: PF006, PS010.';

create function parley_flow.read_message(
  message_id bigint, part integer default 1, caller parley.caller default parley.current_caller()
) returns bytea
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_message constant parley_flow._p_message := parley_flow._p_require_content(v_caller, message_id);
begin
  perform parley_flow._p_record_audit(
    v_caller, 'read', format('message %s', message_id), jsonb_build_object('part', part)
  );
  raise log 'role % reads part % of message % of the integration engine', pg_get_userbyid(v_caller), part, message_id;
  return parley_flow._p_part_of(v_message, part);
end
$$;

comment on function parley_flow.read_message(bigint, integer, parley.caller) is
'Gives the bytes of a message, or of one of its parts. That it was read is recorded, and stands in the log of the server
whatever the caller rolls back.
Arguments: message_id; part, from 1 on.
Errors: PF001 without READ_CONTENT for its application, PF006 no such message or part, PS010.';

create function parley_flow.read_properties(
  message_id bigint, caller parley.caller default parley.current_caller()
) returns table (name text, value jsonb, is_promoted boolean, type text)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_message constant parley_flow._p_message := parley_flow._p_require_content(v_caller, message_id);
begin
  perform parley_flow._p_record_audit(v_caller, 'read properties', format('message %s', message_id), null);
  return query
  select p.key, p.value, true, coalesce(y.type, 'text')
  from jsonb_each(v_message.promoted - 'CorrelationToken') as p
  left join parley_flow._p_property as y on y.name = p.key
  union all
  select w.key, w.value, false, coalesce(y.type, 'text')
  -- The token of a request is half of what an answer needs.
  from jsonb_each(coalesce(v_message.written, '{}') - 'CorrelationToken') as w
  left join parley_flow._p_property as y on y.name = w.key
  order by 1;
end
$$;

comment on function parley_flow.read_properties(bigint, parley.caller) is
'Gives all properties of a message, those that are sensitive too. That they were read is recorded.
Errors: PF001 without READ_CONTENT for its application, PF006 no such message.';

create function parley_flow._p_resubmitted(
  message parley_flow._p_message, body bytea, properties jsonb
) returns parley_flow._p_draft
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_draft parley_flow._p_draft;
begin
  v_draft.message_id := nextval('parley_flow._p_message_id');
  v_draft.interchange_id := message.interchange_id;
  v_draft.parent_id := message.message_id;
  v_draft.message_type := message.message_type;
  v_draft.promoted := jsonb_strip_nulls(message.promoted || coalesce(properties, '{}'));
  v_draft.written := message.written;
  if body is not null then
    v_draft.size := octet_length(body);
    v_draft.content_id := (parley_flow._p_put_bodies(array[v_draft.message_id], array[body]))[1];
    v_draft.body := case when v_draft.content_id is null then body end;
    return v_draft;
  end if;
  v_draft.size := message.size;
  v_draft.content_id := message.content_id;
  v_draft.body := message.body;
  v_draft.parts := message.parts;
  perform parley_store.share_content(c.content_id, 'flow', message.message_id, v_draft.message_id)
  from (
    select message.content_id where message.content_id is not null
    union
    select (p.part ->> 'content_id')::bigint
    from jsonb_array_elements(message.parts) as p (part)
    where p.part ->> 'content_id' is not null
  ) as c (content_id);
  return v_draft;
end
$$;

comment on function parley_flow._p_resubmitted(parley_flow._p_message, bytea, jsonb) is
'Makes the draft of a message that takes the place of a suspended one.
Arguments: message; body, null: the same; properties, promoted instead of those of the same name, null: removed.';

create function parley_flow.resubmit(
  suspension_id bigint, body bytea default null, properties jsonb default null, reason text default null,
  caller parley.caller default parley.current_caller()
) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_suspended parley_flow._p_suspended;
  v_message parley_flow._p_message;
  v_draft parley_flow._p_draft;
  v_origin parley_flow._p_origin;
begin
  select * into v_suspended from parley_flow._p_suspended as u where u.suspension_id = $1 for update;
  found := parley_flow._p_require(v_caller, 'OPERATE', v_suspended.application);
  if v_suspended.suspension_id is null then
    found := parley_flow._p_raise('suspension', coalesce(suspension_id::text, 'null'));
  end if;
  if properties is not null then
    found := parley_flow._p_require_properties(properties, false);
  end if;
  select * into v_message from parley_flow._p_message as m where m.message_id = v_suspended.message_id;
  if body is not null or properties is not null then
    perform parley_flow._p_keep_original(v_message.message_id);
  end if;
  v_draft := parley_flow._p_resubmitted(v_message, body, properties);
  v_origin := row(
    v_message.location_id, v_message.receive_port_id, v_suspended.application, false, v_message.published_by
  );
  perform parley_flow._p_track_one('RESUBMIT', '', coalesce(v_suspended.send_port, ''), v_message.message_id,
    jsonb_build_object('by', pg_get_userbyid(v_caller), 'child', v_draft.message_id));
  if not parley_flow._p_resubmit_as(v_suspended, v_draft, v_origin) then
    found := parley_flow._p_raise('not resumable', suspension_id::text, 'Its send port or receive location is gone.');
  end if;
  perform parley_flow._p_terminate_one(v_caller, v_suspended);
  perform parley_flow._p_count('', array['documents_resubmitted'], array[1]);
  perform parley_flow._p_record_audit(v_caller, 'resubmit', format('message %s', v_message.message_id),
    jsonb_build_object('as', v_draft.message_id, 'has_new_body', body is not null, 'properties', (
      select jsonb_agg(k.key) from jsonb_object_keys(properties) as k (key)
    ), 'reason', left(reason, 1000)));
  return v_draft.message_id;
end
$$;

comment on function parley_flow.resubmit(bigint, bytea, jsonb, text, parley.caller) is
'Puts another message in the place of a suspended one, with a link to it, and ends the suspended one: for its send port
alone, into the pipeline of its location, or routed anew where it matched nothing. Gives the number of the new message.
One that differs leaves its original as it came, for as long as the retention "originals" says.
Arguments: suspension_id; body, null: the same; properties, promoted besides or instead, null removes one; reason, that
stands in parley_flow.audit, its first 1,000 characters.
Errors: PF001 without OPERATE for its application, PF006 no such suspended message, PF010 malformed, PF015 its port or
location is gone.';

create function parley_flow._p_resubmit_as(
  suspended parley_flow._p_suspended, draft parley_flow._p_draft, origin parley_flow._p_origin
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_new parley_flow._p_suspended := suspended;
begin
  if suspended.stage = 'ROUTE' then
    perform parley_flow._p_publish_drafts(array[draft], origin);
    return true;
  end if;
  perform parley_flow._p_store_drafts(array[draft], origin, array[1]);
  v_new.message_id := draft.message_id;
  if suspended.stage = 'RECEIVE' then
    return parley_flow._p_resume_receive(v_new);
  elsif suspended.lane is not null then
    -- Into its place; the end of the suspended one lets the lane go.
    return parley_store.replace_subject(suspended.system, suspended.lane, suspended.message_id, draft.message_id);
  end if;
  return parley_flow._p_resume_send(v_new);
end
$$;

comment on function parley_flow._p_resubmit_as(
  parley_flow._p_suspended, parley_flow._p_draft, parley_flow._p_origin
) is
'Publishes the message that takes the place of a suspended one, where that failed; false when its port or location is
gone.';
