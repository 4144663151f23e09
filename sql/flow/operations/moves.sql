-- Numbers that the engine trusts to grow: when a copy of the database goes on elsewhere, the broker asks for them.

create function parley_flow._p_sequence_floors() returns table (sequence regclass, floor bigint)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'parley_flow._p_message_id'::regclass, greatest(
    (select max(m.message_id) from parley_flow._p_message as m),
    (select max(b.message_id) from parley_flow._p_begun_body as b),
    (select max(g.message_id) from parley_flow._p_ledger as g),
    -- Of messages that are gone, the newest are tracked last.
    (
      select max(
        case when t.message_id ~ '^b' then (substr(t.message_id, 2)::bigint + 1) * 64 else t.message_id::bigint end
      )
      from (
        select k.message_id from parley_store.tracking as k where k.system = 'flow' order by k.at desc limit 10000
      ) as t
      where t.message_id ~ '^b?[0-9]{1,17}$'
    )
  )
  union all
  select 'parley_flow._p_group_id'::regclass, (select max(g.group_id) from parley_flow._p_group as g)
  union all
  select 'parley_flow._p_instance_id'::regclass, (select max(i.instance_id) from parley_flow._p_instance as i)
$$;

comment on function parley_flow._p_sequence_floors() is
'Gives the highest number that a message has, that an AND group has, and that an instance of an orchestration has.';

create function parley_flow._p_go_on_elsewhere() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  -- Another server may hash otherwise.
  perform parley_flow._p_begin_change();
  perform parley_flow._p_subscribe(null);
end
$$;

comment on function parley_flow._p_go_on_elsewhere() is
'Makes the subscriptions anew. The broker calls it when it is enabled where it was not before.';
