-- Ledgers of both sides, while readers, sessions and daemons are killed. A sender records a number in the transaction that sends it; a reader
-- in the transaction that receives it. So the tables tell what was committed, whatever a client has seen of it.

create table bench.chaos_sent (
  sender integer not null,
  number bigint not null,
  sent_at timestamptz not null default clock_timestamp(),
  primary key (sender, number)
);

create table bench.chaos_received (
  id bigint generated always as identity primary key,
  sender integer not null,
  number bigint not null,
  received_at timestamptz not null default clock_timestamp()
);

create index on bench.chaos_received (sender, number);

create procedure bench.read_chaos()
language plpgsql
as $$
declare
  v_count integer;
begin
  loop
    insert into bench.chaos_received (sender, number)
    select split_part(b.body, ' ', 1)::integer, split_part(b.body, ' ', 2)::bigint
    from parley.receive('chaos', 100, timeout => 2000) as r
    cross join lateral (select convert_from(r.message_body, 'UTF8') as body) as b;
    get diagnostics v_count = row_count;
    commit;
    exit when v_count = 0;
  end loop;
end
$$;

create view bench.chaos_findings as
select
  (select count(*) from bench.chaos_sent) as sent,
  (select count(*) from bench.chaos_received) as received,
  (
    select count(*) from bench.chaos_sent as s
    where not exists (select from bench.chaos_received as r where r.sender = s.sender and r.number = s.number)
  ) as lost,
  (select count(*) - count(distinct (r.sender, r.number)) from bench.chaos_received as r) as doubled,
  (
    select count(*)
    from (select r.number < lag(r.number) over (partition by r.sender order by r.id) as is_late from bench.chaos_received as r) as o
    where o.is_late
  ) as disordered,
  (
    select count(*) from bench.chaos_received as r
    where not exists (select from bench.chaos_sent as s where s.sender = r.sender and s.number = r.number)
  ) as never_sent;
