-- The name of the view that each queue has, and its creation. views/queue_views.sql says which rows it shows.

create function parley._p_queue_view_name(queue_id integer) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when octet_length(q.lookup_name) <= 63 then q.lookup_name
    else (
      select left(q.lookup_name, max(n.characters)) || '_' || q.queue_id
      from generate_series(1, 50) as n (characters)
      where octet_length(left(q.lookup_name, n.characters)) <= 50
    )
  end
  from parley._p_queue as q
  where q.queue_id = $1
$$;

comment on function parley._p_queue_view_name(integer) is 'Gives the name of a queue''s view in schema parley_queue.';

create function parley._p_create_queue_view(queue_id integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_view text := parley._p_queue_view_name(queue_id);
begin
  execute format('create view parley_queue.%I as select * from parley.queue_contents(%L)', v_view, (
    select format('[%s].[%s]', replace(q.schema_name, ']', ']]'), replace(q.name, ']', ']]'))
    from parley._p_queue as q
    where q.queue_id = $1
  ));
  perform parley._p_take_back_relation(format('parley_queue.%I', v_view)::regclass);
  -- The function asks for the right to RECEIVE each time.
  execute format('grant select on parley_queue.%I to public', v_view);
end
$$;

comment on function parley._p_create_queue_view(integer) is 'Creates the view of a queue.';
