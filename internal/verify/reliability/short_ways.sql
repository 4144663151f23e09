-- The ledger's rows of the short ways: dialogs begun by begin_and_send, and messages of a simple queue. As there, a row
-- is written in the transaction that does what it says, and no key refuses a duplicate.

create schema short_ways;

create table short_ways.begun (deduplication_key text, handle uuid, is_first boolean);
create table short_ways.put (stream text, n bigint, deduplication_key text);
create table short_ways.taken (stream text, n bigint, seq bigint);
create table short_ways.counter (kind text, stream text, n bigint, primary key (kind, stream));

create function short_ways.begin_and_send(stream text, deduplication_key text, delay_ms integer, begun bigint) returns uuid
language plpgsql
as $$
declare
  v_body text := stream || '|1|';
  v_handle uuid := parley.begin_and_send(
    'initiator', 'target', 'DEFAULT', v_body, deduplication_key => $2, deliver_at => clock_timestamp() + delay_ms * interval '1 ms'
  );
  v_is_first boolean := $2 is null or not exists (select from short_ways.begun as b where b.handle = v_handle);
begin
  insert into short_ways.begun values ($2, v_handle, v_is_first);
  if not v_is_first then
    return null;
  end if;
  insert into ledger.sent
  select e.conversation_id, true, stream, 1, md5(convert_to(v_body, 'UTF8')), begun, v_handle
  from parley.conversation_endpoints as e where e.conversation_handle = v_handle;
  if not found then
    raise exception 'there is no conversation %, but it was begun', v_handle;
  end if;
  return v_handle;
end
$$;

-- The counter's row stays locked to the end of the transaction, so messages of one key are put in the order of their numbers.
create function short_ways.put(stream text, key text, size integer, delay_ms integer) returns void
language plpgsql
as $$
#variable_conflict use_column
declare
  v_last bigint;
  v_bodies text[];
  v_due timestamptz := clock_timestamp() + delay_ms * interval '1 ms';
begin
  insert into short_ways.counter as c (kind, stream, n) values ('put', $1, $3)
  on conflict on constraint counter_pkey do update set n = c.n + $3
  returning c.n into v_last;
  select array_agg($1 || '|' || i order by i) into v_bodies from generate_series(v_last - $3 + 1, v_last) as i;
  if $3 = 1 then
    perform parley.put('jobs', v_bodies[1], key => $2, deliver_at => v_due);
  else
    perform parley.put_batch('jobs', v_bodies, key => $2, deliver_at => v_due);
  end if;
  insert into short_ways.put (stream, n) select $1, i from generate_series(v_last - $3 + 1, v_last) as i;
end
$$;

create function short_ways.put_once(deduplication_key text) returns void
language plpgsql
as $$
begin
  if not (parley.put('jobs', 'once ' || $1 || '|1', deduplication_key => $1)).is_duplicate then
    insert into short_ways.put (stream, n, deduplication_key) values ('once ' || $1, 1, $1);
  end if;
end
$$;

create function short_ways.take(size integer) returns integer
language plpgsql
as $$
#variable_conflict use_column
declare
  v_message parley.taken_message;
  v_stream text;
  v_seq bigint;
  v_count integer := 0;
begin
  for v_message in select * from parley.take('jobs', size) loop
    v_stream := split_part(convert_from(v_message.body, 'UTF8'), '|', 1);
    v_seq := null;
    if v_message.key is not null then
      insert into short_ways.counter as c (kind, stream, n) values ('take', v_stream, 1)
      on conflict on constraint counter_pkey do update set n = c.n + 1
      returning c.n into v_seq;
    end if;
    insert into short_ways.taken values (v_stream, split_part(convert_from(v_message.body, 'UTF8'), '|', 2)::bigint, v_seq);
    v_count := v_count + 1;
  end loop;
  return v_count;
end
$$;

create view short_ways.verdict as
select 'lost from the simple queue' as fault, count(*) as violations
from (select p.stream, p.n from short_ways.put as p except all select t.stream, t.n from short_ways.taken as t) as l
union all
select 'taken twice, or never put', count(*)
from (select t.stream, t.n from short_ways.taken as t except all select p.stream, p.n from short_ways.put as p) as l
union all
select 'put twice', count(*) from (select from short_ways.put as p group by p.stream, p.n having count(*) > 1) as d
union all
select 'taken against the order of its key', count(*) from short_ways.taken as t where t.seq <> t.n
union all
select 'key to begin with, used twice', count(*)
from (
  select from short_ways.begun as b
  where b.deduplication_key is not null
  group by b.deduplication_key
  having count(distinct b.handle) > 1 or count(*) filter (where b.is_first) <> 1
) as k
union all
select 'deduplication keys more or less than were used', abs(
  (select count(*) from parley._p_deduplication_key)
  - (select count(distinct b.deduplication_key) from short_ways.begun as b)
  - (select count(distinct p.deduplication_key) from short_ways.put as p)
)
union all
select 'tombstones more or less than dialogs', abs(
  (select count(*) from parley._p_tombstone) - (select count(distinct s.dialog) from ledger.sent as s)
)
union all
select 'faults found by check_broker', count(*) from parley.check_broker() as c where c.level <> 'INFO';
