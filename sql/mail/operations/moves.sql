-- Numbers that mail trusts to grow: when a copy of the database goes on elsewhere, the broker asks for them.

create function parley_mail._p_sequence_floors() returns table (sequence regclass, floor bigint)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'parley_mail._p_message_id'::regclass, greatest(
    (select max(m.message_id) from parley_mail._p_message as m),
    (select max(k.body_id) from parley_mail._p_kept_body as k),
    (select max(a.attachment_id) from parley_mail._p_attachment as a),
    (select max(r.message_id) from parley_mail._p_recipient as r),
    -- Of messages that are gone, the newest are tracked last.
    (
      select max(t.message_id::bigint)
      from (
        select k.message_id from parley_store.tracking as k where k.system = 'mail' order by k.at desc limit 10000
      ) as t
      where t.message_id ~ '^[0-9]{1,18}$'
    )
  )
$$;

comment on function parley_mail._p_sequence_floors() is
'Gives the highest number that a message, an attachment or a body which is kept has.';
