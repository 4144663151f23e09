-- How many messages travel in frames beside the first of each.
--
-- Counters take the number of rows from the position sequences, which are drawn anyway. A frame is one row, so the messages in it but one are
-- counted here, when it is written: in units of 1, 2, 4 and so on up to 256, a sequence for each unit, since a sequence cannot be moved on by
-- more than its own step and a row would make senders wait for each other.
-- As with positions, what rolls back is counted too, and a crash of the server may pass over up to 32 numbers of each sequence: some 16,000 messages.
-- Cost: up to eight numbers drawn for a batch, and one more for each 256 messages: a fiftieth of what a batch of 1,000 costs.

create sequence parley._p_framed_1 minvalue 0 start 1;
create sequence parley._p_framed_2 minvalue 0 start 1;
create sequence parley._p_framed_4 minvalue 0 start 1;
create sequence parley._p_framed_8 minvalue 0 start 1;
create sequence parley._p_framed_16 minvalue 0 start 1;
create sequence parley._p_framed_32 minvalue 0 start 1;
create sequence parley._p_framed_64 minvalue 0 start 1;
create sequence parley._p_framed_128 minvalue 0 start 1;
create sequence parley._p_framed_256 minvalue 0 start 1;

create function parley._p_count_framed(messages bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  -- Assignments cost less than statements.
  v_drawn bigint := 0;
begin
  for i in 1 .. messages / 256 loop
    v_drawn := v_drawn + nextval('parley._p_framed_256');
  end loop;
  if messages & 1 > 0 then
    v_drawn := v_drawn + nextval('parley._p_framed_1');
  end if;
  if messages & 2 > 0 then
    v_drawn := v_drawn + nextval('parley._p_framed_2');
  end if;
  if messages & 4 > 0 then
    v_drawn := v_drawn + nextval('parley._p_framed_4');
  end if;
  if messages & 8 > 0 then
    v_drawn := v_drawn + nextval('parley._p_framed_8');
  end if;
  if messages & 16 > 0 then
    v_drawn := v_drawn + nextval('parley._p_framed_16');
  end if;
  if messages & 32 > 0 then
    v_drawn := v_drawn + nextval('parley._p_framed_32');
  end if;
  if messages & 64 > 0 then
    v_drawn := v_drawn + nextval('parley._p_framed_64');
  end if;
  if messages & 128 > 0 then
    v_drawn := v_drawn + nextval('parley._p_framed_128');
  end if;
end
$$;

comment on function parley._p_count_framed(bigint) is
'Counts messages that were put on a queue in frames. Arguments: messages, without the first of each frame. Not undone by a rollback.';

create function parley._p_framed() returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select sum(u.unit * u.drawn)::bigint
    from unnest(
      array[1, 2, 4, 8, 16, 32, 64, 128, 256],
      parley._p_last_values(array[
        'parley._p_framed_1', 'parley._p_framed_2', 'parley._p_framed_4', 'parley._p_framed_8', 'parley._p_framed_16', 'parley._p_framed_32',
        'parley._p_framed_64', 'parley._p_framed_128', 'parley._p_framed_256'
      ]::regclass[])
    ) as u (unit, drawn)
  );
end
$$;

comment on function parley._p_framed() is 'Gives how many messages were ever put on queues in frames, without the first of each frame.';
