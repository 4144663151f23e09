-- Messages that are too large to travel in one piece.
--
-- Fragments are stored as they come, each in a transaction of its own, and put together when the run itself comes,
-- which names the size. A link that is lost continues where the stored part ends. Those of a message that never comes
-- are deleted after a day (fire_timers).

create table parley._p_fragment (
  conversation_id uuid not null,
  from_initiator boolean not null,
  sequence bigint not null,
  first_byte bigint not null,
  size bigint not null,
  data bytea not null,
  stored_at timestamptz not null default clock_timestamp(),
  primary key (conversation_id, from_initiator, sequence, first_byte)
);

comment on table parley._p_fragment is 'Parts of messages that are not complete yet.';

alter table parley._p_fragment alter column data set storage external;

create function parley._p_accept_fragment(
  broker_instance uuid, epoch bigint, term bigint, token uuid,
  conversation_id uuid, from_initiator boolean, sequence bigint, first_byte bigint, size bigint, data bytea,
  to_service text, to_broker uuid, identity text, sealed_at timestamptz
) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_stored bigint;
  v_service parley._p_service;
begin
  if parley._p_refusal_of_speaker(array[identity], broker_instance, epoch) is not null
    or parley._p_admit_speaker(broker_instance, epoch, term, token, identity !~ 'peer:') is not null then
    return null;
  end if;
  if not exists (
    select
    from parley._p_endpoint as e
    where e.conversation_id = _p_accept_fragment.conversation_id
      and e.is_initiator = not from_initiator
      and e.far_broker_instance = _p_accept_fragment.broker_instance::text
  ) then
    -- The first message of a dialog: who may not send it may not fill our disk with it either.
    select * into v_service from parley._p_service as s where s.name = to_service;
    if not found or not from_initiator or sequence <> 0
      or to_broker <> (select b.service_broker_guid from parley._p_broker as b)
      or parley._p_was_opened(conversation_id)
      or parley._p_refuse_replay(sealed_at) is not null
      or parley._p_may_send(parley._p_role_of_identity(identity), v_service) is not true then
      return null;
    end if;
  end if;
  select coalesce(sum(octet_length(f.data)), 0) into v_stored
  from parley._p_fragment as f
  where f.conversation_id = _p_accept_fragment.conversation_id
    and f.from_initiator = _p_accept_fragment.from_initiator
    and f.sequence = _p_accept_fragment.sequence;
  if first_byte = v_stored and octet_length(data) > 0 and first_byte + octet_length(data) <= size then
    insert into parley._p_fragment (conversation_id, from_initiator, sequence, first_byte, size, data)
    values (conversation_id, from_initiator, sequence, first_byte, size, data)
    on conflict do nothing;
    v_stored := v_stored + octet_length(data);
  end if;
  return v_stored;
end
$$;

comment on function parley._p_accept_fragment(
  uuid, bigint, bigint, uuid, uuid, boolean, bigint, bigint, bigint, bytea, text, uuid, text, timestamptz
) is
'Stores the next part of a large message, and gives how many bytes of it there are, from the first on: where to go on. A
part that is not the next one is not stored. Null when it is not wanted: the speaker is superseded, or may not send
there; the answer to the run itself gives the reason.
Arguments: the speaker; conversation_id, from_initiator, sequence of the message; first_byte of the part; size of the
message in bytes; data; to_service, to_broker, identity and sealed_at, as for a run.
Source: spec 6.9.';

create function parley._p_assemble(
  conversation_id uuid, from_initiator boolean, sequence bigint, size bigint
) returns bytea[]
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_body bytea;
begin
  select string_agg(f.data, '' order by f.first_byte) into v_body
  from parley._p_fragment as f
  where f.conversation_id = _p_assemble.conversation_id
    and f.from_initiator = _p_assemble.from_initiator
    and f.sequence = _p_assemble.sequence;
  if octet_length(v_body) is distinct from size then
    return null;
  end if;
  delete from parley._p_fragment as f
  where f.conversation_id = _p_assemble.conversation_id
    and f.from_initiator = _p_assemble.from_initiator
    and f.sequence = _p_assemble.sequence;
  return array[v_body];
end
$$;

comment on function parley._p_assemble(uuid, boolean, bigint, bigint) is
'Puts the fragments of a message together and removes them; null when they are not all there.
Arguments: the message; size in bytes.';
