-- Changes that people made by a console: the role, the time, the objects.
--
-- The transaction of the change writes the record, so a change that is rolled back is not recorded. A program reports
-- what it does itself: a statement that somebody runs by another program is not in it. Records are of their role: no
-- role can write one in the name of another, or take one of another away.

create table parley._p_operator_action (
  action_id bigint generated always as identity primary key,
  done_at timestamptz not null default clock_timestamp(),
  role_name name not null,
  operation text not null,
  object_count integer not null,
  objects text[] not null,
  detail jsonb
);

comment on table parley._p_operator_action is
'Changes that people made by a console, a row each. objects: the first 100 of them. Records of a role are kept for 90
days, at most 10,000 of each role.';

create index _p_operator_action_role on parley._p_operator_action (role_name, action_id);

create function parley.record_operator_action(
  operation text,
  objects text[],
  detail jsonb default null,
  caller parley.caller default parley.current_caller()
) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_role name := pg_get_userbyid(parley._p_caller(caller));
  v_action bigint;
begin
  if operation is null or length(operation) not between 1 and 200 then
    found := parley._p_raise(8402, 'operator action', coalesce(length(operation), 0) || ' characters');
  elsif cardinality(objects) > 10000 then
    found := parley._p_raise(8402, 'operator action', cardinality(objects) || ' objects');
  elsif pg_column_size(detail) > 8192 then
    found := parley._p_raise(8402, 'operator action', pg_column_size(detail) || ' bytes of detail');
  end if;
  insert into parley._p_operator_action (role_name, operation, object_count, objects, detail)
  values (
    v_role, record_operator_action.operation, coalesce(cardinality(record_operator_action.objects), 0),
    array(
      select left(o.name, 200)
      from unnest(record_operator_action.objects) with ordinality as o (name, number)
      order by o.number
      limit 100
    ),
    record_operator_action.detail
  )
  returning action_id into v_action;
  delete from parley._p_operator_action as a
  where a.role_name = v_role
    and (
      a.done_at < clock_timestamp() - interval '90 days'
      or a.action_id <= (
        select n.action_id
        from parley._p_operator_action as n
        where n.role_name = v_role
        order by n.action_id desc
        offset 10000
        limit 1
      )
    );
  return v_action;
end
$$;

comment on function parley.record_operator_action(text, text[], jsonb, parley.caller) is
'Records that the caller changes something, for parley.operator_actions. Call it in the transaction of the change. Gives
the number of the record.
Arguments: operation, up to 200 characters; objects, what it is done to, up to 10,000 names, of which the first 100 are
kept, 200 characters of each, or null; detail, up to 8,192 bytes.
Errors: 8402 one of these is too long.';

create view parley.operator_actions with (security_barrier) as
select a.action_id, a.done_at, a.role_name, a.operation, a.object_count, a.objects, a.detail
from parley._p_operator_action as a
where (select parley._p_is_administrator(parley._p_current_role()))
  or exists (
    select from pg_catalog.pg_roles as r
    where r.rolname = a.role_name and pg_catalog.pg_has_role(r.oid, 'usage')
  );

comment on view parley.operator_actions is
'Changes that people made by a console. Administrators see all, others those of their own roles.';
comment on column parley.operator_actions.action_id is 'Number of the record.';
comment on column parley.operator_actions.done_at is 'When it was done.';
comment on column parley.operator_actions.role_name is 'Role that did it.';
comment on column parley.operator_actions.operation is 'The change, as the console names it.';
comment on column parley.operator_actions.object_count is 'How many objects it was done to.';
comment on column parley.operator_actions.objects is 'Their names, the first 100.';
comment on column parley.operator_actions.detail is 'Its result.';
