-- Large messages of secured dialogs: each part is sealed by itself, and the run that stands for all of them brings a
-- sealed digest of the whole. So parts that somebody else has slipped in are found, whoever they came from, before the
-- message is put together.
-- Cost: the body is read once more on each side, in one statement.

create function parley._p_digest_body(endpoint_id bigint, sequence bigint) returns bytea
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select sha256(t.body)
    from parley._p_transit as t
    where t.endpoint_id = _p_digest_body.endpoint_id and t.first_sequence = sequence
  );
end
$$;

comment on function parley._p_digest_body(bigint, bigint) is
'Gives the SHA-256 of a body in transit, null when it has been acknowledged.
Arguments: endpoint_id and sequence of the message.';

create function parley._p_verify_fragments(
  conversation_id uuid, from_initiator boolean, sequence bigint, size bigint, digest bytea
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_body bytea;
begin
  select string_agg(f.data, '' order by f.first_byte) into v_body
  from parley._p_fragment as f
  where f.conversation_id = _p_verify_fragments.conversation_id
    and f.from_initiator = _p_verify_fragments.from_initiator
    and f.sequence = _p_verify_fragments.sequence;
  if octet_length(v_body) = size and sha256(v_body) = digest then
    return true;
  elsif octet_length(v_body) is null or octet_length(v_body) < size then
    return true;
  end if;
  delete from parley._p_fragment as f
  where f.conversation_id = _p_verify_fragments.conversation_id
    and f.from_initiator = _p_verify_fragments.from_initiator
    and f.sequence = _p_verify_fragments.sequence;
  return false;
end
$$;

comment on function parley._p_verify_fragments(uuid, boolean, bigint, bigint, bytea) is
'Reports whether the stored fragments of a message are parts of the body with a digest, as far as that is known: false,
when they are complete and are not. Then they are deleted, and the sender begins again.
Arguments: the message; size in bytes and digest of the whole body.';
