-- Why a predicate missed a message: the reason, where it is one of the whole message, and not of the value alone.

create function parley_flow._p_reason(predicate parley_flow._p_predicate, key jsonb, draft parley_flow._p_draft)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when predicate.property = 'MessageID'
      or parley_flow._p_satisfies(
        key ->> predicate.property, predicate.operator, predicate.operand, predicate.operands, predicate.type
      ) then 'SATISFIED'
    -- A pipeline that makes no type promotes nothing of the body. The engine and its adapters promote their own.
    when draft.message_type is null and not key ? predicate.property
      and (predicate.property = 'MessageType' or predicate.property ~ '#')
      and not starts_with(predicate.property, 'urn:parley:') then 'UNTYPED'
    -- Text that is ASCII, which has a byte for each character, is the same in each charset.
    when draft.written ? 'urn:parley:pipeline#Warning'
      and octet_length(convert_to(draft.promoted ->> predicate.property, 'UTF8'))
      > length(draft.promoted ->> predicate.property) then 'ENCODING'
  end
$$;

comment on function parley_flow._p_reason(parley_flow._p_predicate, jsonb, parley_flow._p_draft) is
'Gives why a predicate of a filter missed a message: UNTYPED, the message has no type, and with it no property of its
body; ENCODING, two charsets were declared for it, and the value is not ASCII; null, it has another value, or none;
SATISFIED, it did not.
Arguments: predicate; key, as _p_routing_key gives it; draft, the message.';
