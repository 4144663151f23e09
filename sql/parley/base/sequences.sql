-- The last values of sequences, read without taking a number from them.

create function parley._p_last_position(position_sequence regclass) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_last bigint;
begin
  execute format('select case when s.is_called then s.last_value end from %s as s', position_sequence) into v_last;
  return v_last;
end
$$;

comment on function parley._p_last_position(regclass) is
'Gives the last value of a queue''s position sequence.
Unlike pg_sequence_last_value this leaves no lock behind that could be taken for a sender''s.';

create function parley._p_last_values(sequences regclass[]) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_values bigint[] := array[]::bigint[];
begin
  for i in 1 .. coalesce(cardinality(sequences), 0) by 100 loop
    -- The savepoint, rolled back, lets go of the locks on the sequences: a thousand would crowd the server's lock
    -- table, and their queues could not be dropped meanwhile.
    begin
      for n in i .. least(i + 99, cardinality(sequences)) loop
        v_values := v_values || coalesce(parley._p_last_position(sequences[n]), 0);
      end loop;
      raise exception 'read' using errcode = 'PB001';
    exception
      when sqlstate 'PB001' then
        null;
    end;
  end loop;
  return v_values;
end
$$;

comment on function parley._p_last_values(regclass[]) is
'Gives the last values of sequences, 0 for those never used, and leaves no lock behind.
Errors: none of its own.';
