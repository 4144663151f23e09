-- Which objects the catalog shows to whom (spec 7.6, VIEW DEFINITION).
--
-- A view of the catalog has a row for the owner of its object, for whoever holds any permission on it, for who may see
-- all objects of the class, and for administrators. Objects that the system owns (ids below 65536) are shown to
-- everybody. The rights are those of current_user, who reads the view.
--
-- Cost: the views below stand in subqueries that do not depend on the row. PostgreSQL answers them once for each query,
-- so a row of the catalog costs one question about its owner and one probe of a hash table. Locks: none.

create view parley._p_permitted_object with (security_barrier) as
select p.class, p.object_id, p.permission
from parley._p_permission as p
where p.grantee = 0::regrole or pg_catalog.pg_has_role(p.grantee, 'usage');

comment on view parley._p_permitted_object is
'Permissions that whoever reads this holds by a grant: to the role, to one that it inherits, to PUBLIC.';

create view parley._p_visible_class with (security_barrier) as
select c.class
from (
  values ('database'), ('message type'), ('contract'), ('queue'), ('service'), ('route'), ('certificate'),
    ('remote service binding')
) as c (class)
where (select parley._p_is_administrator(parley._p_current_role()))
  -- A role that may monitor is shown the figures of each queue under its name already, and parley queues names the
  -- services of each.
  or (c.class in ('queue', 'service') and pg_catalog.pg_has_role('pg_monitor', 'usage'))
  or exists (
    select
    from parley._p_permitted_object as p
    where p.class = 'database'
      and p.permission in ('VIEW DEFINITION', 'ALTER ANY ' || pg_catalog.upper(c.class collate pg_catalog."C"))
  );

comment on view parley._p_visible_class is
'Classes of which whoever reads this sees every object: all for administrators and with VIEW DEFINITION on the database,
else those with ALTER ANY; queues and services for members of pg_monitor.
The class database stands for what belongs to no class, such as priorities and peers.';

create function parley._p_is_visible(role oid, class text, object_id integer, owner oid) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return $2 in ('message type', 'contract', 'queue', 'service') and object_id < 65536
    or pg_has_role(role, owner, 'usage')
    or $2 in ('queue', 'service') and pg_has_role(role, 'pg_monitor', 'usage')
    or exists (
      select
      from parley._p_permission as p
      where (
          p.class = $2 and p.object_id = $3
          or p.class = 'database' and p.permission in ('VIEW DEFINITION', 'ALTER ANY ' || upper($2 collate "C"))
        )
        and (p.grantee = 0::regrole or pg_has_role(role, p.grantee, 'usage'))
    )
    or parley._p_is_administrator(role);
end
$$;

comment on function parley._p_is_visible(oid, text, integer, oid) is
'Reports whether the catalog shows an object to a role: the rule of the views above, for functions that
run with their owner''s rights.
Arguments: role, 0 for what everybody sees; class, such as service; object_id; owner, the owner of the object.';
