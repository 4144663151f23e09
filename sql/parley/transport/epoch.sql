-- The epoch of a broker, and who speaks for it.
--
-- A message that a database has transmitted to another one must never be taken back, and still can be: a standby that
-- is promoted may lack the last transactions, a backup lacks all that came after it. Such a database would give numbers
-- a second time, to other messages. So everything that is transmitted carries an epoch, which grows whenever the server
-- begins a new timeline (each promotion and each recovery to a point in time does) and whenever the broker is enabled
-- in another place. With a new epoch all conversations with other databases stop, until each was compared with its far
-- side (transport/resume.sql). A broker that has received a newer epoch refuses older ones, so a primary that comes
-- back is refused by all.
-- An epoch is a time, in microseconds since 1970, so that two servers which begin one apart from each other do not call
-- it the same. So one that lies ahead of the clock here, by more than clocks differ, is refused: no peer can shut a
-- broker out for longer than that.

create function parley._p_timeline() returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
exception
  -- Some servers do not report it, and one in recovery cannot.
  when insufficient_privilege or object_not_in_prerequisite_state or undefined_function then
    return null;
end
$$;

comment on function parley._p_timeline() is 'Gives the timeline of the server, or null when it is not known.';

create function parley._p_is_epoch_current() returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(b.timeline = parley._p_timeline(), true) from parley._p_broker as b
$$;

comment on function parley._p_is_epoch_current() is
'Reports whether the server is still on the timeline of the epoch; until the daemon has recorded the new one nothing may
be transmitted.';

create function parley._p_begin_epoch() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update parley._p_broker as b
  set epoch = greatest(b.epoch + 1, (extract(epoch from clock_timestamp()) * 1000000)::bigint),
    timeline = parley._p_timeline(),
    remembers_since = clock_timestamp();
  perform parley._p_doubt(null);
end
$$;

comment on function parley._p_begin_epoch() is
'Begins a new epoch: nothing more is transmitted for any conversation with another database until both sides were found
to agree.';

create function parley._p_doubt(broker_instance uuid) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  -- Where the far side has not answered yet there is nothing to compare.
  insert into parley._p_unresumed (endpoint_id)
  select e.endpoint_id
  from parley._p_endpoint as e
  where e.far_endpoint_id < 0
    and e.far_broker_instance is not null
    and (_p_doubt.broker_instance is null or e.far_broker_instance = _p_doubt.broker_instance::text)
  on conflict do nothing;
  -- One that has only ever listened asks too, if there is a way.
  for v_endpoint in
    select e.*
    from parley._p_endpoint as e
    join parley._p_unresumed as u using (endpoint_id)
    where e.destination_id is null
    order by e.endpoint_id
    for no key update of e skip locked
  loop
    perform parley._p_bind(v_endpoint);
  end loop;
end
$$;

comment on function parley._p_doubt(uuid) is
'Lets nothing more be transmitted for the conversations with a broker, or with any (null), until both sides were found
to agree.';

create function parley._p_record_timeline() returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if not parley._p_is_epoch_current() then
    perform parley._p_begin_epoch();
  elsif exists (select from parley._p_broker as b where b.timeline is null) and parley._p_timeline() is not null then
    update parley._p_broker as b set timeline = parley._p_timeline() where b.timeline is null;
  end if;
  return (select b.epoch from parley._p_broker as b);
end
$$;

comment on function parley._p_record_timeline() is
'Gives the epoch, and begins a new one when the server is on another timeline than that of the last.';

create function parley._p_admit_speaker(
  broker_instance uuid, epoch bigint, term bigint, token uuid, is_beside boolean
) returns parley._p_error
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_known parley._p_known_broker;
begin
  if broker_instance = (select b.service_broker_guid from parley._p_broker as b) then
    return parley._p_error_of(9772, 'same instance');
  end if;
  select * into v_known from parley._p_known_broker as k where k.broker_instance = _p_admit_speaker.broker_instance;
  if not found then
    insert into parley._p_known_broker (broker_instance, epoch, term, token, is_beside)
    values (_p_admit_speaker.broker_instance, _p_admit_speaker.epoch, _p_admit_speaker.term, _p_admit_speaker.token,
      _p_admit_speaker.is_beside)
    on conflict do nothing;
  elsif (v_known.epoch, v_known.term) < (epoch, term) then
    update parley._p_known_broker as k
    set epoch = _p_admit_speaker.epoch, term = _p_admit_speaker.term, token = _p_admit_speaker.token
    where k.broker_instance = _p_admit_speaker.broker_instance
      and (k.epoch, k.term) < (_p_admit_speaker.epoch, _p_admit_speaker.term);
    -- It asks about the conversations that it knows. About those that it has forgotten only this side can ask.
    if found and v_known.epoch < epoch then
      perform parley._p_doubt(broker_instance);
    end if;
  end if;
  select * into v_known
  from parley._p_known_broker as k
  where k.broker_instance = _p_admit_speaker.broker_instance for share;
  if (v_known.epoch, v_known.term) > (epoch, term) then
    return parley._p_error_of(
      9772, 'newer speaker', broker_instance::text, v_known.epoch::text, v_known.term::text, epoch::text, term::text
    );
  elsif v_known.token <> token then
    return parley._p_error_of(9772, 'two copies', broker_instance::text);
  end if;
  return null;
end
$$;

comment on function parley._p_admit_speaker(uuid, bigint, bigint, uuid, boolean) is
'Explains why nothing is taken from a speaker of a broker: somebody newer speaks for it, or two copies of its database
do; null when it is. It stays so to the end of the transaction.
Arguments: broker_instance, epoch, term, token: Speaker in Go; is_beside, whether it has come from a database of the
same daemon. The speaker was checked before (_p_refusal_of_speaker).';

create function parley._p_speaker(term bigint, out instance uuid, out epoch bigint, out token uuid)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if parley._p_holds_term(term) then
    epoch := parley._p_record_timeline();
    select b.service_broker_guid, l.token into instance, token from parley._p_broker as b, parley._p_leader as l;
  end if;
end
$$;

comment on function parley._p_speaker(bigint) is
'Gives in whose name the daemon with a term may transmit; nulls when the term is over. Records a new timeline first.';
