-- How many messages travel in frames beside the first of each.
--
-- Counters take the number of rows from the position sequences, which are drawn anyway. A frame is one row, so the
-- messages in it but one are counted here, when it is written. They are counted in units of 1 and of 32, with a
-- sequence for each unit: a sequence cannot be moved on by more than its own step, and a row would make senders wait
-- for each other. As with positions, what rolls back is counted too, and a crash of the server may pass over up to 32
-- numbers of each sequence: some 1,000 messages.
-- Cost: up to 31 numbers drawn for a batch, and one more for each 32 messages: a hundredth of
-- what a batch of 1,000 costs.

create sequence parley._p_framed_1 minvalue 0 start 1;
create sequence parley._p_framed_32 minvalue 0 start 1;

create function parley._p_count_framed(messages bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  -- Assignments cost less than statements.
  v_drawn bigint := 0;
begin
  for i in 1 .. messages / 32 loop
    v_drawn := v_drawn + nextval('parley._p_framed_32');
  end loop;
  for i in 1 .. messages % 32 loop
    v_drawn := v_drawn + nextval('parley._p_framed_1');
  end loop;
end
$$;

comment on function parley._p_count_framed(bigint) is
'Counts messages that were put on a queue in frames. Arguments: messages, without the first of each
frame. Not undone by a rollback.';

create function parley._p_framed() returns bigint
language sql
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(parley._p_last_position('parley._p_framed_1'), 0) + 32 * coalesce(
    parley._p_last_position('parley._p_framed_32'), 0
  )
$$;

comment on function parley._p_framed() is
'Gives how many messages were ever put on queues in frames, without the first of each frame.';
