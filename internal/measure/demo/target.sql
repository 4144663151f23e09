-- The receiving side: its queue and service, the tables that it fills, and the procedure that its messages start.

select parley.create_queue('MySSBLabTestQueue', status => true, retention => false);
select parley.create_service('//MySSB.com/Lab/S_Test', 'MySSBLabTestQueue', array['//MySSB.com/Lab/C_Test']);

-- The paper's dbo.messageDrop. The two further columns are for the final check: the order of arrival, and the MD5 of all
-- that followed the header of the body, computed where it was received.
create table message_drop (
  message_drop_id bigint generated always as identity,
  message_val bytea,
  payload_md5 uuid
) with (toast_tuple_target = 8160);

-- How many messages each call of RECEIVE brought, and when.
create table receive_log (
  messages integer not null,
  received_at timestamptz not null default clock_timestamp()
);

-- The paper's dbo.SRPerf_Queue_LabTest. Its RECEIVE goes into a table variable; a materialized query serves the same
-- end. The paper leaves one thing out that is done here: a target whose far side has ended must end as well, or it
-- leaks.
create procedure receive_lab_test()
language plpgsql
as $$
declare
  v_messages integer;
  v_ended uuid[];
begin
  loop
    with received as materialized (
      select r.message_type_name, r.message_body, r.conversation_handle
      from parley.receive('MySSBLabTestQueue', top => 10000, timeout => 3000) as r
    ), dropped as (
      insert into message_drop (message_val, payload_md5)
      select substring(r.message_body from 1 for 2000), md5(substring(r.message_body from 29))::uuid
      from received as r
      where r.message_type_name = '//MySSB.com/Lab/M_Test'
    )
    select count(*) filter (where r.message_type_name = '//MySSB.com/Lab/M_Test'),
      array_agg(r.conversation_handle) filter (where r.message_type_name <> '//MySSB.com/Lab/M_Test')
    into v_messages, v_ended
    from received as r;

    if v_messages = 0 and v_ended is null then
      rollback;
      exit;
    end if;
    for i in 1 .. coalesce(cardinality(v_ended), 0) loop
      perform parley.end_conversation(v_ended[i]);
    end loop;
    if v_messages > 0 then
      insert into receive_log (messages) values (v_messages);
    end if;
    commit;
  end loop;
end
$$;
