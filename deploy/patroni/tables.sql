-- Three ways of work, with tables of what was sent and what arrived: a simple queue, a service with an activated reader, an inbox that is
-- a table.
create table sent (body text primary key);
create table arrived (body text not null, reader text not null);
create table letters (subject text);

create function note_letter() returns trigger language plpgsql as $$
begin
  insert into public.arrived values (new.subject, 'mail');
  return null;
end
$$;
create trigger note_letter after insert on letters for each row execute function note_letter();

create procedure read_orders() language plpgsql as $$
declare
  m record;
begin
  loop
    for m in select * from parley.receive('orders', top => 100, timeout => 500) loop
      if m.message_type_name = 'DEFAULT' then
        insert into public.arrived values (parley.body_text(m.message_body), 'sql');
      end if;
      perform parley.end_conversation(m.conversation_handle);
    end loop;
    exit when not found;
    commit;
  end loop;
end
$$;

create procedure end_answered() language plpgsql as $$
declare
  m record;
begin
  loop
    for m in select * from parley.receive('answers', top => 100, timeout => 500) loop
      perform parley.end_conversation(m.conversation_handle);
    end loop;
    exit when not found;
    commit;
  end loop;
end
$$;

select parley.create_queue('jobs', kind => 'SIMPLE');
select parley.create_queue('orders', activation_procedure => 'public.read_orders', max_queue_readers => 2, execute_as => 'OWNER');
select parley.create_queue('answers', activation_procedure => 'public.end_answered', max_queue_readers => 1, execute_as => 'OWNER');
select parley.create_service('orders', 'orders', array['DEFAULT']);
select parley.create_service('shop', 'answers');
select count(*) from parley_mail.apply('{
  "organization": {"organization": {"default_domain": "shop.example", "fqdn": "mail.shop.example"}},
  "accepted domain": {"shop.example": {}},
  "service binding": {"letters": {"pattern": "letters@shop.example", "table": "public.letters"}}
}');
