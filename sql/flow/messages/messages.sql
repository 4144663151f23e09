-- Messages: immutable, one row each, from the publication to the end of the last delivery.
--
-- A body of up to 8,000 bytes stands in the row, a larger one in the store's content, to which the message refers as a
-- holder. A delivery is an item of the store; a message that waits for an operator has a row of _p_suspended. So how
-- many of both are open is the fate of the row: deliveries says with how many it began, _p_done counts those that have
-- ended of a message with several.
--
-- Invariants, and what keeps each:
--   a message is there as long as anything of it is open   who ends the last delivery removes it
--   the last is found, whoever ends it   who ends one locks the message, or has maintenance count
-- (flow/messages/finish.sql) Cost: one row and one entry of an index for a message.

create sequence parley_flow._p_message_id cache 64;

create table parley_flow._p_message (
  message_id bigint primary key default nextval('parley_flow._p_message_id'),
  interchange_id bigint,
  parent_id bigint,
  received_at timestamptz not null default clock_timestamp(),
  location_id integer,
  receive_port_id integer,
  published_by integer,
  deliveries smallint not null,
  size bigint not null,
  content_id bigint,
  message_type text,
  promoted jsonb not null,
  written jsonb,
  parts jsonb,
  body bytea
);

comment on table parley_flow._p_message is
'Messages. interchange_id: the first message of what came in together, null: itself; parent_id: the message that it was
made of; published_by: the number of the role that published it in SQL; promoted and written: properties, {"name":
scalar}; parts: null where the body is all there is.';

alter table parley_flow._p_message alter column body set storage external;

create index _p_message_parent on parley_flow._p_message (parent_id) where parent_id is not null;
create index _p_message_interchange on parley_flow._p_message (interchange_id) where interchange_id is not null;

create table parley_flow._p_done (
  message_id bigint not null,
  done_at timestamptz not null default clock_timestamp()
);

comment on table parley_flow._p_done is
'Deliveries that have ended, of messages that began with several: one row each, until the message is removed.';

alter table parley_flow._p_done replica identity full;

create index _p_done_message on parley_flow._p_done (message_id);

create table parley_flow._p_to_count (
  message_id bigint not null
);

comment on table parley_flow._p_to_count is
'Messages of which two deliveries may have ended at once, so that neither saw the other: maintenance counts them.';

alter table parley_flow._p_to_count replica identity full;

create table parley_flow._p_kept_message (
  message_id bigint primary key,
  kept_until timestamptz not null
);

comment on table parley_flow._p_kept_message is
'Messages that are finished and stay for a while, as keep_finished of their application says.';

create index _p_kept_message_until on parley_flow._p_kept_message (kept_until);

create function parley_flow._p_require_properties(properties jsonb, may_set_engine boolean) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wrong record;
begin
  if jsonb_typeof(properties) is distinct from 'object' then
    found := parley_flow._p_raise('properties', format('They are %s.', coalesce(jsonb_typeof(properties), 'null')));
  end if;
  select p.key, p.value into v_wrong
  from jsonb_each(properties) as p
  where jsonb_typeof(p.value) in ('object', 'array')
    or not parley_flow._p_is_property_name(p.key)
    or (not may_set_engine and p.key !~ '#')
    or p.key in ('MessageID', 'InterchangeID', 'ParentMessageID', 'ReceivedTime')
  limit 1;
  if not found then
    return true;
  elsif not parley_flow._p_is_property_name(v_wrong.key) then
    found := parley_flow._p_raise('property name', left(v_wrong.key, 100), 'It has 1 to 1000 bytes and one # at most.');
  elsif jsonb_typeof(v_wrong.value) in ('object', 'array') then
    found := parley_flow._p_raise(
      'properties', format('Property "%s" is an %s.', left(v_wrong.key, 100), jsonb_typeof(v_wrong.value))
    );
  elsif exists (select from parley_flow._p_engine_property as e where e.name = v_wrong.key) then
    found := parley_flow._p_raise('reserved', v_wrong.key);
  end if;
  found := parley_flow._p_raise('property name', v_wrong.key, 'Without # it would be one of the engine.');
  return false;
end
$$;

comment on function parley_flow._p_require_properties(jsonb, boolean) is
'Refuses properties that a message cannot have.
Arguments: properties; may_set_engine, whether those of the engine that a host sets are allowed.
Errors: PF010.';

create function parley_flow._p_require_all_properties(properties jsonb[], may_set_engine boolean) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_wrong jsonb;
begin
  -- One statement for a batch; which rule is broken is found out for the one that breaks it.
  select p.properties into v_wrong
  from unnest(properties) as p (properties)
  where jsonb_typeof(p.properties) <> 'object' or exists (
    select
    from jsonb_each(p.properties) as e
    where jsonb_typeof(e.value) in ('object', 'array') or octet_length(e.key) > 1000 or e.key ~ '[[:cntrl:]]'
      or e.key !~ '^[^#]+(#[^#]+)?$' or (not may_set_engine and strpos(e.key, '#') = 0)
      or e.key in ('MessageID', 'InterchangeID', 'ParentMessageID', 'ReceivedTime')
  )
  limit 1;
  if found then
    found := parley_flow._p_require_properties(v_wrong, may_set_engine);
  end if;
  return true;
end
$$;

comment on function parley_flow._p_require_all_properties(jsonb[], boolean) is
'Refuses properties that messages cannot have; null is none.
Arguments: as _p_require_properties.
Errors: PF010.';

create function parley_flow._p_split_long(promoted jsonb, out short jsonb, out long jsonb)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select
    jsonb_object_agg(p.key, p.value) filter (where octet_length(p.value #>> '{}') <= 8192),
    jsonb_object_agg(p.key, p.value) filter (where octet_length(p.value #>> '{}') > 8192)
  from jsonb_each(jsonb_strip_nulls(promoted)) as p
$$;

comment on function parley_flow._p_split_long(jsonb) is
'Parts properties into those that can be promoted and those whose values are longer than 8,192 bytes.';
