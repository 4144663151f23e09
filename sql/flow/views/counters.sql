-- Counters, under the names that operators of such engines know (spec integration 17).

create function parley_flow._p_counter_rows(caller parley.caller default parley.current_caller())
returns table (object text, instance text, counter text, value numeric)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  with allowed as materialized (
    select from (select 1) as one
    where parley_flow._p_holds(parley.caller_role(caller), 'VIEW')
  ),

  counted as (
    select c.host, c.counter, sum(c.value) as value
    from (
      select o.host, o.counter, o.value from parley_flow._p_counter as o
      union all
      select o.host, o.counter, o.value from parley_flow._p_counter_change as o
    ) as c
    group by c.host, c.counter
  ),

  lanes as materialized (
    select h.name as host, sum(l.items) as items, sum(l.leases) as leases
    from parley_flow._p_host as h
    left join parley_store.lane_counts as l on l.system = h.system
    group by h.name
  )

  select r.object, r.instance, r.counter, r.value
  from allowed
  cross join (
    select 'Messaging' as object, coalesce(nullif(c.host, ''), '_Total of applications') as instance,
      n.name as counter, c.value
    from counted as c
    join (
      values ('documents_received', 'Documents received'), ('documents_processed', 'Documents processed'),
        ('documents_suspended', 'Documents suspended'), ('documents_resubmitted', 'Documents resubmitted'),
        ('values_too_long', 'Values too long to promote')
    ) as n (counter, name) on n.counter = c.counter
    union all
    select 'Message Box Host', l.host, 'Host Queue - Length', coalesce(l.items, 0) from lanes as l
    union all
    select 'Message Box Host', h.name, 'Host Queue - Suspended Msgs - Length', (
        select count(*) from parley_flow._p_suspended as u
        where u.send_port in (select s.name from parley_flow._p_send_port as s where s.host_id = h.host_id)
          or (u.send_port is null and u.location in (
            select l.name from parley_flow._p_receive_location as l where l.host_id = h.host_id
          ))
      )
    from parley_flow._p_host as h
    union all
    select 'Message Box Host', h.name, 'Host Queue - Number of Instances', (
        select count(*) from parley_flow._p_host_instance as i
        where i.host = h.name and i.reported_at > clock_timestamp() - interval '1 minute'
      )
    from parley_flow._p_host as h
    union all
    select 'Orchestrations', h.name, n.counter, coalesce(sum(i.instances) filter (
        where n.status is null or i.status = n.status
      ), 0)
    from parley_flow._p_host as h
    cross join (
      values ('Instances', null), ('Instances waiting', 'WAITING'), ('Instances retrying', 'RETRYING'),
        ('Instances suspended', 'SUSPENDED')
    ) as n (counter, status)
    left join (
      select s.host_id, o.status, count(*) as instances
      from parley_flow._p_instance as o
      join parley_flow._p_send_port as s on s.send_port_id = o.send_port_id
      group by s.host_id, o.status
    ) as i on i.host_id = h.host_id
    group by h.name, n.counter, n.status
    union all
    select 'Message Agent', l.host, 'In-process message leases', coalesce(l.leases, 0) from lanes as l
    union all
    select 'Message Box General', '', 'Spool Size', (select count(*) from parley_flow._p_message as m)
    union all
    select 'Message Box General', '', 'Total Suspended', (select count(*) from parley_flow._p_suspended as u)
    union all
    select 'Message Box General', '', 'Ledger Size', (select count(*) from parley_flow._p_ledger as g)
  ) as r
$$;

comment on function parley_flow._p_counter_rows(parley.caller) is 'Gives what parley_flow.counters shows.';

create view parley_flow.counters as
select c.object, c.instance, c.counter, c.value from parley_flow._p_counter_rows() as c;

comment on view parley_flow.counters is
'Counters of the engine, for who holds VIEW for all. instance: the host; what applications published and what no host
did is under "_Total of applications". Those of Messaging only grow; the sizes are counted when they are read.
Source: spec integration 17.';
