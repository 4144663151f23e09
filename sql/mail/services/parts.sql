-- Parts of messages that services have received, read out of their payload (spec mail 12.2).
--
-- The payload says where a part stands in the raw message and how it is encoded. It is decoded as internal/mail/parts
-- decodes it, which refuses nothing. A base64 letter is a letter; everything else is passed by, and so are bytes behind
-- the first padding. A sign that quotes nothing stays, and blanks at line ends go. A test holds the two to one another.

create function parley_mail.read_part(
  payload jsonb, part text, caller parley.caller default parley.current_caller()
) returns bytea
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_part jsonb;
  v_parts text;
  v_offset bigint;
  v_bytes bigint;
  v_piece text;
  v_encoded bytea;
begin
  select (array_agg(d.described) filter (where d.described ->> 'part' = read_part.part))[1],
    string_agg(d.described ->> 'part', ', ')
  into v_part, v_parts
  from (
    select payload #> '{parsed,text}' as described
    union all
    select payload #> '{parsed,html}'
    union all
    select a.described
    from jsonb_array_elements(
      case when jsonb_typeof(payload -> 'attachments') = 'array' then payload -> 'attachments' else '[]' end
    ) as a (described)
  ) as d;
  if v_part is null then
    found := parley_mail._p_raise('part', coalesce(part, 'null'), coalesce(v_parts, 'none'));
  end if;
  v_offset := (v_part ->> 'offset')::bigint;
  v_bytes := (v_part ->> 'bytes')::bigint;
  if payload ->> 'raw' is null then
    v_encoded := parley_mail.read_raw(
      (payload ->> 'raw_reference')::bigint, v_offset, v_bytes::integer, caller => caller
    );
  else
    -- Three bytes are four letters: no more of it is decoded than is asked for.
    v_piece := substr(
      payload ->> 'raw', (v_offset / 3 * 4 + 1)::integer, ((v_offset % 3 + v_bytes + 2) / 3 * 4)::integer
    );
    v_encoded := substr(decode(v_piece, 'base64'), (v_offset % 3 + 1)::integer, v_bytes::integer);
  end if;
  return parley_mail._p_decoded_part(v_encoded, v_part ->> 'encoding');
end
$$;

comment on function parley_mail.read_part(jsonb, text, parley.caller) is
'Gives the bytes of an attachment, or of the text or the HTML, of a message that a service has received, decoded. It
is read out of the payload, or from where raw_reference says (read_raw).
Arguments: payload, what the service has received; part, its number there, such as 2 or 1.2.
Errors: PM004 there is no such part, PM006 the raw message is not there, or the role may not read it.
Source: spec mail 12.2.';
