-- Which broker this is, and whether it is where it was.
--
-- The id of the broker lives in the database, and so a copy of the database has it too: CREATE DATABASE ... TEMPLATE, a
-- dump that is restored, a base backup that becomes a second server. Beside the id stands where the broker was enabled
-- last: the identifier of the server and the oid of the database. Where these differ nobody can know whether the broker
-- has moved or was copied, so it is switched off and somebody has to say (spec 9.1). A copy of a whole server, made by
-- its files, has both: that one cannot be distinguished from the original.

create function parley._p_system_identifier() returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (select c.system_identifier from pg_control_system() as c);
exception
  when insufficient_privilege then
    return null;
end
$$;

comment on function parley._p_system_identifier() is
'Gives the identifier that the server got when it was created, or null where it is kept from us.';

create function parley._p_database_oid() returns oid
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select d.oid from pg_database as d where d.datname = current_database()
$$;

comment on function parley._p_database_oid() is 'Gives the oid of this database.';

create function parley._p_is_elsewhere() returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select b.database_oid <> parley._p_database_oid() or coalesce(
    b.system_identifier <> parley._p_system_identifier(), false
  )
  from parley._p_broker as b
$$;

comment on function parley._p_is_elsewhere() is
'Reports whether this is another database than the one in which the broker was enabled last.';

create function parley._p_original() returns name
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select d.datname
  from parley._p_broker as b
  join pg_database as d on d.oid = b.database_oid
  where b.system_identifier = parley._p_system_identifier()
    and d.oid <> parley._p_database_oid()
$$;

comment on function parley._p_original() is
'Gives the name of the database that this one is a copy of, when it is still there, on the same server; otherwise
null.';

create function parley._p_broker_state() returns text
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select case when parley._p_is_elsewhere() then 'ELSEWHERE' when b.is_broker_enabled then 'ENABLED' else 'DISABLED' end
  from parley._p_broker as b
$$;

comment on function parley._p_broker_state() is
'Gives the state of the broker: ENABLED, DISABLED, or ELSEWHERE when this is not the
database in which it was enabled last.';

create function parley._p_advice_when_elsewhere() returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select format(
    'This database is not the one in which the broker %s was enabled last: it was restored, copied or moved. ',
    b.service_broker_guid
  )
    || case
      when parley._p_original() is null
        then 'If it is the same broker in a new place: select parley.enable_broker(); if it is a copy: select '
          || 'parley.new_broker();'
      else format(
        'The original is still there, database "%s". For a copy: select parley.new_broker();', parley._p_original()
      )
    end
  from parley._p_broker as b
$$;

comment on function parley._p_advice_when_elsewhere() is 'Shows what to do with a broker that is not where it was.';

create function parley._p_broker_instance(broker_instance text) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if broker_instance is null then
    return null;
  elsif upper(broker_instance collate "C") = 'CURRENT DATABASE' then
    return (select b.service_broker_guid::text from parley._p_broker as b);
  end if;
  return broker_instance::uuid::text;
exception
  when invalid_text_representation then
    found := parley._p_raise(8413, 'instance', left(broker_instance, 60));
end
$$;

comment on function parley._p_broker_instance(text) is
'Gives a broker instance in its canonical form; CURRENT DATABASE is this one.
Errors: 8413 malformed.';

insert into parley._p_broker (system_identifier, database_oid)
values (parley._p_system_identifier(), parley._p_database_oid());
